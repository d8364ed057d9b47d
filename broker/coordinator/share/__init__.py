"""What share groups have read (KIP-932): the state of their share partitions, live and in `__share_group_state`.

A share partition is a partition as one share group reads it. Owns:
  log     the stored state: `state.py`, `combine.py`, the machine of a shard (`machine.py`), shards (`coordinator.py`)
  live    records in flight: `in_flight.py`, `share_partition.py`, `acquire.py`, `acknowledge.py`, `aborted.py`: pure
  around  share sessions (`sessions.py`), and the live share partitions of the process with their locks (`table.py`)
Imports the shard runtime, `groups`, `partitions`, `cluster` and `turn`. Start reading at `share_partition.py`.
"""
