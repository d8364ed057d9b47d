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

from collections.abc import Sequence
from struct import Struct
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from broker.cluster.topics import Topic
    from broker.coordinator.offsets.table import OffsetTable

TAG: Final = 10000
NONE: Final = -1

_INT64 = Struct(">q")
_ZERO_ID: Final = bytes(16)


def conflicts(
    table: OffsetTable,
    group_id: str,
    topic: Topic,
    partitions: Sequence[int],
    expected: Sequence[bytes | None],
    places: Sequence[int],
) -> dict[int, bytes]:
    """The places where another offset is committed than expected, with the value of the answer's tag."""
    found: dict[int, bytes] = {}
    for at in places:
        value = expected[at]
        if value is None:
            continue
        committed = table.get(group_id, topic.name, partitions[at])
        # an offset of an earlier topic of the same name
        is_older_topics = committed is not None and _ZERO_ID != committed.topic_id != topic.topic_id
        current = NONE if committed is None or is_older_topics else committed.offset
        if len(value) != _INT64.size or _INT64.unpack(value)[0] != current:
            found[at] = _INT64.pack(current)
    return found
