"""Who a client is and what it may do: SASL, principals, and what Kafka's settings say of a listener.

Owns: the settings of a listener (`listener_settings.py`), mechanisms of SASL (`mechanisms.py`, `oauthbearer.py`), the
state of a connection that authenticates (`session.py`), and principals (`principals.py`). No sockets and no TLS: those
are in broker/shell/tls. Libraries of the extra `security` are imported when first used. Start reading at `session.py`.
"""
