"""How members leave a streams group: by themselves, or removed (fenced) by a timer.

Source: KIP-1071; Kafka's GroupMetadataManager.streamsGroupLeave and streamsGroupFenceMember.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from broker.coordinator.groups.common.member import STATIC_LEAVING_EPOCH
from broker.coordinator.groups.common.target import NEVER_COMPUTED_MS
from broker.coordinator.groups.streams.group import StreamsGroup
from broker.coordinator.groups.streams.member import NOTHING, StreamsMember
from broker.coordinator.groups.streams.records import (
    current_record,
    group_record,
    member_tombstones,
    target_epoch_record,
)
from broker.coordinator.groups.streams.sender import known_member, not_a_streams_group
from protocol.messages.streams_group import StreamsGroupHeartbeatResponse

if TYPE_CHECKING:
    from broker.coordinator.groups.common.outcome import Outcome
    from broker.coordinator.groups.streams.machine import Machine
    from broker.coordinator.groups.streams.member import CurrentAssignment
    from protocol.messages.streams_group import StreamsGroupHeartbeatRequest


def leave(machine: Machine, request: StreamsGroupHeartbeatRequest, out: Outcome) -> StreamsGroupHeartbeatResponse:
    """A member leaves for good (-1), or a static one for a while (-2): it keeps its tasks until its session ends.

    It may ask the whole application to shut down.

    Errors:  GROUP_ID_NOT_FOUND, UNKNOWN_MEMBER_ID, FENCED_INSTANCE_ID.
    """
    group = machine.groups.get(request.group_id)
    if not isinstance(group, StreamsGroup):
        raise not_a_streams_group(request.group_id, group)
    if request.shutdown_application and group.shutdown_member_id is None:  # as Kafka: also of one that is no member
        group.shutdown_member_id = request.member_id
    member = known_member(group, request.member_id, request.instance_id)
    if request.member_epoch == STATIC_LEAVING_EPOCH:
        out.records.append(current_record(group.group_id, member.member_id, _away(member)))
    else:
        fence(group, member, out)
    return StreamsGroupHeartbeatResponse(member_id=request.member_id, member_epoch=request.member_epoch, status=[])


def _away(member: StreamsMember) -> CurrentAssignment:
    """What a static member has while it is away: its tasks, at assignment epoch 0, and nothing to be revoked."""
    assigned = member.current.assigned
    active = {subtopology_id: dict.fromkeys(epochs, 0) for subtopology_id, epochs in assigned.active.items()}
    return member.current._replace(
        member_epoch=STATIC_LEAVING_EPOCH, assigned=assigned._replace(active=active), pending=NOTHING
    )


def fence(group: StreamsGroup, member: StreamsMember, out: Outcome) -> None:
    """Remove a member, and increase the group epoch, so that others get its tasks; with the last, its target too."""
    out.records += member_tombstones(group.group_id, member.member_id)
    out.records.append(
        group_record(
            group.group_id,
            group.group_epoch + 1,
            group.metadata_hash,
            group.validated_topology_epoch,
            group.last_assignment_configs,
        )
    )
    if len(group.members) == 1:
        out.records.append(target_epoch_record(group.group_id, group.group_epoch + 1, NEVER_COMPUTED_MS))
    for timer in member.timers():
        out.cancel_timer(timer)
