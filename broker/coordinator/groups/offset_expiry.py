"""Which committed offsets of groups have expired, and the records that say so."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from broker.coordinator.groups.classic.group import ClassicGroup
from broker.coordinator.groups.classic.states import EMPTY, STABLE
from broker.coordinator.groups.kinds import SHARE, group_tombstones
from broker.coordinator.records import offset_tombstones

if TYPE_CHECKING:
    from broker.coordinator.offsets.table import OffsetTable, TopicOffsets
    from broker.turn.decision import Record

NEVER = None


def retention_base_ms(group: ClassicGroup | None) -> int | None:
    """When the retention of a group's offsets starts: Unix milliseconds, -1 for each offset's own commit, or never.

    | group                                                      | starts with                                        |
    |------------------------------------------------------------|----------------------------------------------------|
    | simple: offsets only, or no protocol type                  | the commit                                         |
    | of another protocol than the classic one                   | the commit (only topics not subscribed)            |
    | with a protocol type, Empty                                | when it became Empty (if not known: the commit)    |
    | consumers whose subscriptions can be read, Stable          | the commit (only topics not subscribed any more)   |
    | else                                                       | never                                              |

    Source: KIP-211, KIP-496; Kafka's ClassicGroup.offsetExpirationCondition.
    """
    if group is None or not group.protocol_type or group.group_type != ClassicGroup.group_type:
        return -1
    if group.state is EMPTY:
        return group.current_state_timestamp_ms
    if group.state is STABLE and group.uses_consumer_protocol() and group.topics() is not None:
        return -1
    return NEVER


def expired_partitions(
    group: ClassicGroup | None, columns: TopicOffsets, topic: str, now_ms: int, retention_ms: int
) -> list[int]:
    """The partitions of one topic with an expired offset.

    An offset with an expiry time of its own (OffsetCommit v2-4) expires at that time; one that an open transaction may
    replace does not expire.
    """
    if columns.pending:
        expired = _expired_partitions(group, columns, topic, now_ms, retention_ms)
        return [partition for partition in expired if partition not in columns.pending]
    return _expired_partitions(group, columns, topic, now_ms, retention_ms)


def _expired_partitions(
    group: ClassicGroup | None, columns: TopicOffsets, topic: str, now_ms: int, retention_ms: int
) -> list[int]:
    base_ms = retention_base_ms(group)
    if base_ms is NEVER or (group is not None and group.is_subscribed(topic)):
        return []
    limit_ms = now_ms - retention_ms
    if not columns.expire:
        if base_ms > limit_ms:
            return []
        if base_ms >= 0:
            return columns.partitions()
        if columns.oldest_ms > limit_ms:
            return []
    expired = []
    for partition in columns.partitions():
        committed = columns.get(partition)
        assert committed is not None
        own_ms = committed.expire_timestamp_ms
        if own_ms >= 0:
            is_expired = now_ms >= own_ms
        else:
            is_expired = (base_ms if base_ms >= 0 else committed.commit_timestamp_ms) <= limit_ms
        if is_expired:
            expired.append(partition)
    return expired


def expired_offsets(
    group: ClassicGroup | None, offsets: OffsetTable, group_id: str, now_ms: int, retention_ms: int
) -> tuple[dict[str, list[int]], bool]:
    """All expired partitions of a group by topic, and whether no other offset is left."""
    expired: dict[str, list[int]] = {}
    is_all = not offsets.has_pending(group_id)
    for topic in offsets.partitions(group_id):
        columns = offsets.topic(group_id, topic)
        assert columns is not None
        partitions = expired_partitions(group, columns, topic, now_ms, retention_ms)
        if partitions:
            expired[topic] = partitions
        is_all = is_all and len(partitions) == columns.live
    return expired, is_all


def expiry_records(
    groups: Mapping[str, Any], offsets: OffsetTable, group_ids: Iterable[str], now_ms: int, retention_ms: int
) -> list[Record]:
    """Tombstones for the expired offsets of these groups, and for groups without members that have none left."""
    records: list[Record] = []
    for group_id in group_ids:
        group = groups.get(group_id)
        if getattr(group, "group_type", "") == SHARE:
            continue  # it has no offsets here, and stays when it is empty
        expired, is_all = expired_offsets(group, offsets, group_id, now_ms, retention_ms)
        records += offset_tombstones(group_id, expired)
        if is_all and (group is None or group.is_empty):
            records += group_tombstones(group_id, group)
    return records
