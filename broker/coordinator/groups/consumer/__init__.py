"""Groups of the consumer protocol (KIP-848), their members of the classic protocol, and migration between both.

Owns ConsumerGroup, its records, and how a heartbeat or a timer changes it. May import groups.common, groups.assignors,
groups.classic (to migrate) and what groups/__init__.py lists. What it needs of the machine that holds the group is the
Protocol in machine.py. Start with group.py for the state, heartbeat.py for the way of a request, reconcile.py for the
step of one member towards its target.
"""
