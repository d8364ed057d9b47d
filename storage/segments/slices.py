"""Long work in slices: a generator that yields between them and returns what it made."""

from __future__ import annotations

from collections.abc import Generator
from typing import TypeVar

T = TypeVar("T")


def all_at_once(slices: Generator[None, None, T]) -> T:
    """Do what is left of it, without a pause."""
    while True:
        try:
            next(slices)
        except StopIteration as stop:
            made: T = stop.value
            return made
