"""A blocking Kafka client, for the command line and the pipeline: what they ask brokers, and how they connect.

Owns connections (`wire.py`, `wire_security.py`, and `connect_settings.py`, which holds what -X and --config said), the
client that finds the node which must answer (`kafka_client.py`), and what is built on it. Imports `protocol` and
`broker`, so most of it may only be imported after `momus.launch.use_packages()`. Start reading at `Client` in
`kafka_client.py`.
"""
