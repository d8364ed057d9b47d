"""Committed offsets: their columns in memory, their records, and images of them.

Owns: the table and its columns (`table.py`, `columns.py`), offsets that a transaction has not committed yet
(`pending.py`), the records of a commit (`commit_batch.py`, `spans.py`, `provenance.py`) and the one way to append and
replay them (`commit_run.py`, `replay_run.py`), the checks of a committer's epoch, expiry, and images (`snapshots.py`,
`imaging.py`, `image_files.py`). Start reading at `commit_run.py`.
"""
