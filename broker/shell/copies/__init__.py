"""Owns what is kept of a cluster beside its life: snapshots, and recordings, which begin with one.

Start at snapshots.py. How a data directory is copied: broker/cluster/data/copies.py.
"""
