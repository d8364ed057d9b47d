"""The shell: all code that uses asyncio. Sockets, signals, timers of the loop, sync threads, HTTP and UDP.

Owns: the process (`server.py` starts it, `process.py`), the server around a Broker (`cluster_server.py`), threads that
sync (`sync_threads.py`), the control plane (`control/`), metrics over UDP (`statsd.py`, `gauges.py`), and what the
loop does between turns (`loop/`). Imports everything. It has no rule of Kafka. Start reading at `process.py`.
"""
