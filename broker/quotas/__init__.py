"""Quotas of clients: how much they send, fetch, occupy the loop and change, and what clients get that exceed them.

Owns: the quotas in force with their rates (`client_quotas.py`), and how fast addresses may connect
(`address_quotas.py`). The router asks it
before and after a handler while there are quotas; without any, nothing of this is loaded and shortcuts serve as ever.
Start reading at `client_quotas.py`.
"""
