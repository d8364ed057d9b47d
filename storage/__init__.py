"""Logs on disk: segments, recovery, compaction, images of state. Knows bytes, keys and values, not groups.

Start reading at `Log` in log/log.py; FORMAT.md describes the files. `Env` in files/env.py is what a log has of the
outside world. The rooms import in this order, each only those before it:

    clock, files, segments, cleaning, log
"""
