"""The shell: all code that uses asyncio. Sockets, signals, timers of the loop, sync threads, HTTP and UDP.

Owns: the server around a Broker (`server.py`), the control endpoint (`control.py`), metrics over UDP (`statsd.py`,
`gauges.py`), and polling for the next request (`spin.py`). Imports everything. It has no rule of Kafka. Start reading
at `server.py`.
"""
