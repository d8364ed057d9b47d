"""How members leave a share group: by themselves, or removed (fenced) by a timer.

Source: KIP-932; Kafka's GroupMetadataManager.shareGroupLeave and shareGroupFenceMember.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from broker.coordinator.groups.common.metadata_hash import metadata_hash
from broker.coordinator.groups.common.target import NEVER_COMPUTED_MS
from broker.coordinator.groups.share.group import ShareGroup
from broker.coordinator.groups.share.member import ShareMember
from broker.coordinator.groups.share.records import group_record, member_tombstones, target_epoch_record
from protocol.errors import ErrorCode, KafkaError
from protocol.messages.share_group import ShareGroupHeartbeatResponse

if TYPE_CHECKING:
    from broker.coordinator.groups.common.outcome import Outcome
    from broker.coordinator.groups.share.machine import Machine
    from protocol.messages.share_group import ShareGroupHeartbeatRequest


def leave(machine: Machine, request: ShareGroupHeartbeatRequest, out: Outcome) -> ShareGroupHeartbeatResponse:
    """A member leaves. Errors: GROUP_ID_NOT_FOUND, UNKNOWN_MEMBER_ID."""
    group = machine.groups.get(request.group_id)
    if not isinstance(group, ShareGroup):
        text = "not found" if group is None else "is not a share group"
        raise KafkaError(ErrorCode.GROUP_ID_NOT_FOUND, f"Group {request.group_id} {text}.")
    member = group.members.get(request.member_id)
    if member is None:
        raise KafkaError(
            ErrorCode.UNKNOWN_MEMBER_ID, f"Member {request.member_id} is not a member of group {request.group_id}."
        )
    fence(machine, group, member, out)
    return ShareGroupHeartbeatResponse(member_id=request.member_id, member_epoch=request.member_epoch)


def fence(machine: Machine, group: ShareGroup, member: ShareMember, out: Outcome) -> None:
    """Remove a member, and increase the group epoch, so that others get its partitions; with the last, that of the
    target too.
    """
    out.records += member_tombstones(group.group_id, member.member_id)
    others = [m.member_metadata.topic_names for m in group.members.values() if m is not member]
    hash_ = metadata_hash(frozenset().union(*others), machine.metadata)
    out.records.append(group_record(group.group_id, group.group_epoch + 1, hash_))
    if len(group.members) == 1:
        out.records.append(target_epoch_record(group.group_id, group.group_epoch + 1, NEVER_COMPUTED_MS))
    for timer in member.timers():
        out.cancel_timer(timer)
