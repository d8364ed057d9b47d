"""Time: the clock of the machine (`clock.py`), one to move or stop (`movable_clock.py`), one that a test alone moves.

Owns every reading of the clock. Imports no other room. Start reading at `Clock` in `clock.py`.
"""
