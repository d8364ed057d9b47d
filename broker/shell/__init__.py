"""The shell: everything that knows asyncio. Sockets, signals, timers of the loop, sync threads, HTTP and UDP.

Owns: the server around a Broker (`server.py`), the control endpoint (`control.py`), metrics over UDP (`statsd.py`,
`gauges.py`), and polling for the next request (`spin.py`). Imports everything. No Kafka rule is here. Start reading at
`server.py`.
"""
