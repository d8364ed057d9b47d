"""Begins the process of a search: after all others, on processors that would stand idle, where the system can do that.

Where all of them are busy it still gets some hundredths of one.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from typing import Final

NICE: Final = 19  # where the system cannot
WORK_S: Final = 0.0005
PAUSE_S: Final = 0.0001


def pauses() -> Callable[[], None]:
    """A function that lets others run, for PAUSE_S after every WORK_S.

    Whatever waits for this processor, or for another one, then has it at once. A niceness alone, or SCHED_IDLE, leaves
    it waiting until a slice of time is over or the system moves a process, which is milliseconds later.
    """
    end_s = time.perf_counter() + WORK_S

    def pause() -> None:
        nonlocal end_s
        if time.perf_counter() > end_s:
            time.sleep(PAUSE_S)
            end_s = time.perf_counter() + WORK_S

    return pause


def main() -> None:
    """Let all others go first, from now to the end, and search."""
    if hasattr(os, "SCHED_IDLE"):
        os.sched_setscheduler(0, os.SCHED_IDLE, os.sched_param(0))
    elif hasattr(os, "nice"):
        os.nice(NICE)
    from broker.shell.page.search import worker  # only now: an import of 30 ms

    worker.main(pauses())
