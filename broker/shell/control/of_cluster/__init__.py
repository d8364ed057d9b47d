"""Owns the routes of a cluster, a file a feature: lifetime, clock, brokers, faults, journal, records, groups.

Start at clock.py. Each file has a tuple ROUTES, which endpoint.py finds; its owner is a ClusterServer.
"""
