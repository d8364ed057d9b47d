"""The sockets of clients.

Start with doors.py, which makes the protocol of each new connection. straight.py sends large replies past the transport
of a plain one.
"""
