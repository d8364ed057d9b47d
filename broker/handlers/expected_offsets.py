"""Optimistic locking of commits: "set x if the offset is y", by a tagged field of OffsetCommit v8 and later.

| where                          | tagged field 10000, int64                                                |
|--------------------------------|--------------------------------------------------------------------------|
| a partition of the request     | the offset that must be committed now; -1: none                          |
| its answer, in case of conflict| the offset that is committed now; -1: none. The error is INVALID_REQUEST |

Kafka numbers its own tags from 0 and ignores this one. It is compared after the group has accepted the member, with the
offsets committed so far in log order, earlier commits of the same turn included. One conflict refuses the whole commit:
the other partitions answer OPERATION_NOT_ATTEMPTED and nothing is written.
"""

from __future__ import annotations

from collections.abc import Iterable
from struct import Struct
from typing import TYPE_CHECKING, Final

from protocol.errors import ErrorCode

if TYPE_CHECKING:
    from broker.cluster.metadata import Topic
    from broker.coordinator.offsets.table import OffsetTable
    from protocol.messages.offsets import OffsetCommitRequestPartition, OffsetCommitResponsePartition

TAG: Final = 10000
NONE: Final = -1

_INT64 = Struct(">q")
_ZERO_ID: Final = bytes(16)


def refuse_conflicts(
    table: OffsetTable,
    group_id: str,
    wanted: Iterable[tuple[Topic, OffsetCommitRequestPartition, OffsetCommitResponsePartition]],
) -> bool:
    """Compare expected and committed offsets. True: the commit is refused, and all its answers have an error."""
    conflicts: list[tuple[OffsetCommitResponsePartition, int]] = []
    for topic, partition, answer in wanted:
        tags = partition.unknown_tags
        expected = tags.get(TAG) if tags else None
        if expected is None:
            continue
        found = table.get(group_id, topic.name, partition.partition_index)
        # an offset of an earlier topic of the same name
        is_older_topics = found is not None and _ZERO_ID != found.topic_id != topic.topic_id
        current = NONE if found is None or is_older_topics else found.offset
        if len(expected) != _INT64.size or _INT64.unpack(expected)[0] != current:
            conflicts.append((answer, current))
    if not conflicts:
        return False
    for _, _, answer in wanted:
        answer.error_code = ErrorCode.OPERATION_NOT_ATTEMPTED
    for answer, current in conflicts:
        answer.error_code = ErrorCode.INVALID_REQUEST
        answer.unknown_tags = {TAG: _INT64.pack(current)}
    return True
