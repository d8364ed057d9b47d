"""Which committed offsets belong to a topic that is gone: a topic made again under its name has another id.

A record without an id (commits with a retention time, logs of older brokers) belongs to whatever topic has its name.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Final

from broker.coordinator.offsets.columns import Committed, TopicOffsets
from broker.coordinator.offsets.table import ZERO_ID, OffsetTable
from broker.coordinator.records import offset_tombstones
from broker.turn.decision import Record

GROUPS_A_SLICE: Final = 500  # looked at before the loop gets its turn: below 1 ms where nothing is gone

IsGone = Callable[[str, bytes], bool]  # given name and id of a topic


def committed_on(columns: TopicOffsets, partition: int, topic_id: bytes) -> Committed | None:
    """The offset committed on the topic with this id; None: there is none, or it is of an earlier topic of the name."""
    found = columns.get(partition)
    return None if found is None or ZERO_ID != topic_id != found.topic_id != ZERO_ID else found


def all_committed_on(
    columns: TopicOffsets, partitions: Sequence[int], topic_id: bytes
) -> list[tuple[int, int, str] | None]:
    """Offset, leader epoch and metadata, as `committed_on` tells them, of each of these partitions."""
    if columns.rare is not None:
        found = [committed_on(columns, each, topic_id) for each in partitions]
        return [each and (each.offset, each.leader_epoch, each.metadata) for each in found]
    if ZERO_ID != topic_id != columns.label.topic_id != ZERO_ID:
        return [None] * len(partitions)
    return [each and (*each, "") for each in columns.offsets_and_epochs(partitions)]


def partitions_on(columns: TopicOffsets, topic_id: bytes) -> list[int]:
    """The partitions for which `committed_on` has an offset."""
    if columns.rare is None or not columns.rare.other_ids:
        return [] if ZERO_ID != topic_id != columns.label.topic_id != ZERO_ID else columns.partitions()
    return [each for each in columns.partitions() if committed_on(columns, each, topic_id) is not None]


def tombstones_of_gone_topics(table: OffsetTable, is_gone: IsGone) -> Iterator[list[Record]]:
    """Tombstones for all offsets, pending ones included, of topics that are gone; in slices, which may be empty.

    Where a partition has offsets of a topic that is gone and of the next one too, they stay: a tombstone would remove
    both, and `committed_on` never tells the older ones.
    """
    records: list[Record] = []
    for count, group_id in enumerate(list(table.group_ids()), 1):
        for columns in table.topics(group_id):
            partitions = _gone_partitions(columns, is_gone)
            if partitions:
                records += offset_tombstones(group_id, {columns.label.name: partitions})
        if count % GROUPS_A_SLICE == 0:
            yield records
            records = []
    yield records


def _gone_partitions(columns: TopicOffsets, is_gone: IsGone) -> list[int]:
    name, rare = columns.label.name, columns.rare
    pending = columns.pending or {}
    if not pending and (rare is None or not rare.other_ids):
        return columns.partitions() if columns.live and is_gone(name, columns.label.topic_id) else []
    found = []
    for partition in sorted({*columns.partitions(), *pending}):
        committed = [columns.get(partition), *(each.committed for each in pending.get(partition, {}).values())]
        ids = {each.topic_id for each in committed if each is not None}
        if ids and all(is_gone(name, topic_id) for topic_id in ids):
            found.append(partition)
    return found
