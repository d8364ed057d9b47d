"""Which group and member a heartbeat is of: found, made, or a static member that is back and takes over.

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
from broker.coordinator.groups.streams.member import StreamsMember, TasksTuple
from broker.coordinator.groups.streams.records import current_record, member_record, member_tombstones, target_record
from protocol.errors import ErrorCode, KafkaError

if TYPE_CHECKING:
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
