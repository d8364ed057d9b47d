"""Faults that a test asks for: errors, delays, held, cut, swallowed, doubled and damaged requests, and a failing disk.

Owns: a fault as data (`fault.py`), what a request names (`named.py`), the list of a cluster's faults, which looks at
each request (`table.py`), what it does to requests before they take effect (`lanes.py`), to replies (`gate.py`) and to
files (`disk.py`). While there is no fault, requests do not pass here. Imports `wire`, `turn` and messages. Start
reading at `table.py`.
"""
