"""Groups of the streams protocol (KIP-1071): topology, tasks, and the assignor of tasks.

Owns StreamsGroup, its records, and how a heartbeat or a timer changes it. May import groups.common,
groups.assignors.spec, groups.classic (an empty classic group is replaced) and what groups/__init__.py lists. What it
needs of the machine that holds the group is the Protocol in machine.py. Start with group.py for the state, heartbeat.py
for the way of a request, topology.py for how topics become tasks.
"""
