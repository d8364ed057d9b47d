"""The generation number that makes connections drop what their shortcuts have learnt."""

from __future__ import annotations


class Learned:
    """A counter. What a shortcut learnt from a request is valid only while the generation stays the same.

    A shortcut may rely on the metadata (topics, ids, partition counts, leaders, features), on a shard's machine and
    state, and on the objects that hold committed offsets. Code that changes one of these calls `drop`: ClusterMetadata
    after a batch of changes, Shard when it has loaded or reloads, OffsetTable when columns are removed. What changes
    with ordinary requests (offsets, high watermarks, members, transactions) is not learnt: shortcuts look it up for
    each request.
    """

    __slots__ = ("generation",)

    def __init__(self) -> None:
        self.generation = 0

    def drop(self) -> None:
        """Invalidate everything learnt so far, on all connections."""
        self.generation += 1
