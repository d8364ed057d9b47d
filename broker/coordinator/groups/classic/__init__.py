"""Groups of the classic protocol: members, generations, rebalances, and their GroupMetadata record.

Owns ClassicGroup and everything that changes one, but for the request handlers (handlers/join_group.py and
classic_group.py). May import groups.common and what groups/__init__.py lists; knows no other kind of group.
Start with group.py: its states, and which of them are logged. rebalance.py and timers.py move it between them.
"""
