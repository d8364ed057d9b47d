"""The shortcuts of share groups: repeated ShareFetches, and the answers of those that wait.

Owns `fetch.py` (the shortcut), `fetch_shape.py` (which frames it knows), `fetch_reply.py` (its replies) and
`fetch_wake.py` (parked requests). Imports what `shortcuts` may. Start reading at `fetch.py`.
"""
