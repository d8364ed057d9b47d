"""Copies topics, records and group offsets into a Kafka cluster, and proves that the copy is equal.

It imports transforms, audit and the clients confluent-kafka and kafka-python. Start at plan.py: which topics and
records to copy, and where offsets map to. worker.py is what a Spark task does; target.py and groups.py talk to the
cluster.
"""
