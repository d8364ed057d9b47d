"""The cluster as clients see it: topics, configs, features, virtual brokers, listeners, and the data directory.

Owns: the metadata state machine (`metadata.py`, `topics.py`), the records of each administrative operation
(`metadata_plans.py`), the image of the metadata log (`metadata_image.py`), rules for names (`topic_names.py`), SCRAM
users and quotas (`client_records.py`), virtual brokers (`listeners.py`, `nodes.py`, `virtual_nodes.py`), and the
data directory (`data/`). Imports `config`, `turn` and the shard runtime. Start reading at `metadata.py`.
"""
