"""Files, and what else a log has of the outside world: `Env` is clock, randomness and disk.

Owns the real disk (`disk.py`, with its background thread in `disk_thread.py` and its lock in `lock.py`), the simulated
one (`sim_env.py`, `inode.py`), files written in place on either (`cells.py`), what a test wants to go wrong with either
(`troubles.py`), and the small files beside the logs (`checkpoints.py`, `snapshot.py`). Imports `clock`. Start reading
at `Env` and `Files` in `env.py`.
"""
