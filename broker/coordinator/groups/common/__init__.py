"""What the kinds of groups share: Outcome for all of them, the rest for consumer, streams and share groups.

Owns their base classes ModernGroup, ModernMember and HeartbeatStep, pending targets, the checks of a commit against
assignment epochs, and the hash of the subscribed topics. May import what groups/__init__.py lists, and none of the
rooms beside it. Start with group.py.
"""
