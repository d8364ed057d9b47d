"""How members leave a streams group, on their own or because nothing is heard of them, and what else the timers do.

    session     nothing was heard of a member for its session time-out
    rebalance   a member did not give tasks back within its rebalance time-out
    delay       the wait for more members before the first assignment is over
    assign      a target assignment that takes long goes on

Source: KIP-1071; streamsGroupLeave, streamsGroupFenceMember, computeDelayedTargetAssignment in GroupMetadataManager.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from broker.coordinator.groups.streams.group import StreamsGroup
from broker.coordinator.groups.streams.heartbeat import configured, not_a_streams_group, unknown_member
from broker.coordinator.groups.streams.member import UNREVOKED_TASKS, StreamsMember
from broker.coordinator.groups.streams.records import group_record, member_tombstones
from broker.coordinator.groups.streams.target import begin, go_on
from protocol.messages.streams_group import StreamsGroupHeartbeatResponse

if TYPE_CHECKING:
    from broker.coordinator.group_machine import GroupMachine
    from broker.coordinator.groups.classic.rebalance import Outcome
    from protocol.messages.streams_group import StreamsGroupHeartbeatRequest


def leave(shard: GroupMachine, request: StreamsGroupHeartbeatRequest, out: Outcome) -> StreamsGroupHeartbeatResponse:
    """A member goes; it may take the whole application with it. Errors: GROUP_ID_NOT_FOUND, UNKNOWN_MEMBER_ID."""
    group = shard.groups.get(request.group_id)
    if not isinstance(group, StreamsGroup):
        raise not_a_streams_group(request.group_id, group)
    if request.shutdown_application and group.shutdown_member_id is None and group.members:
        group.shutdown_member_id = request.member_id
    member = group.members.get(request.member_id)
    if member is None:
        raise unknown_member(group, request.member_id)
    fence(group, member, out)
    return StreamsGroupHeartbeatResponse(member_id=request.member_id, member_epoch=request.member_epoch, status=[])


def fence(group: StreamsGroup, member: StreamsMember, out: Outcome) -> None:
    """Remove a member, and move the group epoch: its tasks are for others."""
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


def on_load(shard: GroupMachine, group: StreamsGroup, out: Outcome) -> None:
    """The log is replayed: all time-outs start in full; a first assignment is not delayed again."""
    session_ms = shard.group_value(group.group_id, "streams.session.timeout.ms")
    for member in group.members.values():
        out.set_timer(member.session_timer, session_ms)
        if member.current.state == UNREVOKED_TASKS:
            out.set_timer(member.rebalance_timer, member.said.rebalance_timeout_ms)


def on_timer(shard: GroupMachine, group: StreamsGroup, name: tuple[Any, ...], out: Outcome) -> None:
    """A timer of a group has run out."""
    kind = name[0]
    if kind == "delay":
        _first_assignment(shard, group, out)
        return
    if kind == "assign":
        go_on(group, out)
        return
    member = group.members.get(name[2])
    if member is not None and (kind == "session" or member.current.state == UNREVOKED_TASKS):
        fence(group, member, out)


def _first_assignment(shard: GroupMachine, group: StreamsGroup, out: Outcome) -> None:
    """Assign all who have come; they hear of it with their next heartbeats."""
    if group.topology is None or not group.members or group.group_epoch <= group.assignment_epoch or group.assigning:
        return
    processes = {m.member_id: m.said.process_id for m in group.members.values()}
    found = group.configured or configured(shard, group.topology)
    begin(group, processes, found, group.last_assignment_configs, group.group_epoch, out, may_wait=True)
