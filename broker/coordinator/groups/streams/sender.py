"""The sender of a heartbeat: its group, the member (found, made, back in another's place), and what it says of itself.

| instance id | member epoch | its holder                  | result                                             |
|-------------|--------------|-----------------------------|----------------------------------------------------|
| none        | 0            | any                         | the member of that id, or a new one                |
| none        | above 0      | any                         | the member of that id, or UNKNOWN_MEMBER_ID        |
| given       | 0            | none                        | the member of that id, or a new one                |
| given       | 0            | has left with -2            | a member that takes over what the holder has       |
| given       | 0            | any other, the sender too   | UNRELEASED_INSTANCE_ID                             |
| given       | above 0, -1  | none                        | UNKNOWN_MEMBER_ID                                  |
| given       | above 0, -1  | another member id           | FENCED_INSTANCE_ID                                 |
| given       | above 0, -1  | the sender                  | the member                                         |

Source: KIP-1071 and static membership of Kafka 4.4; GroupMetadataManager.getOrMaybeCreateStaticStreamsGroupMember.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from broker.coordinator.groups.classic.group import ClassicGroup
from broker.coordinator.groups.classic.records import group_tombstone
from broker.coordinator.groups.common.member import JOINING_EPOCH, STATIC_LEAVING_EPOCH
from broker.coordinator.groups.streams.group import StreamsGroup
from broker.coordinator.groups.streams.member import (
    CurrentAssignment,
    Endpoint,
    MemberMetadata,
    StreamsMember,
    TasksTuple,
)
from broker.coordinator.groups.streams.records import (
    current_record,
    member_record,
    member_tombstones,
    partitions_of,
    target_record,
)
from protocol.errors import ErrorCode, KafkaError

if TYPE_CHECKING:
    from broker.base.context import Context
    from broker.coordinator.groups.common.outcome import Outcome
    from broker.coordinator.groups.streams.machine import Machine
    from protocol.messages.streams_group import StreamsGroupHeartbeatRequest


def find_group(machine: Machine, request: StreamsGroupHeartbeatRequest, out: Outcome) -> StreamsGroup:
    """The group; a joining member may create it, also in place of an empty classic group.

    Errors:  GROUP_ID_NOT_FOUND, GROUP_MAX_SIZE_REACHED.
    """
    group_id = request.group_id
    found = machine.groups.get(group_id)
    if isinstance(found, StreamsGroup):
        if request.member_epoch == JOINING_EPOCH:
            _check_size(machine, found, request)
        return found
    if request.member_epoch != JOINING_EPOCH:
        raise not_a_streams_group(group_id, found)
    if found is None:
        return StreamsGroup(group_id)
    if isinstance(found, ClassicGroup) and found.is_empty:
        for member_id in found.pending_joins:
            out.cancel_timer(("session", group_id, member_id))
        out.records.append(group_tombstone(group_id))
        return StreamsGroup(group_id)
    raise not_a_streams_group(group_id, found)


def not_a_streams_group(group_id: str, found: object) -> KafkaError:
    """The error for a group that is missing or of another type."""
    if found is None:
        return KafkaError(ErrorCode.GROUP_ID_NOT_FOUND, f"Streams group {group_id} not found.")
    return KafkaError(ErrorCode.GROUP_ID_NOT_FOUND, f"Group {group_id} is not a streams group.")


def _check_size(machine: Machine, group: StreamsGroup, request: StreamsGroupHeartbeatRequest) -> None:
    """Refuse one member too many; a member, and who comes for a known instance id, has its place already."""
    most = machine.config.group_streams_max_size
    if (
        len(group.members) >= most
        and request.member_id not in group.members
        and request.instance_id not in group.static_members
    ):
        raise KafkaError(
            ErrorCode.GROUP_MAX_SIZE_REACHED,
            f"The streams group has reached its maximum capacity of {most} members.",
        )


def joining_member(
    group: StreamsGroup, member_id: str, instance_id: str | None, out: Outcome
) -> tuple[StreamsMember, str | None]:
    """The member that joins, and the id of the one whose place it takes. Errors: UNRELEASED_INSTANCE_ID."""
    holder = group.static_member(instance_id)
    if holder is None:
        return group.members.get(member_id) or StreamsMember(group.group_id, member_id), None
    if holder.current.member_epoch != STATIC_LEAVING_EPOCH:
        raise KafkaError(
            ErrorCode.UNRELEASED_INSTANCE_ID,
            f"Static member {member_id} with instance id {instance_id} cannot join the group because the instance id "
            f"is owned by {holder.member_id} member.",
        )
    return _successor(group, holder, member_id, out), holder.member_id


def _successor(group: StreamsGroup, holder: StreamsMember, member_id: str, out: Outcome) -> StreamsMember:
    """A member with all that the static one has, at epoch 0, and the records that replace one by the other."""
    group_id, records = group.group_id, out.records
    current = holder.current._replace(member_epoch=0, previous_member_epoch=0)
    records += member_tombstones(group_id, holder.member_id)
    for timer in holder.timers():
        out.cancel_timer(timer)
    records.append(member_record(group_id, member_id, holder.member_metadata))
    records.append(target_record(group_id, member_id, group.target.get(holder.member_id, TasksTuple())))
    records.append(current_record(group_id, member_id, current))
    return StreamsMember(group_id, member_id, holder.member_metadata, current)


def known_member(group: StreamsGroup, member_id: str, instance_id: str | None) -> StreamsMember:
    """The member that is in the group already. Errors: UNKNOWN_MEMBER_ID, FENCED_INSTANCE_ID."""
    if instance_id is None:
        member = group.members.get(member_id)
        if member is None:
            raise KafkaError(
                ErrorCode.UNKNOWN_MEMBER_ID, f"Member {member_id} is not a member of group {group.group_id}."
            )
        return member
    member = group.static_member(instance_id)
    if member is None:
        raise KafkaError(ErrorCode.UNKNOWN_MEMBER_ID, f"Instance id {instance_id} is unknown.")
    if member.member_id != member_id:
        raise KafkaError(
            ErrorCode.FENCED_INSTANCE_ID,
            f"Static member {member_id} with instance id {instance_id} was fenced by member {member.member_id}.",
        )
    return member


# -- what it says of itself --------------------------------------------------------------------------------------------


def merged(member_metadata: MemberMetadata, ctx: Context, request: StreamsGroupHeartbeatRequest) -> MemberMetadata:
    """The member's metadata after this request; null fields mean no change, but a join without endpoint clears it."""
    sent, tags, timeout_ms = request.user_endpoint, request.client_tags, request.rebalance_timeout_ms
    endpoint = None if sent is None else Endpoint(sent.host, sent.port)
    keeps_endpoint = sent is None and request.member_epoch != JOINING_EPOCH
    return MemberMetadata(
        member_metadata.instance_id if request.instance_id is None else request.instance_id,
        member_metadata.rack_id if request.rack_id is None else request.rack_id,
        ctx.client_id,
        ctx.client_host,
        member_metadata.rebalance_timeout_ms if timeout_ms == -1 else timeout_ms,
        member_metadata.topology_epoch if request.topology is None else request.topology.epoch,
        member_metadata.process_id if request.process_id is None else request.process_id,
        member_metadata.user_endpoint if keeps_endpoint else endpoint,
        member_metadata.client_tags if tags is None else tuple(sorted({t.key: t.value for t in tags}.items())),
    )


def owned_tasks(request: StreamsGroupHeartbeatRequest) -> tuple[TasksTuple | None, set[str]]:
    """The tasks that the member owns, None if it does not say; and the subtopologies named, also without a task."""
    if request.active_tasks is None or request.standby_tasks is None or request.warmup_tasks is None:
        return None, set()
    lists = (request.active_tasks, request.standby_tasks, request.warmup_tasks)
    return TasksTuple(*map(partitions_of, lists)), {task.subtopology_id for tasks in lists for task in tasks}


def owns_only_assigned(current: CurrentAssignment, owned: TasksTuple | None) -> bool:
    """Whether a member owns nothing but what is assigned to it; if it does not say, it may own more."""
    return owned is not None and all(
        subtopology_id in held and all(p in held[subtopology_id] for p in partitions)
        for tasks, held in zip(owned, current.assigned.lists(), strict=True)
        for subtopology_id, partitions in tasks.items()
    )
