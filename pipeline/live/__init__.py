"""Logs of a running broker, fetched by Kafka's protocol: what of them is read, reading it, and Spark's data source."""
