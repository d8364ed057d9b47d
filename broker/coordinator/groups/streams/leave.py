"""How members leave a streams group: by themselves, or removed (fenced) by a timer.

Source: KIP-1071; Kafka's GroupMetadataManager.streamsGroupLeave and streamsGroupFenceMember.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from broker.coordinator.groups.streams.group import StreamsGroup
from broker.coordinator.groups.streams.heartbeat import not_a_streams_group, unknown_member
from broker.coordinator.groups.streams.member import StreamsMember
from broker.coordinator.groups.streams.records import group_record, member_tombstones
from protocol.messages.streams_group import StreamsGroupHeartbeatResponse

if TYPE_CHECKING:
    from broker.coordinator.groups.common.outcome import Outcome
    from broker.coordinator.groups.streams.machine import Machine
    from protocol.messages.streams_group import StreamsGroupHeartbeatRequest


def leave(machine: Machine, request: StreamsGroupHeartbeatRequest, out: Outcome) -> StreamsGroupHeartbeatResponse:
    """A member leaves; it may ask the whole application to shut down.

    Errors:  GROUP_ID_NOT_FOUND, UNKNOWN_MEMBER_ID.
    """
    group = machine.groups.get(request.group_id)
    if not isinstance(group, StreamsGroup):
        raise not_a_streams_group(request.group_id, group)
    if request.shutdown_application and group.shutdown_member_id is None:  # as Kafka: also of one that is no member
        group.shutdown_member_id = request.member_id
    member = group.members.get(request.member_id)
    if member is None:
        raise unknown_member(group, request.member_id)
    fence(group, member, out)
    return StreamsGroupHeartbeatResponse(member_id=request.member_id, member_epoch=request.member_epoch, status=[])


def fence(group: StreamsGroup, member: StreamsMember, out: Outcome) -> None:
    """Remove a member, and increase the group epoch, so that others get its tasks."""
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
    for timer in member.timers():
        out.cancel_timer(timer)
