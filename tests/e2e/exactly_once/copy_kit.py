"""What a copying process is told, and what it tells: one letter for each step of a transaction, on standard output."""

from __future__ import annotations

import argparse
import os
import random

IDLE, BEGUN, OFFSETS, ENDING, REFUSED = b".", b"b", b"o", b"e", b"x"
FENCED = 3  # the exit code of a process that has to be started anew: its producer is of no use any more
BATCH = 100
LIMIT_S = 30


def arguments() -> argparse.Namespace:
    """BOOTSTRAP SOURCE TARGET GROUP NUMBER WORKERS PARTITIONS PROTOCOL"""
    parser = argparse.ArgumentParser()
    for name in ("servers", "source", "target", "group"):
        parser.add_argument(name)
    for name in ("number", "workers", "partitions"):
        parser.add_argument(name, type=int)
    parser.add_argument("protocol")
    return parser.parse_args()


def tell(step: bytes) -> None:
    """Whoever kills us wants to know where we are."""
    os.write(1, step)


def dwell_s() -> float:
    """How long a step takes, so that there is time to die in it."""
    return random.uniform(0, 0.02)


def transformed(value: bytes) -> bytes:
    return value[::-1]
