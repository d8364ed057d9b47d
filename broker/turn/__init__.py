"""One turn of the event loop, without an event loop: the clock reading, due timers, background jobs, and durability.

Owns: the time of the turn (`turn.py`), timers (`timers.py`), jobs that run between turns (`jobs.py`), what a rule
decides (`decision.py`, `write.py`) and who carries it out (`executor.py`), the writes and syncs that replies wait for
(`durability.py`, `flush_state.py`), the broker's counters (`metrics.py`), and the generation of what is kept for
repeats (`learned.py`). Imports only storage and protocol. Start reading at `turn.py`.
"""
