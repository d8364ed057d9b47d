"""The generation of what shortcuts have learnt: the one place where all of it is dropped."""

from __future__ import annotations


class Learned:
    """A counter. What a shortcut learnt from a request holds only while the generation stays the same.

    A shortcut may rely on the metadata (topics, ids, partition counts, leaders, features), on the machine that a shard
    runs and its state, and on the objects that hold committed offsets. Whoever changes one of these calls `drop`; the
    connections then start to learn anew. What changes with ordinary requests (offsets, high watermarks, members,
    transactions) is not learnt: shortcuts look it up for each request.
    """

    __slots__ = ("generation",)

    def __init__(self) -> None:
        self.generation = 0

    def drop(self) -> None:
        """Nothing that was learnt so far holds any more."""
        self.generation += 1
