"""Faults that a test asks for: errors, delays, held, cut, swallowed, doubled and damaged requests, and a failing disk.

Owns: the kinds of faults and what each does (`kinds.py`), a fault as data (`fault.py`), what a request names
(`named.py`), the list of a cluster's faults, which looks at each request and carries out what a kind asks for
(`table.py`), requests that wait before they take effect (`lanes.py`), replies that a fault acts on (`gate.py`), and
writes and syncs of files (`disk.py`). While there is no fault, requests do not pass here. Imports `wire`, `turn` and
messages. Start reading at `kinds.py`.
"""
