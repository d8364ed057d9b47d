"""Pending offsets: sent in transactions that have not ended.

The values are in OffsetTable's columns, where a later commit finds them. This index finds them by producer id.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final

from broker.coordinator.offsets.table import Committed, OffsetTable, Pending

NOTHING: Final[dict[Any, Any]] = {}
_new: Final = tuple.__new__  # a NamedTuple's own is a function in Python, compiled or not


class PendingOffsets:
    """The pending offsets of each producer in one shard. Only replay changes them."""

    __slots__ = ("_places", "_senders", "_table")

    def __init__(self, table: OffsetTable) -> None:
        self._table = table
        self._places: dict[int, dict[tuple[str, str], set[int]]] = {}  # producer id -> group and topic -> partitions
        self._senders: dict[int, dict[str, dict[str, bytes]]] = {}  # producer id -> group -> coordinator.provenance

    def replay(
        self,
        producer_id: int,
        group_id: str,
        topic: str,
        partition: int,
        committed: Committed | None,
        record_offset: int,
    ) -> None:
        """Replay an offset record that is part of a transaction; `committed` None: a later commit has replaced it."""
        columns = self._table.topic_or_new(group_id, topic)
        columns.replay_pending(partition, producer_id, Pending(committed, record_offset))
        self._places.setdefault(producer_id, {}).setdefault((group_id, topic), set()).add(partition)

    def replay_run(
        self,
        producer_id: int,
        group_id: str,
        topic: str,
        partitions: Sequence[int],
        offsets: Sequence[int],
        leader_epochs: Sequence[int],
        commit_timestamp_ms: int,
        record_offset: int,
        topic_id: bytes,
    ) -> None:
        """Replay a batch of offset records without metadata; `record_offset`: of the first one."""
        columns = self._table.topic_or_new(group_id, topic)
        for index, offset, epoch in zip(partitions, offsets, leader_epochs, strict=True):
            committed = _new(Committed, (offset, epoch, "", commit_timestamp_ms, -1, topic_id))
            columns.replay_pending(index, producer_id, Pending(committed, record_offset))
            record_offset += 1
        self._places.setdefault(producer_id, {}).setdefault((group_id, topic), set()).update(partitions)

    def replay_sender(self, producer_id: int, group_id: str, headers: Iterable[tuple[str, bytes | None]]) -> None:
        """Replay a record's headers: who sent the producer's offsets for a group."""
        self._senders.setdefault(producer_id, {})[group_id] = {name: value or b"" for name, value in headers}

    def groups(self, producer_id: int) -> list[tuple[str, dict[str, bytes], dict[str, list[int]]]]:
        """Each group with pending offsets of a producer: its id, who sent them, and topic -> partitions."""
        senders = self._senders.get(producer_id, NOTHING)
        found: dict[str, tuple[str, dict[str, bytes], dict[str, list[int]]]] = {}
        for (group_id, topic), partitions in self._places.get(producer_id, NOTHING).items():
            if group_id in found:
                found[group_id][2][topic] = sorted(partitions)
            else:
                found[group_id] = group_id, senders.get(group_id, NOTHING), {topic: sorted(partitions)}
        return list(found.values())

    def replay_marker(self, producer_id: int, *, commit: bool) -> None:
        """Replay a marker: all pending offsets of the producer are committed, or dropped."""
        self._senders.pop(producer_id, None)
        for (group_id, topic), partitions in self._places.pop(producer_id, {}).items():
            columns = self._table.topic(group_id, topic)
            if columns is None:
                continue  # deleted meanwhile
            for partition in partitions:
                pending = columns.replay_ended(partition, producer_id)
                if pending is not None and commit and pending.committed is not None:
                    columns.replay(partition, pending.committed, pending.record_offset)
            self._table.drop_empty(group_id, topic, columns)

    def items(self) -> Iterator[tuple[int, str, str, int, Pending]]:
        """Producer id, group, topic, partition and value of every pending offset."""
        for producer_id, places in self._places.items():
            for (group_id, topic), partitions in places.items():
                columns = self._table.topic(group_id, topic)
                for partition in partitions:
                    pending = ((columns.pending if columns else None) or {}).get(partition, {}).get(producer_id)
                    if pending is not None:
                        yield producer_id, group_id, topic, partition, pending

    def senders(self) -> Iterator[tuple[int, str, dict[str, bytes]]]:
        """Producer id, group, and the record headers that say who sent the producer's offsets for it."""
        for producer_id, groups in self._senders.items():
            for group_id, headers in groups.items():
                yield producer_id, group_id, headers

    @property
    def count(self) -> int:
        """How many places have a pending offset, about: those of deleted groups are counted too."""
        return sum(len(partitions) for places in self._places.values() for partitions in places.values())

    def fingerprint(self) -> dict[tuple[int, str, str, int], tuple[int, Committed | None]]:
        """Everything in it, to compare a replayed shard with a live one."""
        return {tuple(place): (pending.record_offset, pending.committed) for *place, pending in self.items()}  # type: ignore[misc]  # a place has these four parts
