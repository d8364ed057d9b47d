"""What a cluster is asked by Kafka's protocol, for the control plane, the page, a proxy and the commands alike.

Owns: questions as generators, and how the node that must answer is found (`ask.py`); those about topics, records,
groups, transactions, settings, ACLs and quotas, a file each; the rows that are told (`rows.py`); which records a
consumer sees (`records.py`). Imports `protocol` alone, so that the command line asks as the broker does. The drivers
are `broker/shell/asking.py` and `momus/client/kafka_client.py`. Start reading at `ask.py`.
"""
