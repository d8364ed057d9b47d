"""Coordinators: state machines over logs, one for each partition of an internal topic.

Owns: the runtime of such a machine (`runtime.py`, with `replay.py` for a start), its deadlines (`deadlines.py`), the
shards of groups (`group_shards.py`), loading (`loading.py`), common record schemas (`records.py`), and `offsets/`,
`transactions/` and `groups/`. Imports `base`, `turn`, `config`, `cluster` and `partitions`. Start reading at `Shard` in
`runtime.py`.
"""
