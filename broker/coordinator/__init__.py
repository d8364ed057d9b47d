"""Coordinators: state machines over logs, one for each partition of an internal topic.

Owns: the runtime of such a machine (`runtime.py`, with `replay.py` for a start), what handlers are given and return
(`result.py`), its deadlines (`deadlines.py`), the shards of groups (`group_shards.py`), loading (`loading.py`),
placement of ids on shards (`placement.py`), common record schemas (`records.py`), and `offsets/`, `transactions/` and
`groups/`. Imports `turn`, `config`, `cluster` and `partitions`. Start reading at `Shard` in `runtime.py`.
"""
