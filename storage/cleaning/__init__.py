"""What leaves a log: by compaction, which keeps the last record of every key, and by retention, by age and size.

Owns the plan of a compaction (`compaction_plan.py`), what is left of a batch (`compaction_filter.py`), the rewriting
of segments (`compaction.py`), and retention (`retention.py`). Imports `segments` and the rooms before it. Start reading
at `clean` in `compaction.py`.
"""
