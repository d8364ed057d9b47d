"""In front of a cluster of Kafka: frames pass from clients to its nodes and back, and addresses become the proxy's.

Begin with connection.py (what a client sends) and link.py (what a node answers); router.py has the requests that faults
or the journal look at. Nothing here knows a socket: broker/shell/proxy opens them.
"""
