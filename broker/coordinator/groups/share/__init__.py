"""Groups of the share protocol (KIP-932): members, target assignment, and which share partitions have state.

Owns the group (group.py), its member (member.py), its records (records.py), and how heartbeats, leaving and timers
change it. What the group has read is in broker/coordinator/share. May import what groups/__init__.py lists and
common/. Start with group.py, then heartbeat.py.
"""
