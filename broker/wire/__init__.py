"""Connections: bytes to requests, and replies to bytes in request order; no socket and no Kafka rule.

Owns: connections and their bounds (`connection.py`, `clients.py`, `backlog.py`), the routing table's entries
(`route.py`), the general way of a request (`router.py`), requests that wait (`parked.py`), and the one place where an
error becomes a reply (`errors.py`). Imports `turn`, `config` and the coordinator's `result.py`. Start reading at
`Connection.data_received`; a frame goes from `_process` to a shortcut, or to `Router.dispatch` and its handler.
"""
