"""The transaction coordinator: transactional ids, producer ids and epochs, and the markers that end a transaction.

Owns: the state of one id (`transaction.py`) and the decisions about it (`rules.py`), the machine of a shard
(`machine.py`) and what is written for it (`written.py`), what touches more than one log (`coordinator.py`,
`ending.py`), and the check before transactional records are appended (`gate.py`). Imports the shard runtime,
`partitions`, `cluster` and `turn`. Start reading at `rules.py`.
"""
