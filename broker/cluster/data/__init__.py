"""The data directory of a cluster: whose it is, what files it has, and copies of it that share their bytes.

Start at directory.py.
"""
