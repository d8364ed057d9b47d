"""Why a group refused a request: generations, member and assignment epochs, instance ids, states."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from broker.coordinator.groups.common.assignment_epoch_checks import NOT_ASSIGNED, REVOCATION_EPOCH, STRICT
from broker.coordinator.runtime import READY
from protocol.shown import shown

if TYPE_CHECKING:
    from broker.coordinator.group_shards import GroupShards

MOST_PARTITIONS: Final = 5  # that are named


def explain_commit(groups: GroupShards, request: Any) -> str:
    """Why offsets were not accepted."""
    epoch = getattr(request, "generation_id_or_member_epoch", None)
    if epoch is None:
        epoch = request.generation_id
    group, machine = _find(groups, request.group_id)
    if group is None:
        return _no_group(request.group_id, request.member_id, epoch)
    member = group.members.get(request.member_id)
    if group.group_type == "classic" or member is None or member.uses_classic_protocol:
        return _membership(group, request.member_id, request.group_instance_id, epoch)
    current = member.current
    text = f"member {shown(request.member_id)} sent epoch {epoch}, its epoch is {current.member_epoch}"
    fencing = machine.group_value(request.group_id, "commit.fencing")
    if epoch < current.member_epoch and fencing not in (STRICT, REVOCATION_EPOCH):
        text += _assigned_later(machine, group, current, request, epoch)
    elif fencing == REVOCATION_EPOCH:
        text += f", and it gave partitions back at epoch {current.revocation_epoch}"
    return f"{text}; group.commit.fencing={fencing}"


def _assigned_later(machine: Any, group: Any, current: Any, request: Any, epoch: int) -> str:
    """Which of the committed partitions the member got after the epoch that it sent, or does not have."""
    later: list[str] = []
    topics = machine.metadata
    for asked in request.topics:
        topic = topics.topics_by_id.get(getattr(asked, "topic_id", b"")) or topics.topics.get(asked.name)
        if topic is None:
            continue
        for partition in asked.partitions:
            place = (topic.name, topic.topic_id, partition.partition_index)
            (assigned,) = group.assignment_epochs(current, lambda place=place: [place])
            name = f"{topic.name}-{partition.partition_index}"
            if assigned == NOT_ASSIGNED:
                later.append(f"{name} is not assigned to it")
            elif assigned > epoch:
                later.append(f"{name} was assigned to it at epoch {assigned}")
    more = f" and {len(later) - MOST_PARTITIONS} more" if len(later) > MOST_PARTITIONS else ""
    return "; " + ", ".join(later[:MOST_PARTITIONS]) + more if later else ""


def explain_member(groups: GroupShards, request: Any) -> str:
    """Why a member's heartbeat, join, sync or leave was refused."""
    group_id = getattr(request, "group_id", None)
    if not group_id:
        return ""
    group, _ = _find(groups, group_id)
    member_id = getattr(request, "member_id", "")
    epoch = getattr(request, "generation_id", getattr(request, "member_epoch", -1))
    if group is None:
        return _no_group(group_id, member_id, epoch)
    instance_id = getattr(request, "group_instance_id", getattr(request, "instance_id", None))
    return _membership(group, member_id, instance_id, epoch)


def _membership(group: Any, member_id: str, instance_id: str | None, epoch: int) -> str:
    sender = f"member {shown(member_id)}" if member_id else "a request without a member id"
    owner = getattr(group, "static_members", {}).get(instance_id)  # share groups have none
    owner = getattr(owner, "member_id", owner)
    if owner is not None and owner != member_id:
        return f"{sender} came as instance {shown(instance_id or '')}, which is member {shown(owner)} now"
    member = group.members.get(member_id)
    if member is None:
        return f"{sender} is not in group {shown(group.group_id)}, which is {group.state.value} with {_count(group)}"
    if group.group_type == "classic":
        known, what = group.generation_id, "generation"
    else:
        known, what = member.current.member_epoch, "epoch"
    where = f"group {shown(group.group_id)}, which is {group.state.value}"
    if epoch != known:
        return f"{sender} sent {what} {epoch}; it is {known} in {where}"
    return f"{sender} is of {what} {known} of {where}"


def _no_group(group_id: str, member_id: str, epoch: int) -> str:
    sender = f"member {shown(member_id)}" if member_id else "a request without a member id"
    return f"{sender} sent epoch {epoch}, and group {shown(group_id)} has no members"


def _count(group: Any) -> str:
    n = len(group.members)
    return f"{n} member{'' if n == 1 else 's'}"


def _find(groups: GroupShards, group_id: str) -> tuple[Any, Any]:
    """The group, or None, and the machine of its shard."""
    shard = groups.of(group_id)
    machine: Any = shard.machine
    return (machine.groups.get(group_id) if shard.state is READY else None), machine
