"""How the control plane, the page, the proxy and the commands read what a cluster answers by Kafka's protocol.

Owns: what became of the transaction of each batch of a Fetch reply, so which records a consumer sees (`records.py`);
the rows in which topics, groups and transactions are told (`rows.py`).
Imports `protocol` alone, so that the command line has the same rules as the broker. Start reading at `records.py`.
"""
