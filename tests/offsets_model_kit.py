"""What groups should have committed when commits and transactions with offsets mix, and what they are told."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from core_broker import Client

from protocol.messages.offsets import (
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
)

Key = tuple[str, str, int]  # group, topic, partition


class OffsetModel:
    """What each group has committed, and what the open transactions would commit."""

    def __init__(self) -> None:
        self.committed: dict[Key, tuple[int, int]] = {}  # (when it was written, value)
        self.pending: dict[int, dict[Key, tuple[int, int | None]]] = {}  # None: something newer is committed

    def copy(self) -> OffsetModel:
        new = OffsetModel()
        new.committed = dict(self.committed)
        new.pending = {number: dict(offsets) for number, offsets in self.pending.items()}
        return new

    def commit(self, key: Key, at: int, value: int) -> None:
        """What was written before does not count any more, not even when its transaction is committed later."""
        self.committed[key] = at, value
        for offsets in self.pending.values():
            if key in offsets and offsets[key][0] < at:
                offsets[key] = offsets[key][0], None

    def end(self, number: int, commit: bool) -> None:
        for key, (at, value) in self.pending.pop(number, {}).items():
            if commit and value is not None:
                self.commit(key, at, value)

    def forget(self, *, group: str | None = None, topic: str | None = None, keys: Any = ()) -> None:
        for offsets in (self.committed, *self.pending.values()):
            for key in [k for k in offsets if k[0] == group or k[1] == topic or k in keys]:
                del offsets[key]


def told_offsets(
    client: Client, groups: Iterable[str], topics: Iterable[str], partitions: Iterable[int], *, stable: bool
) -> dict[Key, tuple[int, int]]:
    """Group, topic and partition -> (offset, error code), by one OffsetFetch for all."""
    wanted = [OffsetFetchRequestTopics(name=topic, partition_indexes=list(partitions)) for topic in topics]
    asked = [OffsetFetchRequestGroup(group_id=group, topics=wanted) for group in groups]
    answer = client.call(OffsetFetchRequest(groups=asked, require_stable=stable), 8)
    assert {group.error_code for group in answer.groups} == {0}
    return {
        (group.group_id, topic.name, row.partition_index): (row.committed_offset, row.error_code)
        for group in answer.groups
        for topic in group.topics
        for row in topic.partitions
    }


def delete_offsets(client: Client, group: str, topic: str, partitions: Iterable[int]) -> bool:
    """OffsetDelete; whether they are deleted."""
    rows = [OffsetDeleteRequestPartition(partition_index=index) for index in partitions]
    topics = [OffsetDeleteRequestTopic(name=topic, partitions=rows)]
    answer = client.call(OffsetDeleteRequest(group_id=group, topics=topics), 0)
    return not answer.error_code and not answer.topics[0].partitions[0].error_code
