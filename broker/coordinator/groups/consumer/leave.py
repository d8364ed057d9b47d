"""How members leave a consumer group: by themselves, or removed (fenced) by a timer or an administrator.

Source: KIP-848; Kafka's GroupMetadataManager.consumerGroupLeave and consumerGroupFenceMembers.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from broker.coordinator.groups.common.member import STATIC_LEAVING_EPOCH
from broker.coordinator.groups.common.metadata_hash import metadata_hash
from broker.coordinator.groups.common.target import NEVER_COMPUTED_MS
from broker.coordinator.groups.consumer.group import ConsumerGroup
from broker.coordinator.groups.consumer.member import (
    NOTHING,
    ConsumerMember,
)
from broker.coordinator.groups.consumer.migration import downgrade, must_downgrade
from broker.coordinator.groups.consumer.records import (
    current_record,
    group_record,
    member_tombstones,
    regex_tombstone,
    target_epoch_record,
)
from protocol.errors import ErrorCode, KafkaError
from protocol.messages.consumer_group import ConsumerGroupHeartbeatResponse

if TYPE_CHECKING:
    from broker.coordinator.groups.common.outcome import Outcome
    from broker.coordinator.groups.consumer.machine import Machine
    from protocol.messages.consumer_group import ConsumerGroupHeartbeatRequest


def leave(machine: Machine, request: ConsumerGroupHeartbeatRequest, out: Outcome) -> ConsumerGroupHeartbeatResponse:
    """A member leaves for good (-1), or a static one for a while (-2): it keeps its partitions until its session ends.

    Errors:  GROUP_ID_NOT_FOUND, UNKNOWN_MEMBER_ID, FENCED_INSTANCE_ID.
    """
    group = machine.groups.get(request.group_id)
    if not isinstance(group, ConsumerGroup):
        text = "not found" if group is None else "is not a consumer group"
        raise KafkaError(ErrorCode.GROUP_ID_NOT_FOUND, f"Group {request.group_id} {text}.")
    member = find_member(group, request.member_id, request.instance_id)
    response = ConsumerGroupHeartbeatResponse(member_id=request.member_id, member_epoch=request.member_epoch)
    if request.instance_id is None or request.member_epoch != STATIC_LEAVING_EPOCH:
        fence(machine, group, [member], out)
        return response
    away = member.current._replace(
        member_epoch=STATIC_LEAVING_EPOCH,
        pending=NOTHING,
        assigned={topic_id: dict.fromkeys(epochs, 0) for topic_id, epochs in member.current.assigned.items()},
    )
    out.records.append(current_record(group.group_id, member.member_id, away))
    return response


def find_member(group: ConsumerGroup, member_id: str, instance_id: str | None) -> ConsumerMember:
    """The member that sent a request. Errors: UNKNOWN_MEMBER_ID, FENCED_INSTANCE_ID."""
    if instance_id is None:
        member = group.members.get(member_id)
        if member is None:
            raise KafkaError(ErrorCode.UNKNOWN_MEMBER_ID, f"{member_id} is not a member of the group")
        return member
    member = group.static_member(instance_id)
    if member is None:
        raise KafkaError(ErrorCode.UNKNOWN_MEMBER_ID, f"Instance id {instance_id} is unknown.")
    if member.member_id != member_id:
        raise KafkaError(ErrorCode.FENCED_INSTANCE_ID, f"instance id {instance_id} belongs to {member.member_id}")
    return member


def fence(machine: Machine, group: ConsumerGroup, members: Sequence[ConsumerMember], out: Outcome) -> None:
    """Remove members and increase the group epoch; or downgrade the group if only classic members are left.

    With the last member goes the wait for the next target: its epoch increases too.
    """
    if group.classic_members and must_downgrade(machine, group, members):
        downgrade(machine, group, members, None, out)
        return
    gone = {member.member_id for member in members}
    counts = dict(group.subscriptions)
    for member in members:
        out.records += member_tombstones(group.group_id, member.member_id)
        counts[member.member_metadata.subscription] -= 1
        for timer in member.timers():
            out.cancel_timer(timer)
    left = {subscription: count for subscription, count in counts.items() if count}
    for expression in {m.member_metadata.topic_regex for m in members if m.member_metadata.topic_regex}:
        if not any(expression == r for _, r in left):
            out.records.append(regex_tombstone(group.group_id, expression))
    assert gone <= group.members.keys()
    hash_ = metadata_hash(group.topic_names(left), machine.metadata)
    out.records.append(group_record(group.group_id, group.group_epoch + 1, hash_))
    if len(gone) == len(group.members):
        out.records.append(target_epoch_record(group.group_id, group.group_epoch + 1, NEVER_COMPUTED_MS))
