"""Shortcuts: usual requests, served from their bytes without decoding a message.

Owns: one class an API, the reader of request heads (`head.py`), and the table of them all (`table.py`). Each does what
the general handler in `handlers/` does, and leaves unusual requests to it, with nothing changed. What a shortcut
learns is kept on the connection and dropped there when the generation in `turn/learned.py` changes. Imports everything
below `handlers`. Start reading at `table.py`, then `offset_commit.py`.
"""
