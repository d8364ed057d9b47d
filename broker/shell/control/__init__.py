"""The control plane: HTTP and JSON on a port of its own, for tests to make clusters, move clocks and stop brokers.

Start at routes.py: a route is a line in a table. To add routes, write a file with a list ROUTES and name it in
endpoint.py. Handlers whose imports take long go into a file of their own and are named "module:function". The index
(`GET /`), the OpenAPI description and the checks of bodies follow from the table.
"""
