"""What handlers, connections and coordinators have in common, below all of them.

Owns what handlers are given and return (`result.py`), the shard that an id belongs to (`placement.py`), what tests
compare of replayed state (`facts.py`), and where a seek leads (`seek.py`). Imports no other room. Start reading at
`Context` and `Result` in `result.py`.
"""
