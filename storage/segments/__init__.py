"""Segments: one file of record batches with its indexes, how a log writes them, and how it opens them after a crash.

Owns a segment and its indexes (`segment.py`, `index.py`, `transaction_index.py`), the writing half of a log
(`log_writer.py`), recovery (`recovery.py`), how far logs are synced (`synced_ends.py`), leader epochs, and commits over
several batches (`spans.py`). Imports `clock` and `files`. Start reading at `Segment` in `segment.py`, then `LogWriter`
in `log_writer.py`.
"""
