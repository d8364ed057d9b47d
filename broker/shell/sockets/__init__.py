"""The sockets of clients.

Start with receivers.py, which makes the protocol of each new connection. straight.py sends large replies of a plain one
past its transport.
"""
