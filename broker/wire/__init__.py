"""Connections: bytes to requests, and replies to bytes in request order. No socket and no rule of Kafka.

Owns: what comes in (`connection.py`), what goes out (`reply_queue.py`, `reply_stream.py`), the limits of both
(`clients.py`, `backlog.py`), the entries of the routing table (`route.py`), the way of a request to its handler
(`router.py`), parked requests (`parked.py`), and the one place where an error becomes a reply (`errors.py`). Imports
`base`, `turn` and `config`.
Start reading at `Connection.data_received`; a frame goes from `_process` to a shortcut, or to `Router.dispatch` and its
handler.
"""
