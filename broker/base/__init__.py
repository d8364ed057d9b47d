"""What handlers, connections and coordinators have in common, below all of them.

Owns what a handler is given (`context.py`), the shard that an id belongs to (`placement.py`), the markers of
transactions (`marker.py`), where a seek leads (`seek.py`), and what tests compare of replayed state (`facts.py`).
Imports no other room but `turn/`. Start reading at `Context` in `context.py`.
"""
