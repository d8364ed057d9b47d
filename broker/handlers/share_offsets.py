"""DescribeShareGroupOffsets, AlterShareGroupOffsets and DeleteShareGroupOffsets: where a share group reads (KIP-932).

DescribeShareGroupOffsets  The start offset of each share partition. v1: lag (KIP-1226).
AlterShareGroupOffsets     Sets start offsets; the group must have no members. It makes the group if there is none.
DeleteShareGroupOffsets    Deletes what a group without members has stored for topics.

Behaviour: the start offset is the stored one, which follows with the next change after records were acknowledged; -1:
           nothing is stored. Lag counts the records behind it that are neither acknowledged nor archived.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from broker.base.context import Context
from broker.coordinator.groups.common.metadata_hash import metadata_hash
from broker.coordinator.groups.share.group import ShareGroup
from broker.coordinator.groups.share.records import group_record, state_partitions_record
from broker.coordinator.groups.share.state_partitions import NO_PARTITIONS, Topics
from broker.coordinator.share.state import NOT_COUNTED, NOT_STARTED, Key
from broker.handlers.share_group import check_enabled
from broker.turn.decision import Decision
from protocol.errors import ErrorCode, KafkaError
from protocol.messages.share_offsets import (
    AlterShareGroupOffsetsResponse,
    AlterShareGroupOffsetsResponsePartition,
    AlterShareGroupOffsetsResponseTopic,
    DeleteShareGroupOffsetsResponse,
    DeleteShareGroupOffsetsResponseTopic,
    DescribeShareGroupOffsetsResponse,
    DescribeShareGroupOffsetsResponseGroup,
    DescribeShareGroupOffsetsResponsePartition,
    DescribeShareGroupOffsetsResponseTopic,
)

if TYPE_CHECKING:
    from broker.cluster.metadata import ClusterMetadata
    from broker.cluster.topics import Topic
    from broker.coordinator.group_shards import GroupShards
    from broker.coordinator.runtime import Shard
    from broker.coordinator.share.table import SharePartitions
    from broker.partitions.table import Partitions
    from protocol.messages.share_offsets import (
        AlterShareGroupOffsetsRequest,
        AlterShareGroupOffsetsRequestTopic,
        DeleteShareGroupOffsetsRequest,
        DescribeShareGroupOffsetsRequest,
        DescribeShareGroupOffsetsRequestGroup,
    )

UNKNOWN_TEXT = "This server does not host this topic-partition."


class View(Protocol):
    """What these handlers use of the broker."""

    @property
    def metadata(self) -> ClusterMetadata: ...
    @property
    def groups(self) -> GroupShards: ...
    @property
    def partitions(self) -> Partitions: ...
    @property
    def share(self) -> SharePartitions: ...


# -- describe ------------------------------------------------------------------------------------------------------


def describe_share_group_offsets(broker: View, ctx: Context, request: DescribeShareGroupOffsetsRequest) -> Decision:
    """Describe the start offsets of groups; what is not there is -1, not an error, also for a group of another type.

    Errors:  UNSUPPORTED_VERSION; per group: NOT_COORDINATOR, COORDINATOR_LOAD_IN_PROGRESS, COORDINATOR_NOT_AVAILABLE;
             INVALID_GROUP_ID, INVALID_REQUEST: no name; no partition, or a negative one (Kafka: -1).
    Source:  Kafka's GroupCoordinatorService.describeShareGroupOffsets.
    """
    check_enabled(broker)
    groups = []
    for asked in request.groups:
        group = DescribeShareGroupOffsetsResponseGroup(group_id=asked.group_id)
        try:
            group.topics = _described(broker, ctx, asked)
        except KafkaError as error:
            group.error_code, group.error_message = error.code, error.message
        groups.append(group)
    return Decision(DescribeShareGroupOffsetsResponse(groups=groups))


def _described(
    broker: View, ctx: Context, asked: DescribeShareGroupOffsetsRequestGroup
) -> list[DescribeShareGroupOffsetsResponseTopic]:
    metadata, unknown, wanted = broker.metadata, [], {}
    if asked.topics is None:
        group = broker.groups.require(asked.group_id, ctx).machine.groups.get(asked.group_id)
        partitions = group.state_partitions if isinstance(group, ShareGroup) else NO_PARTITIONS
        for topic_id, (_, found) in partitions.initialized.items():
            if topic_id in metadata.topics_by_id:
                wanted[metadata.topics_by_id[topic_id]] = sorted(found)
    else:
        for each in asked.topics:
            topic = metadata.topics.get(each.topic_name)
            if topic is not None:
                wanted[topic] = each.partitions
                continue
            unknown.append(
                DescribeShareGroupOffsetsResponseTopic(
                    topic_name=each.topic_name,
                    partitions=[_partition(index, NOT_STARTED) for index in each.partitions],
                )
            )
    if wanted and not asked.group_id:
        raise KafkaError(ErrorCode.INVALID_GROUP_ID, "GroupId can't be empty.")
    if asked.topics is not None and any(not indexes or min(indexes) < 0 for indexes in wanted.values()):
        raise KafkaError(ErrorCode.INVALID_REQUEST, "A topic is named without a partition, or with a negative one.")
    return [
        DescribeShareGroupOffsetsResponseTopic(
            topic_name=topic.name,
            topic_id=topic.topic_id,
            partitions=[_describe_partition(broker, asked.group_id, topic, index) for index in indexes],
        )
        for topic, indexes in wanted.items()
    ] + unknown


def _describe_partition(
    broker: View, group_id: str, topic: Topic, index: int
) -> DescribeShareGroupOffsetsResponsePartition:
    coordinator = broker.share.coordinator
    coordinator.ensure_topic()
    state = coordinator.state(Key(group_id, topic.topic_id, index))
    if state is None or not 0 <= index < len(topic.partitions):
        return _partition(index, NOT_STARTED)
    answer = _partition(index, state.start_offset)
    answer.leader_epoch = state.leader_epoch
    if state.start_offset != NOT_STARTED and state.delivery_complete_count != NOT_COUNTED:
        end = broker.partitions.get(topic, index).high_watermark
        answer.lag = end - state.start_offset - state.delivery_complete_count
    return answer


def _partition(index: int, start_offset: int) -> DescribeShareGroupOffsetsResponsePartition:
    return DescribeShareGroupOffsetsResponsePartition(partition_index=index, start_offset=start_offset)


# -- alter ---------------------------------------------------------------------------------------------------------


def alter_share_group_offsets(broker: View, ctx: Context, request: AlterShareGroupOffsetsRequest) -> Decision:
    """Set start offsets of a group without members.

    Shape:   the group's list of share partitions, before their states and after them.
    Errors:  UNSUPPORTED_VERSION, INVALID_GROUP_ID, GROUP_ID_NOT_FOUND (a group of another type), NON_EMPTY_GROUP,
             NOT_COORDINATOR, COORDINATOR_LOAD_IN_PROGRESS; per partition UNKNOWN_TOPIC_OR_PARTITION,
             COORDINATOR_NOT_AVAILABLE.
    Source:  Kafka's GroupMetadataManager.alterShareGroupOffsets.
    """
    check_enabled(broker)
    group_id = request.group_id
    shard, group = _empty_group(broker, ctx, group_id)
    metadata = broker.metadata
    topics: Topics = {}
    starts: dict[Key, int] = {}
    responses = []
    for asked in request.topics:
        topic = metadata.topics.get(asked.topic_name)
        responses.append(_altered(asked, topic))
        if topic is not None:
            count = _size(topic)
            good = {p.partition_index: p.start_offset for p in asked.partitions if 0 <= p.partition_index < count}
            topics = {**topics, topic.topic_id: (topic.name, frozenset(good))}
            starts.update({Key(group_id, topic.topic_id, index): start for index, start in good.items()})
    if not starts:
        return Decision(AlterShareGroupOffsetsResponse(responses=responses))
    records = []
    if group is None:
        group = ShareGroup(group_id)
        records.append(group_record(group_id, group.group_epoch, metadata_hash((), metadata)))
    records.append(state_partitions_record(group_id, group.state_partitions.begun(topics)))
    shard.append(records, ctx.now_ms)
    broker.share.drop_group(group_id)

    def settled(durable: bool) -> None:
        _update_list(shard, group_id, topics, durable=durable)
        if not durable:
            _refuse_partitions(responses, ErrorCode.COORDINATOR_NOT_AVAILABLE)

    try:
        broker.share.coordinator.initialize(starts, group.group_epoch, settled, at_once=True)
    except KafkaError as error:
        _refuse_partitions(responses, error.code)
    return Decision(AlterShareGroupOffsetsResponse(responses=responses))


def _refuse_partitions(responses: list[AlterShareGroupOffsetsResponseTopic], code: int) -> None:
    for response in responses:
        for answer in response.partitions:
            answer.error_code = answer.error_code or code


def _size(topic: Topic) -> int:
    return len(topic.partitions)


def _altered(asked: AlterShareGroupOffsetsRequestTopic, topic: Topic | None) -> AlterShareGroupOffsetsResponseTopic:
    answers = []
    for each in asked.partitions:
        answer = AlterShareGroupOffsetsResponsePartition(partition_index=each.partition_index)
        if topic is None or not 0 <= each.partition_index < _size(topic):
            answer.error_code, answer.error_message = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, UNKNOWN_TEXT
        answers.append(answer)
    return AlterShareGroupOffsetsResponseTopic(
        topic_name=asked.topic_name, topic_id=b"\0" * 16 if topic is None else topic.topic_id, partitions=answers
    )


def _update_list(shard: Shard, group_id: str, topics: Topics, *, durable: bool) -> None:
    """Note in the group's list of share partitions whether the states of these topics have become durable."""
    group = shard.machine.groups.get(group_id)
    if isinstance(group, ShareGroup):
        partitions = group.state_partitions
        after = partitions.ended(topics) if durable else partitions.given_up(topics)
        shard.append([state_partitions_record(group_id, after)])


def _empty_group(broker: View, ctx: Context, group_id: str) -> tuple[Shard, ShareGroup | None]:
    """The group's shard, and the group if there is one. Errors: as alter_share_group_offsets."""
    if not group_id:
        raise KafkaError(ErrorCode.INVALID_GROUP_ID, "The group id is invalid.")
    shard = broker.groups.require(group_id, ctx)
    group = shard.machine.groups.get(group_id)
    if not isinstance(group, ShareGroup):
        if shard.machine.has_group(group_id):
            raise KafkaError(ErrorCode.GROUP_ID_NOT_FOUND, f"Group {group_id} is not a share group.")
        return shard, None
    if group.members:
        raise KafkaError(ErrorCode.NON_EMPTY_GROUP, "The group is not empty.")
    return shard, group


# -- delete --------------------------------------------------------------------------------------------------------


def delete_share_group_offsets(broker: View, ctx: Context, request: DeleteShareGroupOffsetsRequest) -> Decision:
    """Delete what a group without members has stored for topics.

    Shape:   the group's list of share partitions, before the tombstones of their states and after them.
    Errors:  UNSUPPORTED_VERSION, INVALID_GROUP_ID, GROUP_ID_NOT_FOUND, NON_EMPTY_GROUP, NOT_COORDINATOR,
             COORDINATOR_LOAD_IN_PROGRESS, COORDINATOR_NOT_AVAILABLE; per topic UNKNOWN_TOPIC_OR_PARTITION,
             COORDINATOR_NOT_AVAILABLE.
    Source:  Kafka's GroupMetadataManager.sharePartitionsEligibleForOffsetDeletion, completeDeleteShareGroupOffsets.
    """
    check_enabled(broker)
    group_id = request.group_id
    shard, group = _empty_group(broker, ctx, group_id)
    if group is None:
        raise KafkaError(ErrorCode.GROUP_ID_NOT_FOUND, f"Group {group_id} not found.")
    partitions, responses, gone = group.state_partitions, [], {}
    for asked in request.topics:
        topic = broker.metadata.topics.get(asked.topic_name)
        answer = DeleteShareGroupOffsetsResponseTopic(topic_name=asked.topic_name)
        if topic is None:
            answer.error_code, answer.error_message = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, UNKNOWN_TEXT
        elif topic.topic_id in partitions.initialized or topic.topic_id in partitions.deleting:
            answer.topic_id = topic.topic_id
            found = partitions.initialized.get(topic.topic_id, ("", frozenset(range(_size(topic)))))[1]
            gone[topic.topic_id] = sorted(found)
        else:
            answer.error_code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
            answer.error_message = "There is no offset information to delete."
        responses.append(answer)
    if gone:
        shard.append([state_partitions_record(group_id, partitions.to_delete(gone))], ctx.now_ms)
        broker.share.drop_group(group_id)

        def settled(durable: bool) -> None:
            group = shard.machine.groups.get(group_id)
            if durable and isinstance(group, ShareGroup):
                shard.append([state_partitions_record(group_id, group.state_partitions.deleted(gone))])
            if not durable:  # the topics stay in the list of those to delete, so the client's next try finds them
                for answer in responses:
                    answer.error_code = answer.error_code or ErrorCode.COORDINATOR_NOT_AVAILABLE

        keys = [Key(group_id, topic_id, index) for topic_id, indexes in gone.items() for index in indexes]
        broker.share.coordinator.delete(keys, settled)
    return Decision(DeleteShareGroupOffsetsResponse(responses=responses))
