"""The sockets of `momus proxy`: its listeners, the connections to the upstream cluster, and the process around them.

Begin with server.py, a ClusterServer whose nodes are those of another cluster; upstream.py reaches them.
"""
