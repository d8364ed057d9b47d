"""Refuses every write to state that the log holds, but by the replay methods of the class that has it.

By class: a class that names its VOLATILE slots has state, and each of its other slots is hard. While the guard is on,
such a slot of a made object can be set only while a method of a state class runs whose name begins with `replay` (of
classic groups, whose state follows its members before the record is written, with `rebalance` too; of producers with
`settle`, as a replayed marker ends its transaction for readers once it is durable, and `recall`, which takes over what
a failed write has thrown away). A rule fills in the next Transaction before its record is written: it is guarded from
the moment that it is given to a replay method.
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from typing import Any

import broker
from broker.base.facts import slots

ROOMS = ("broker.cluster.", "broker.coordinator.", "broker.partitions.")
WRITERS = ("replay", "_replay", "rebalance", "_rebalance", "settle", "recall")
DRAFTED = {"Transaction"}  # made by a rule, then given to replay


def state_classes() -> list[type]:
    """All classes that name their volatile slots."""
    found: dict[type, None] = {}
    for module in pkgutil.walk_packages(broker.__path__, "broker."):
        if module.name.startswith(ROOMS):
            for value in vars(importlib.import_module(module.name)).values():
                if isinstance(value, type) and "VOLATILE" in vars(value):
                    found[value] = None
    return list(found)


class _Depth:
    """How many writers run, and the writes that were refused: a broker answers a request whose handler raises."""

    def __init__(self) -> None:
        self.now = 0
        self.refused: list[str] = []
        self.held: dict[int, Any] = {}  # what was given to a replay method, by its id; kept, so that no id comes again

    def counted(self, method: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(method)
        def run(*args: Any, **named: Any) -> Any:
            self.now += 1
            self.held.update((id(each), each) for each in args[1:] if type(each).__name__ in DRAFTED)
            try:
                return method(*args, **named)
            finally:
                self.now -= 1

        return run


@contextmanager
def guarded() -> Iterator[None]:
    """The guard is on."""
    depth, kept = _Depth(), []
    for kind in state_classes():
        for name, value in list(vars(kind).items()):
            if callable(value) and name.startswith(WRITERS) and not isinstance(value, type):
                kept.append((kind, name, value))
                setattr(kind, name, depth.counted(value))
        kept.append((kind, "__setattr__", None))
        kind.__setattr__ = _refusing(kind, depth)  # type: ignore[method-assign,assignment]  # for the time of a test
    try:
        yield
    finally:
        for kind, name, value in kept:
            if value is None:
                del kind.__setattr__
            else:
                setattr(kind, name, value)
    assert not depth.refused, depth.refused[0]


def _refusing(kind: type, depth: _Depth) -> Callable[[Any, str, Any], None]:
    hard = frozenset(name for name in slots(kind) if name not in kind.VOLATILE)  # type: ignore[attr-defined]  # it has
    drafted = kind.__name__ in DRAFTED

    def set_slot(self: Any, name: str, value: Any) -> None:
        guards = not depth.now and name in hard and (not drafted or id(self) in depth.held)
        if guards and hasattr(self, name) and getattr(self, name) is not value:
            depth.refused.append(f"{kind.__name__}.{name} is set outside of replay, to {value!r}")
            raise AssertionError(depth.refused[-1])
        object.__setattr__(self, name, value)

    return set_slot
