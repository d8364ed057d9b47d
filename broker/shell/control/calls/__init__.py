"""Owns handlers whose imports take long; a route names them "module:function", and its first call imports them.

Start at records.py.
"""
