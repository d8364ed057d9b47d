"""Owns the search for messages: what is wanted, a process that looks for it, and the stream of what it finds.

Start at stream.py. The broker hands descriptors of its logs to a process of their own, worker.py, which reads,
decompresses and compares: a search of a million records takes no time from clients but that of its start and its hits.
What it cannot hand over so, it reads and sends. The process has the processors that would stand idle, and pauses for a
moment after each half of a millisecond. It ends with the request, whether that is read to its end or not.
"""
