"""The settings of a node's addresses and of its place in a cluster, read and checked before a start.

Start with listener_texts.py. Each refusal is a ConfigError, in Kafka's words where Kafka does not start either.
"""
