"""Owns the routes of the process: its health, and its clusters.

Start at clusters.py. Each file has a tuple ROUTES, which endpoint.py finds.
"""
