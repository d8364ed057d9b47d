"""Owns what the page does that tests seldom do: topics altered and deleted, quotas set and removed.

Start at topics.py. Each call asks the broker as any client would, so it is refused as a client would be.
"""
