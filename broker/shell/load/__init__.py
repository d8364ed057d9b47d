"""Owns filling a cluster with what files say, before it listens or by a call of the control plane.

Start at filling.py, which does it: check first, then change, as any client would ask for it. start.py is what a start
does, with a mark in the data directory; disk.py reads the files; batches.py makes the records; schemas.py is about the
registry.
"""
