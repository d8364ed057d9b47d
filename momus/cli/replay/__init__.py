"""Plays a recorded run again, request by request, and compares the answers: `momus replay`.

Start at player.py: it goes through the events. mapping.py knows which values are not the same in another run, bundle.py
reads the file, and targets.py is what the run is played against.
"""
