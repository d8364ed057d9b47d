"""Owns the control plane: HTTP and JSON on a port of its own, for tests to make clusters, move clocks and stop brokers.

Start at routes.py: a route is a line in a table. To add routes, write one file with a tuple ROUTES in of_process/ or
of_cluster/; endpoint.py finds it. Handlers whose imports take long go into calls/ and are named "module:function". The
index (`GET /`), the OpenAPI description and the checks of bodies follow from the table.
"""
