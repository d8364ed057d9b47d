"""Time: the machine's clock (`clock.py`), and one that a test may move or stop (`movable_clock.py`).

Owns every reading of the clock. Imports no other room. Start reading at `Clock` in `clock.py`.
"""
