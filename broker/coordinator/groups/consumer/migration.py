"""Conversion of a group in use: classic to consumer, and back (`group.consumer.migration.policy`).

    upgrade     a member of the consumer protocol joins a classic group of consumers: the others stay as members of the
                classic protocol in a consumer group, with their generation as group, assignment and member epoch
    downgrade   the last member of the consumer protocol leaves, or a classic static member replaces it: the group is
                classic again, with the last group epoch as its generation, and its members are told to rejoin

Both are one batch of records: the tombstones of the old group, then the records of the new one.
Source: KIP-848; Kafka's GroupMetadataManager.convertToConsumerGroup and convertToClassicGroup.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

from broker.coordinator.groups.assignors.spec import UNASSIGNED, Assignment
from broker.coordinator.groups.classic.group import CONSUMER_PROTOCOL_TYPE, ClassicGroup
from broker.coordinator.groups.classic.member import Member
from broker.coordinator.groups.classic.rebalance import answer_join, answer_sync, join_refusal
from broker.coordinator.groups.classic.records import group_tombstone, stable_group_record
from broker.coordinator.groups.common.metadata_hash import metadata_hash
from broker.coordinator.groups.consumer.embedded_protocol import read_assignment, read_subscription, write_assignment
from broker.coordinator.groups.consumer.group import ConsumerGroup
from broker.coordinator.groups.consumer.member import (
    NOTHING,
    STABLE,
    ClassicMetadata,
    ConsumerMember,
    CurrentAssignment,
    MemberMetadata,
)
from broker.coordinator.groups.consumer.records import (
    current_record,
    group_record,
    member_record,
    target_epoch_record,
    target_record,
)
from protocol.errors import ErrorCode, KafkaError
from protocol.messages.classic_group import SyncGroupResponse
from protocol.messages.coordinator_records import decode_record

if TYPE_CHECKING:
    from broker.cluster.metadata import ClusterMetadata
    from broker.coordinator.groups.common.outcome import Outcome
    from broker.coordinator.groups.consumer.machine import Machine

UPGRADE: Final = ("upgrade", "bidirectional")  # policies that allow it
DOWNGRADE: Final = ("downgrade", "bidirectional")


# -- classic to consumer -------------------------------------------------------------------------------------------


def upgraded(machine: Machine, group: Any, out: Outcome) -> ConsumerGroup:
    """The consumer group that a classic group becomes; its records go to `out`. Errors: GROUP_ID_NOT_FOUND."""
    if group.group_type != ClassicGroup.group_type:
        raise _cannot_upgrade(group, "it is not a consumer group")
    if group.is_empty:
        for member_id in group.pending_joins:
            out.cancel_timer(("session", group.group_id, member_id))
        out.records.append(group_tombstone(group.group_id))
        return ConsumerGroup(group.group_id)
    if machine.config.group_consumer_migration_policy not in UPGRADE:
        raise _cannot_upgrade(group, "online upgrade is disabled")
    if not group.uses_consumer_protocol():
        raise _cannot_upgrade(group, "the group does not use the consumer embedded protocol")
    if len(group.members) > machine.config.group_consumer_max_size:
        raise _cannot_upgrade(group, "the group size exceeds the consumer group maximum size")
    try:
        members = [_consumer_member(group, member, machine.metadata) for member in group.members.values()]
    except ValueError:
        raise _cannot_upgrade(group, "the embedded consumer protocol is malformed") from None
    _end_rebalance(group, out)
    return _convert(machine, group, members, out)


def _cannot_upgrade(group: Any, reason: str) -> KafkaError:
    return KafkaError(
        ErrorCode.GROUP_ID_NOT_FOUND,
        f"Cannot upgrade classic group {group.group_id} to consumer group because {reason}.",
    )


def _consumer_member(
    group: ClassicGroup, member: Member, metadata: ClusterMetadata
) -> tuple[str, MemberMetadata, Assignment]:
    """A classic member's id, metadata and assignment.

    Errors:  ValueError: its subscription or assignment cannot be read; GROUP_ID_NOT_FOUND: it uses an assignor of its
             own, which the broker could not continue.
    """
    partitions: dict[str, tuple[int, ...]] = {}
    if member.assignment:
        partitions, user_data = read_assignment(member.assignment)
        if user_data:
            raise _cannot_upgrade(group, "an unsupported custom assignor is in use")
    chosen = dict(member.protocols)
    subscription = read_subscription(chosen.get(group.protocol_name or "", member.protocols[0][1]))
    member_metadata = MemberMetadata(
        member.group_instance_id,
        subscription.rack_id,
        member.client_id,
        member.client_host,
        subscription.topics,
        "",
        member.rebalance_timeout_ms,
        None,
        ClassicMetadata(member.session_timeout_ms, member.protocols),
    )
    assignment = {
        metadata.topics[name].topic_id: indexes
        for name, indexes in partitions.items()
        if indexes and name in metadata.topics
    }
    return member.member_id, member_metadata, assignment


def _end_rebalance(group: ClassicGroup, out: Outcome) -> None:
    """Answer all parked requests with REBALANCE_IN_PROGRESS, and cancel the classic group's timers."""
    code = ErrorCode.REBALANCE_IN_PROGRESS
    for member in group.members.values():
        answer_join(group, member, join_refusal(code, member.member_id), out)
        answer_sync(member, SyncGroupResponse(error_code=code), out)
    for timer in (group.join_timer, group.sync_timer, *(("session", group.group_id, m) for m in group.pending_joins)):
        out.cancel_timer(timer)


def _convert(
    machine: Machine, group: ClassicGroup, members: list[tuple[str, MemberMetadata, Assignment]], out: Outcome
) -> ConsumerGroup:
    group_id, epoch = group.group_id, group.generation_id
    names = frozenset().union(*(member_metadata.topic_names for _, member_metadata, _ in members))
    records = [member_record(group_id, member_id, member_metadata) for member_id, member_metadata, _ in members]
    records.append(group_record(group_id, epoch, metadata_hash(names, machine.metadata)))
    records += [target_record(group_id, member_id, assignment) for member_id, _, assignment in members]
    records.append(target_epoch_record(group_id, epoch, 0))
    for member_id, member_metadata, assignment in members:
        assert member_metadata.classic is not None
        assigned = {topic_id: dict.fromkeys(indexes, epoch) for topic_id, indexes in assignment.items()}
        records.append(current_record(group_id, member_id, CurrentAssignment(epoch, epoch, STABLE, assigned, NOTHING)))
        out.set_timer(("session", group_id, member_id), member_metadata.classic.session_timeout_ms)
    # Replaying the records makes the machine's own group; this one is for the rest of the request.
    made = ConsumerGroup(group_id)
    for record in records:
        assert record[0] is not None
        made.replay(*decode_record(record[0], record[1]))
    out.records.append(group_tombstone(group_id))
    out.records += records
    return made


# -- consumer to classic -------------------------------------------------------------------------------------------


def must_downgrade(machine: Machine, group: ConsumerGroup, leaving: Sequence[ConsumerMember]) -> bool:
    """Whether the group becomes classic when these members leave."""
    left = len(group.members) - len(leaving)
    classic_left = group.classic_members - sum(m.uses_classic_protocol for m in leaving)
    return (
        left > 0
        and classic_left == left
        and machine.config.group_consumer_migration_policy in DOWNGRADE
        and left <= machine.config.group_max_size
    )


def must_downgrade_on_replacement(machine: Machine, group: ConsumerGroup, replaced: ConsumerMember | None) -> bool:
    """Whether the group becomes classic when a classic member replaces this one."""
    return (
        replaced is not None
        and not replaced.uses_classic_protocol
        and group.classic_members == len(group.members) - 1
        and machine.config.group_consumer_migration_policy in DOWNGRADE
        and len(group.members) <= machine.config.group_max_size
    )


def downgrade(
    machine: Machine,
    group: ConsumerGroup,
    leaving: Sequence[ConsumerMember],
    joining: ConsumerMember | None,
    out: Outcome,
    *,
    rebalance: bool = True,
) -> None:
    """Write the records of the classic group that is left; `joining` replaces the one member in `leaving`.

    The group is Stable once the records are replayed. A timer starts the rebalance that follows.
    """
    gone = {member.member_id for member in leaving}
    classic = ClassicGroup(group.group_id, out.now_ms, group.group_epoch)
    members = [m for m in group.members.values() if m.member_id not in gone]
    if joining is not None:
        members.append(joining)
    for member in members:
        classic.rebalance_add(_classic_member(group.group_id, member), CONSUMER_PROTOCOL_TYPE, None)
    classic.rebalance_select_protocol()
    assignments = {}
    for member in members:
        from_id = leaving[0].member_id if member is joining else member.member_id
        data = classic.members[member.member_id].metadata(classic.protocol_name)
        try:
            version = read_subscription(data).version
        except ValueError:
            version = 0
        target = group.target.get(from_id, UNASSIGNED)
        assignments[member.member_id] = write_assignment(by_topic_name(target, machine.metadata), version)
        assert member.member_metadata.classic is not None
        out.set_timer(member.session_timer, member.member_metadata.classic.session_timeout_ms)
        for timer in (member.rebalance_timer, member.join_timer, member.sync_timer):
            out.cancel_timer(timer)
    for member in leaving:
        if joining is None or member.member_id != joining.member_id:
            for timer in member.timers():
                out.cancel_timer(timer)
    out.records += group.tombstones()
    out.records.append(stable_group_record(classic, assignments, out.now_ms))
    if rebalance:
        out.set_timer(("downgraded", group.group_id), 0)


def _classic_member(group_id: str, member: ConsumerMember) -> Member:
    member_metadata = member.member_metadata
    assert member_metadata.classic is not None
    return Member(
        group_id,
        member.member_id,
        member_metadata.instance_id,
        member_metadata.client_id,
        member_metadata.client_host,
        member_metadata.rebalance_timeout_ms,
        member_metadata.classic.session_timeout_ms,
        member_metadata.classic.protocols,
    )


def by_topic_name(assignment: Assignment, metadata: ClusterMetadata) -> dict[str, tuple[int, ...]]:
    """An assignment by topic name, as classic clients expect it; without deleted topics."""
    topics = metadata.topics_by_id
    return {topics[t].name: tuple(sorted(partitions)) for t, partitions in assignment.items() if t in topics}
