"""What a client may do: Kafka's StandardAuthorizer, and what each API asks of it.

Owns: the decision (`authorizer.py`), the decisions of one request with their log lines (`access.py`), and for each API
the parts of a request that are refused (`rules_*.py`, by family; `table.py` lists them). The router asks it before a
handler, and puts the refused parts into the response. Fetch, whose partitions are in its session, asks itself, and so
does DescribeTopicPartitions, which pages through what may be seen. The ACLs are in `cluster/acls.py`. Without an
authorizer none of this is loaded. Start reading at `table.py`.
"""
