"""What the broker tells of itself: gauges and counters, for Prometheus on /metrics and for StatsD by UDP.

Start reading at `gauges.py`; `exporter.py` and `statsd.py` are its two readers.
"""
