"""OffsetDelete: delete committed offsets that a group does not use any more.

OffsetDelete  Offsets of topics that the group is subscribed to stay (KIP-496).

Behaviour: a partition without an offset is no error.
Differs:   a topic that no member subscribes to any more can be forgotten at once. In Kafka a static member that comes
           back with another subscription and no rebalance leaves the old one in force.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

from broker.base.context import Context
from broker.coordinator.records import offset_tombstones
from broker.coordinator.written import Records
from broker.turn.decision import Decision
from protocol.errors import ErrorCode, KafkaError
from protocol.messages.offsets import (
    OffsetDeleteResponse,
    OffsetDeleteResponsePartition,
    OffsetDeleteResponseTopic,
)

if TYPE_CHECKING:
    from broker.cluster.metadata import ClusterMetadata
    from broker.coordinator.group_shards import GroupShards
    from broker.coordinator.groups.machine import GroupMachine
    from broker.coordinator.offsets.table import OffsetTable
    from protocol.messages.offsets import OffsetDeleteRequest, OffsetDeleteRequestTopic


class View(Protocol):
    """What these handlers use of the broker."""

    @property
    def metadata(self) -> ClusterMetadata: ...
    @property
    def groups(self) -> GroupShards: ...


def offset_delete(broker: View, ctx: Context, request: OffsetDeleteRequest) -> Decision:
    """Delete the offsets of some partitions.

    Shape:   one tombstone per partition that has an offset, one batch.
    Errors:  INVALID_GROUP_ID, GROUP_ID_NOT_FOUND, NON_EMPTY_GROUP (members that are no consumers: their topics are
             unknown); per partition UNKNOWN_TOPIC_OR_PARTITION, GROUP_SUBSCRIBED_TO_TOPIC.
    Source:  KafkaApis.handleOffsetDeleteRequest, OffsetMetadataManager.deleteOffsets.
    """
    group_id = request.group_id
    if not group_id:
        raise KafkaError(ErrorCode.INVALID_GROUP_ID, "the group id is empty")
    shard = broker.groups.require(group_id, ctx)
    machine: GroupMachine = shard.machine
    group = machine.groups.get(group_id)
    if not machine.has_group(group_id):
        raise KafkaError(ErrorCode.GROUP_ID_NOT_FOUND)
    if group is not None and not group.is_empty and not group.uses_consumer_protocol():
        raise KafkaError(ErrorCode.NON_EMPTY_GROUP)
    topics: list[OffsetDeleteResponseTopic] = []
    deleted: dict[str, dict[int, None]] = {}
    for asked in request.topics:
        topic = broker.metadata.topics.get(asked.name)
        exists = len(topic.partitions) if topic is not None else 0
        answers, there = _decide(asked, exists, group, machine.offsets, group_id)
        topics.append(OffsetDeleteResponseTopic(name=asked.name, partitions=answers))
        deleted.setdefault(asked.name, {}).update(dict.fromkeys(there))  # a topic may be named twice
    records = offset_tombstones(group_id, deleted)
    return Decision(OffsetDeleteResponse(topics=topics), writes=((shard, Records(records)),) if records else ())


def _decide(
    asked: OffsetDeleteRequestTopic, exists: int, group: Any, offsets: OffsetTable, group_id: str
) -> tuple[list[OffsetDeleteResponsePartition], list[int]]:
    """The answers for one topic, and the partitions with an offset to delete, committed or pending."""
    columns = offsets.topic(group_id, asked.name)
    is_subscribed = group is not None and group.is_subscribed(asked.name)
    answers, there = [], []
    for partition in asked.partitions:
        index = partition.partition_index
        code = ErrorCode.NONE
        if not 0 <= index < exists:
            code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        elif is_subscribed:
            code = ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC
        elif columns is not None and (columns.get(index) is not None or index in (columns.pending or ())):
            there.append(index)
        answers.append(OffsetDeleteResponsePartition(partition_index=index, error_code=code))
    return answers, there
