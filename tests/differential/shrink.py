"""Makes a failing case small: fewer steps first, then less in each of them, as long as the same difference shows."""

from __future__ import annotations

import copy
import time
from collections.abc import Callable, Iterator
from typing import Any

from differential.plain import Plain, Values

KEPT = {"ServerAssignor", "Acks", "MaxWaitMs", "MinBytes"}  # without them the request is another one, or waits


def shrink(steps: list[Values], still: Callable[[list[Values]], bool], limit_s: float) -> list[Values]:
    """The smallest case found in the time. `still`: whether a case shows the difference."""
    end = time.monotonic() + limit_s

    def shows(candidate: list[Values]) -> bool:
        return time.monotonic() < end and still(candidate)

    steps = _fewer_steps(steps, shows)
    for at in range(len(steps)):
        while time.monotonic() < end:
            smaller = next((each for each in _smaller(steps, at) if shows(each)), None)
            if smaller is None:
                break
            steps = smaller
    return steps


def _fewer_steps(steps: list[Values], shows: Callable[[list[Values]], bool]) -> list[Values]:
    size = max(1, len(steps) // 2)
    while True:
        at, has_cut = 0, False
        while at < len(steps):
            rest = steps[:at] + steps[at + size :]
            if rest and shows(rest):
                steps, has_cut = rest, True
            else:
                at += size
        if size == 1 and not has_cut:
            return steps
        size = max(1, size // 2)


def _smaller(steps: list[Values], at: int) -> Iterator[list[Values]]:
    for path in list(_paths(steps[at].get("b", {}), ())):
        step = copy.deepcopy(steps[at])
        container: Any = step["b"]
        for key in path[:-1]:
            container = container[key]
        del container[path[-1]]
        yield [*steps[:at], step, *steps[at + 1 :]]


def _paths(value: Plain, path: tuple[Any, ...]) -> Iterator[tuple[Any, ...]]:
    """Where something can be left out."""
    if isinstance(value, list):
        for at, each in enumerate(value):
            if len(value) > 1:
                yield (*path, at)
            yield from _paths(each, (*path, at))
    elif isinstance(value, dict) and "$" not in value and "$f" not in value:
        for key, each in value.items():
            if key not in KEPT:
                yield (*path, key)
            yield from _paths(each, (*path, key))
