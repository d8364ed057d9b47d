"""Partitions of topics: validation of batches, idempotent producers, transactions as readers see them, fetching.

Owns: the open partitions (`table.py`), one partition (`partition.py`), the rules for incoming batches
(`incoming_batch.py`, `record_rules.py`, `record_scan.py`), producer state (`producers.py` and its files), aborted
transactions, and reading for Fetch (`fetch_read.py`, `fetch_session.py`). Imports `cluster`, `turn` and the shard
runtime. Start reading at `Partition.decide`.
"""
