"""Optimistic locking of commits: "set to x if now y", in a tagged field of OffsetCommit v8 and up.

| where                          | tagged field 10000, int64                                                |
|--------------------------------|--------------------------------------------------------------------------|
| a partition of the request     | the offset that must be committed now; -1: none may be                   |
| its answer, in case of conflict| the offset that is committed now; -1: none. The error is INVALID_REQUEST |

Kafka counts its own tags up from 0 and passes over this one. It is looked at after the group has let the member pass,
against what is committed in log order: a commit handled before in the same turn counts. One conflict refuses the whole
commit: the other partitions answer OPERATION_NOT_ATTEMPTED and nothing is written.
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
    """Compare what a commit expects with what is committed; whether it is refused, and then all its answers say so."""
    conflicts: list[tuple[OffsetCommitResponsePartition, int]] = []
    for topic, partition, answer in wanted:
        tags = partition.unknown_tags
        expected = tags.get(TAG) if tags else None
        if expected is None:
            continue
        found = table.get(group_id, topic.name, partition.partition_index)
        is_older_topics = found is not None and _ZERO_ID != found.topic_id != topic.topic_id  # of the same name
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
