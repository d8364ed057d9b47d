"""facts(): the part of an object's state that replaying the log must reproduce, taken from its slots.

A class names its volatile slots in VOLATILE, each with the reason why no record holds it. Every other slot counts, even
one that is derived from others: a replayed object derives it again, so a wrong one in a live object shows.
"""

from __future__ import annotations

from array import array
from collections import deque
from collections.abc import Iterator, Mapping
from typing import ClassVar, Protocol, cast


class Replayable(Protocol):
    """An object with __slots__ whose state comes from the log."""

    VOLATILE: ClassVar[Mapping[str, str]]  # slot -> why no record holds it


def slots(kind: type) -> Iterator[str]:
    """The slots of a class and of its bases."""
    for base in reversed(kind.__mro__):
        yield from base.__dict__.get("__slots__", ())


def facts(thing: Replayable) -> dict[str, object]:
    """The hard slots by name, copied, so that later changes of the object do not affect the result."""
    return {name: _copy(getattr(thing, name)) for name in slots(type(thing)) if name not in thing.VOLATILE}


def _copy(value: object) -> object:
    if isinstance(value, dict):
        return {key: _copy(held) for key, held in value.items()}
    if isinstance(value, set):
        return frozenset(value)
    if isinstance(value, (list, deque, array)):
        return [_copy(held) for held in value]
    if hasattr(value, "VOLATILE"):
        return facts(cast("Replayable", value))
    return value
