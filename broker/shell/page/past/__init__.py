"""Owns what the page shows of the past: the last minutes as one timeline, and the lag of a group over time.

Start at timeline.py. Nothing is collected beforehand: the timeline is read from the journal, and a lag from the logs,
the one of offsets and those of the topics.
"""
