"""The journal: the last requests and replies of a cluster, kept as bytes and decoded when they are read.

Owns: the ring that connections write to (`ring.py`), secrets taken out before they enter (`secrets.py`), requests
paired with their replies (`reading.py`) and messages as JSON (`message_json.py`). While it is off, a connection asks
once for each piece of input and output whether it is on. Imports messages alone. Start reading at `ring.py`.
"""
