"""The records of share groups: values to Kafka's schemas and back."""

from __future__ import annotations

from collections.abc import Iterable

from broker.coordinator.groups.assignors.spec import Assignment
from broker.coordinator.groups.share.member import CurrentAssignment, MemberMetadata
from broker.coordinator.groups.share.state_partitions import StatePartitions, Topics
from broker.turn.decision import Record
from protocol.messages.coordinator_records import encode_key, encode_record
from protocol.messages.share_group_records import (
    ShareGroupCurrentMemberAssignmentKey,
    ShareGroupCurrentMemberAssignmentValue,
    ShareGroupCurrentMemberAssignmentValueTopicPartitions,
    ShareGroupMemberMetadataKey,
    ShareGroupMemberMetadataValue,
    ShareGroupMetadataKey,
    ShareGroupMetadataValue,
    ShareGroupStatePartitionMetadataKey,
    ShareGroupStatePartitionMetadataValue,
    ShareGroupStatePartitionMetadataValueTopicInfo,
    ShareGroupStatePartitionMetadataValueTopicPartitionsInfo,
    ShareGroupTargetAssignmentMemberKey,
    ShareGroupTargetAssignmentMemberValue,
    ShareGroupTargetAssignmentMemberValueTopicPartition,
    ShareGroupTargetAssignmentMetadataKey,
    ShareGroupTargetAssignmentMetadataValue,
)

# -- writing -------------------------------------------------------------------------------------------------------


def group_record(group_id: str, epoch: int, metadata_hash: int) -> Record:
    """The group epoch, and the hash of the subscribed topics."""
    value = ShareGroupMetadataValue(epoch=epoch, metadata_hash=metadata_hash)
    return encode_key(ShareGroupMetadataKey(group_id=group_id)), encode_record(value, 0)


def member_record(group_id: str, member_id: str, member_metadata: MemberMetadata) -> Record:
    """A member's metadata."""
    value = ShareGroupMemberMetadataValue(
        rack_id=member_metadata.rack_id,
        client_id=member_metadata.client_id,
        client_host=member_metadata.client_host,
        subscribed_topic_names=sorted(member_metadata.topic_names),
    )
    return encode_key(ShareGroupMemberMetadataKey(group_id=group_id, member_id=member_id)), encode_record(value, 0)


def target_epoch_record(group_id: str, assignment_epoch: int, timestamp_ms: int) -> Record:
    """The epoch of a target assignment; written after the members' targets."""
    value = ShareGroupTargetAssignmentMetadataValue(
        assignment_epoch=assignment_epoch, assignment_timestamp=timestamp_ms
    )
    return encode_key(ShareGroupTargetAssignmentMetadataKey(group_id=group_id)), encode_record(value, 0)


def target_record(group_id: str, member_id: str, assignment: Assignment) -> Record:
    """A member's target assignment."""
    value = ShareGroupTargetAssignmentMemberValue(
        topic_partitions=[
            ShareGroupTargetAssignmentMemberValueTopicPartition(topic_id=topic_id, partitions=list(partitions))
            for topic_id, partitions in assignment.items()
        ]
    )
    return _target_key(group_id, member_id), encode_record(value, 0)


def current_record(group_id: str, member_id: str, current: CurrentAssignment) -> Record:
    """A member's current assignment."""
    value = ShareGroupCurrentMemberAssignmentValue(
        member_epoch=current.member_epoch,
        previous_member_epoch=current.previous_member_epoch,
        state=current.state,
        assigned_partitions=[
            ShareGroupCurrentMemberAssignmentValueTopicPartitions(topic_id=topic_id, partitions=list(partitions))
            for topic_id, partitions in current.assigned.items()
        ],
    )
    return _current_key(group_id, member_id), encode_record(value, 0)


def state_partitions_record(group_id: str, partitions: StatePartitions) -> Record:
    """The share partitions of the group that have state."""
    value = ShareGroupStatePartitionMetadataValue(
        initializing_topics=_infos(partitions.initializing),
        initialized_topics=_infos(partitions.initialized),
        deleting_topics=[
            ShareGroupStatePartitionMetadataValueTopicInfo(topic_id=topic_id, topic_name=name)
            for topic_id, name in partitions.deleting.items()
        ],
    )
    return encode_key(ShareGroupStatePartitionMetadataKey(group_id=group_id)), encode_record(value, 0)


def _infos(topics: Topics) -> list[ShareGroupStatePartitionMetadataValueTopicPartitionsInfo]:
    return [
        ShareGroupStatePartitionMetadataValueTopicPartitionsInfo(
            topic_id=topic_id, topic_name=name, partitions=sorted(partitions)
        )
        for topic_id, (name, partitions) in topics.items()
    ]


def member_tombstones(group_id: str, member_id: str) -> list[Record]:
    """Deletes a member: current assignment, target, and metadata, in this order."""
    return [
        (_current_key(group_id, member_id), None),
        (_target_key(group_id, member_id), None),
        (encode_key(ShareGroupMemberMetadataKey(group_id=group_id, member_id=member_id)), None),
    ]


def group_tombstones(group_id: str, member_ids: Iterable[str]) -> list[Record]:
    """Deletes a group with its members and its list of share partitions."""
    members = list(member_ids)
    return [
        *((_current_key(group_id, m), None) for m in members),
        *((_target_key(group_id, m), None) for m in members),
        (encode_key(ShareGroupTargetAssignmentMetadataKey(group_id=group_id)), None),
        *((encode_key(ShareGroupMemberMetadataKey(group_id=group_id, member_id=m)), None) for m in members),
        (encode_key(ShareGroupStatePartitionMetadataKey(group_id=group_id)), None),
        (encode_key(ShareGroupMetadataKey(group_id=group_id)), None),
    ]


def _target_key(group_id: str, member_id: str) -> bytes:
    return encode_key(ShareGroupTargetAssignmentMemberKey(group_id=group_id, member_id=member_id))


def _current_key(group_id: str, member_id: str) -> bytes:
    return encode_key(ShareGroupCurrentMemberAssignmentKey(group_id=group_id, member_id=member_id))


# -- reading -------------------------------------------------------------------------------------------------------


def member_metadata_of(value: ShareGroupMemberMetadataValue) -> MemberMetadata:
    """A member's metadata as a value."""
    return MemberMetadata(value.rack_id, value.client_id, value.client_host, frozenset(value.subscribed_topic_names))


def assignment_of(value: ShareGroupTargetAssignmentMemberValue) -> Assignment:
    """A target assignment as a value."""
    return {t.topic_id: tuple(t.partitions) for t in value.topic_partitions if t.partitions}


def current_assignment_of(value: ShareGroupCurrentMemberAssignmentValue) -> CurrentAssignment:
    """A current assignment as a value."""
    assigned = {t.topic_id: tuple(t.partitions) for t in value.assigned_partitions if t.partitions}
    return CurrentAssignment(value.member_epoch, value.previous_member_epoch, assigned, value.state)


def state_partitions_of(value: ShareGroupStatePartitionMetadataValue) -> StatePartitions:
    """The share partitions of a group as a value."""
    return StatePartitions(
        {t.topic_id: (t.topic_name, frozenset(t.partitions)) for t in value.initializing_topics},
        {t.topic_id: (t.topic_name, frozenset(t.partitions)) for t in value.initialized_topics},
        {t.topic_id: t.topic_name for t in value.deleting_topics},
    )
