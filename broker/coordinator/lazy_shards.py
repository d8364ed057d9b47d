"""The shards of an internal topic, each made when it is first asked for: most tests use few of fifty."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import overload

from broker.coordinator.runtime import Shard


class LazyShards(Sequence[Shard]):
    """As a list of `count` shards, unloaded.

    made   those that are there, None in the place of the others.
    """

    __slots__ = ("_make", "made")

    def __init__(self, count: int, make: Callable[[int], Shard]) -> None:
        self.made: list[Shard | None] = [None] * count
        self._make = make

    def __len__(self) -> int:
        return len(self.made)

    @overload
    def __getitem__(self, index: int) -> Shard: ...
    @overload
    def __getitem__(self, index: slice) -> list[Shard]: ...
    def __getitem__(self, index: int | slice) -> Shard | list[Shard]:
        if isinstance(index, slice):
            return [self[each] for each in range(len(self.made))[index]]
        found = self.made[index]
        if found is None:
            found = self.made[index] = self._make(range(len(self.made))[index])
        return found

    def __iter__(self) -> Iterator[Shard]:
        return (self[index] for index in range(len(self.made)))

    def existing(self) -> Iterator[tuple[int, Shard]]:
        """Those that are there, each with its index. The others hold nothing that was loaded or written."""
        return ((index, each) for index, each in enumerate(self.made) if each is not None)


def existing(shards: Sequence[Shard]) -> Iterator[tuple[int, Shard]]:
    """Those of a list, or of LazyShards, that are there, each with its index."""
    return shards.existing() if isinstance(shards, LazyShards) else enumerate(shards)
