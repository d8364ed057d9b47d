"""The assignors of consumer groups: range, uniform, and uniform for members with different subscriptions (mixed).

Owns Spec, what an assignor is given, and Assignment, what it answers. Imports nothing but the standard library.
Start with spec.py. The assignor of streams groups assigns tasks rather than partitions: streams/sticky_assignor.py.
"""
