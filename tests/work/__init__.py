"""The work of usual requests, counted, not timed: `scripts.py` sends, `meters.py` counts, a file keeps the counts."""
