"""The records of consumer groups: values to Kafka's schemas and back.

The record of a member of the consumer protocol has a *null* ClassicMemberMetadata. The schema's default is an empty
struct, which would be read as a member of the classic protocol.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from broker.coordinator.groups.assignors.spec import Assignment
from broker.coordinator.groups.common.records import epochs_of, put_revocation_epoch, revocation_epoch_of
from broker.coordinator.groups.consumer.member import (
    UNKNOWN,
    UNRELEASED_PARTITIONS,
    ClassicMetadata,
    CurrentAssignment,
    MemberMetadata,
    PartitionEpochs,
)
from broker.turn.decision import Record
from protocol.messages.coordinator_records import (
    ClassicMemberMetadata,
    ClassicProtocol,
    ConsumerGroupCurrentMemberAssignmentKey,
    ConsumerGroupCurrentMemberAssignmentValue,
    ConsumerGroupCurrentMemberAssignmentValueTopicPartitions,
    ConsumerGroupMemberMetadataKey,
    ConsumerGroupMemberMetadataValue,
    ConsumerGroupMetadataKey,
    ConsumerGroupMetadataValue,
    ConsumerGroupRegularExpressionKey,
    ConsumerGroupRegularExpressionValue,
    ConsumerGroupTargetAssignmentMemberKey,
    ConsumerGroupTargetAssignmentMemberValue,
    ConsumerGroupTargetAssignmentMemberValueTopicPartition,
    ConsumerGroupTargetAssignmentMetadataKey,
    ConsumerGroupTargetAssignmentMetadataValue,
    encode_key,
    encode_record,
)


class ResolvedRegex(NamedTuple):
    """The topics that an expression matched when it was last resolved."""

    topics: frozenset[str]
    version: int  # of the cluster metadata
    timestamp_ms: int


# -- writing -------------------------------------------------------------------------------------------------------


def group_record(group_id: str, epoch: int, metadata_hash: int) -> Record:
    """The group epoch, and the hash of the subscribed topics."""
    value = ConsumerGroupMetadataValue(epoch=epoch, metadata_hash=metadata_hash)
    return encode_key(ConsumerGroupMetadataKey(group_id=group_id)), encode_record(value, 0)


def member_record(group_id: str, member_id: str, member_metadata: MemberMetadata) -> Record:
    """A member's metadata."""
    classic = member_metadata.classic
    value = ConsumerGroupMemberMetadataValue(
        instance_id=member_metadata.instance_id,
        rack_id=member_metadata.rack_id,
        client_id=member_metadata.client_id,
        client_host=member_metadata.client_host,
        subscribed_topic_names=sorted(member_metadata.topic_names),
        subscribed_topic_regex=member_metadata.topic_regex,
        rebalance_timeout_ms=member_metadata.rebalance_timeout_ms,
        server_assignor=member_metadata.server_assignor,
        classic_member_metadata=None
        if classic is None
        else ClassicMemberMetadata(
            session_timeout_ms=classic.session_timeout_ms,
            supported_protocols=[ClassicProtocol(name=name, metadata=data) for name, data in classic.protocols],
        ),
    )
    return _member_key(group_id, member_id), encode_record(value, 0)


def target_epoch_record(group_id: str, assignment_epoch: int, timestamp_ms: int) -> Record:
    """The epoch of a target assignment; written after the members' targets."""
    value = ConsumerGroupTargetAssignmentMetadataValue(
        assignment_epoch=assignment_epoch, assignment_timestamp=timestamp_ms
    )
    return encode_key(ConsumerGroupTargetAssignmentMetadataKey(group_id=group_id)), encode_record(value, 0)


def target_record(group_id: str, member_id: str, assignment: Assignment) -> Record:
    """A member's target assignment."""
    value = ConsumerGroupTargetAssignmentMemberValue(
        topic_partitions=[
            ConsumerGroupTargetAssignmentMemberValueTopicPartition(topic_id=topic_id, partitions=list(partitions))
            for topic_id, partitions in assignment.items()
        ]
    )
    return _target_key(group_id, member_id), encode_record(value, 0)


def current_record(group_id: str, member_id: str, current: CurrentAssignment) -> Record:
    """A member's current assignment, with the assignment epoch of each partition."""
    value = ConsumerGroupCurrentMemberAssignmentValue(
        member_epoch=current.member_epoch,
        previous_member_epoch=current.previous_member_epoch,
        state=current.state,
        assigned_partitions=_with_epochs(current.assigned),
        partitions_pending_revocation=_with_epochs(current.pending),
    )
    put_revocation_epoch(value, current.revocation_epoch)
    return _current_key(group_id, member_id), encode_record(value, 0)


def _with_epochs(owned: PartitionEpochs) -> list[ConsumerGroupCurrentMemberAssignmentValueTopicPartitions]:
    return [
        ConsumerGroupCurrentMemberAssignmentValueTopicPartitions(
            topic_id=topic_id, partitions=list(epochs), assignment_epochs=list(epochs.values())
        )
        for topic_id, epochs in owned.items()
    ]


def regex_record(group_id: str, regex: str, resolved: ResolvedRegex) -> Record:
    """The topics that an expression matches."""
    value = ConsumerGroupRegularExpressionValue(
        topics=sorted(resolved.topics), version=resolved.version, timestamp=resolved.timestamp_ms
    )
    return _regex_key(group_id, regex), encode_record(value, 0)


def regex_tombstone(group_id: str, regex: str) -> Record:
    """Deletes an expression to which no member subscribes any more."""
    return _regex_key(group_id, regex), None


def member_tombstones(group_id: str, member_id: str) -> list[Record]:
    """Deletes a member: current assignment, target, and metadata, in this order."""
    return [
        (_current_key(group_id, member_id), None),
        (_target_key(group_id, member_id), None),
        (_member_key(group_id, member_id), None),
    ]


def group_tombstones(group_id: str, member_ids: Iterable[str], regexes: Iterable[str]) -> list[Record]:
    """Deletes a group with its members and expressions."""
    members = list(member_ids)
    return [
        *((_current_key(group_id, m), None) for m in members),
        *((_target_key(group_id, m), None) for m in members),
        (encode_key(ConsumerGroupTargetAssignmentMetadataKey(group_id=group_id)), None),
        *((_member_key(group_id, m), None) for m in members),
        *(regex_tombstone(group_id, regex) for regex in regexes),
        (encode_key(ConsumerGroupMetadataKey(group_id=group_id)), None),
    ]


def _member_key(group_id: str, member_id: str) -> bytes:
    return encode_key(ConsumerGroupMemberMetadataKey(group_id=group_id, member_id=member_id))


def _target_key(group_id: str, member_id: str) -> bytes:
    return encode_key(ConsumerGroupTargetAssignmentMemberKey(group_id=group_id, member_id=member_id))


def _current_key(group_id: str, member_id: str) -> bytes:
    return encode_key(ConsumerGroupCurrentMemberAssignmentKey(group_id=group_id, member_id=member_id))


def _regex_key(group_id: str, regex: str) -> bytes:
    return encode_key(ConsumerGroupRegularExpressionKey(group_id=group_id, regular_expression=regex))


# -- reading -------------------------------------------------------------------------------------------------------


def member_metadata_of(value: ConsumerGroupMemberMetadataValue) -> MemberMetadata:
    """A member's metadata as a value."""
    classic = value.classic_member_metadata
    return MemberMetadata(
        value.instance_id,
        value.rack_id,
        value.client_id,
        value.client_host,
        frozenset(value.subscribed_topic_names),
        value.subscribed_topic_regex or "",
        value.rebalance_timeout_ms,
        value.server_assignor,
        None
        if classic is None
        else ClassicMetadata(
            classic.session_timeout_ms, tuple((p.name, bytes(p.metadata)) for p in classic.supported_protocols)
        ),
    )


def assignment_of(value: ConsumerGroupTargetAssignmentMemberValue) -> Assignment:
    """A target assignment as a value."""
    return {t.topic_id: tuple(t.partitions) for t in value.topic_partitions if t.partitions}


def current_assignment_of(value: ConsumerGroupCurrentMemberAssignmentValue) -> CurrentAssignment:
    """A current assignment as a value; a state of a newer broker as UNKNOWN."""
    epoch = max(value.member_epoch, 0)
    return CurrentAssignment(
        value.member_epoch,
        value.previous_member_epoch,
        value.state if 0 <= value.state <= UNRELEASED_PARTITIONS else UNKNOWN,
        epochs_of(value.assigned_partitions, "topic_id", epoch),
        epochs_of(value.partitions_pending_revocation, "topic_id", epoch),
        revocation_epoch_of(value),
    )
