"""TLS under the listeners: key stores, contexts, and the bytes of a connection. All that knows `ssl` is here.

A connection goes TlsProtocol (`protocol.py`) -> Handshakes (`handshakes.py`) -> TlsTransport, which a Connection uses
as it would use a socket's. Start reading at `protocol.py`; `contexts.py` and `key_stores.py` read what a listener shows
and trusts, `own_authority.py` makes certificates for tests.
"""
