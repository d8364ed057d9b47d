"""What calls of the kit return to act on: a cluster, a fault, a snapshot."""

from __future__ import annotations


class Returned:
    """A thing that has calls of its own: `broker.aio` returns its twin in its place."""

    __slots__ = ()
