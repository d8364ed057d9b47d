"""Housekeeping between requests: loading shards, retention, cleaning, images, recovery points.

Owns: the rounds (`maintenance.py`), recovery points (`checkpointing.py`), and the limits while records wait for an
archive (`archive_wait.py`). Every job is an iterator of short steps that `turn/jobs.py` runs. Imports `cluster`,
`partitions`, `coordinator` and `turn`. Start reading at `maintenance.py`.
"""
