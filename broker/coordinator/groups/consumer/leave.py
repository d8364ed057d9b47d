"""How members leave a consumer group, on their own or because nothing is heard of them, and what else the timers do.

    session     nothing was heard of a member for its session time-out
    rebalance   a member did not give partitions back within its rebalance time-out
    rejoin      a member of the classic protocol was told to rejoin, and did not
    resync      ... rejoined, and never asked for its assignment
    regex       the group's expressions are to be resolved, or the resolving goes on
    assign      a target assignment that takes long goes on

Source: KIP-848; Kafka's GroupMetadataManager.consumerGroupLeave, consumerGroupFenceMembers and its timers.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from broker.coordinator.groups.consumer import regex, target
from broker.coordinator.groups.consumer.group import ConsumerGroup
from broker.coordinator.groups.consumer.member import (
    NOTHING,
    STATIC_LEAVING_EPOCH,
    UNREVOKED_PARTITIONS,
    ConsumerMember,
)
from broker.coordinator.groups.consumer.records import (
    current_record,
    group_record,
    member_tombstones,
    regex_tombstone,
)
from broker.coordinator.groups.topic_hash import metadata_hash
from protocol.errors import ErrorCode, KafkaError
from protocol.messages.consumer_group import ConsumerGroupHeartbeatResponse

if TYPE_CHECKING:
    from broker.coordinator.group_machine import GroupMachine
    from broker.coordinator.groups.classic.rebalance import Outcome
    from protocol.messages.consumer_group import ConsumerGroupHeartbeatRequest


def leave(shard: GroupMachine, request: ConsumerGroupHeartbeatRequest, out: Outcome) -> ConsumerGroupHeartbeatResponse:
    """A member goes for good (-1), or a static one for a moment (-2): its partitions wait until its session ends.

    Errors:  GROUP_ID_NOT_FOUND, UNKNOWN_MEMBER_ID, FENCED_INSTANCE_ID.
    """
    group = shard.groups.get(request.group_id)
    if not isinstance(group, ConsumerGroup):
        text = "not found" if group is None else "is not a consumer group"
        raise KafkaError(ErrorCode.GROUP_ID_NOT_FOUND, f"Group {request.group_id} {text}.")
    member = find(group, request.member_id, request.instance_id)
    response = ConsumerGroupHeartbeatResponse(member_id=request.member_id, member_epoch=request.member_epoch)
    if request.instance_id is None or request.member_epoch != STATIC_LEAVING_EPOCH:
        fence(shard, group, [member], out)
        return response
    away = member.current._replace(
        member_epoch=STATIC_LEAVING_EPOCH,
        pending=NOTHING,
        assigned={topic_id: dict.fromkeys(epochs, 0) for topic_id, epochs in member.current.assigned.items()},
    )
    out.records.append(current_record(group.group_id, member.member_id, away))
    return response


def find(group: ConsumerGroup, member_id: str, instance_id: str | None) -> ConsumerMember:
    """The member that a request is from. Errors: UNKNOWN_MEMBER_ID, FENCED_INSTANCE_ID."""
    if instance_id is None:
        member = group.members.get(member_id)
        if member is None:
            raise KafkaError(ErrorCode.UNKNOWN_MEMBER_ID, f"{member_id} is not a member of the group")
        return member
    member = group.static_member(instance_id)
    if member is None:
        raise KafkaError(ErrorCode.UNKNOWN_MEMBER_ID, f"Instance id {instance_id} is unknown.")
    if member.member_id != member_id:
        raise KafkaError(ErrorCode.FENCED_INSTANCE_ID, f"{instance_id} is held by {member.member_id}")
    return member


def fence(shard: GroupMachine, group: ConsumerGroup, members: Sequence[ConsumerMember], out: Outcome) -> None:
    """Remove members and move the group epoch, or go back to a classic group when only such members are left."""
    if group.classic_members:
        from broker.coordinator.groups.consumer.migration import downgrade, goes_classic

        if goes_classic(shard, group, members):
            downgrade(shard, group, members, None, out)
            return
    gone = {member.member_id for member in members}
    counts = dict(group.subscriptions)
    for member in members:
        out.records += member_tombstones(group.group_id, member.member_id)
        counts[member.said.subscription] -= 1
        for timer in member.timers():
            out.cancel_timer(timer)
    left = {subscription: count for subscription, count in counts.items() if count}
    for expression in {m.said.topic_regex for m in members if m.said.topic_regex}:
        if not any(expression == r for _, r in left):
            out.records.append(regex_tombstone(group.group_id, expression))
    assert gone <= group.members.keys()
    hash_ = metadata_hash(group.topic_names(left), shard.metadata)
    out.records.append(group_record(group.group_id, group.group_epoch + 1, hash_))


# -- timers --------------------------------------------------------------------------------------------------------


def on_load(shard: GroupMachine, group: ConsumerGroup, out: Outcome) -> None:
    """The log is replayed: all time-outs start in full. A group that is out of order is served all the same."""
    session_ms = shard.group_value(group.group_id, "consumer.session.timeout.ms")
    for member in group.members.values():
        classic = member.said.classic
        out.set_timer(member.session_timer, session_ms if classic is None else classic.session_timeout_ms)
        if member.current.state == UNREVOKED_PARTITIONS and classic is None:
            out.set_timer(member.rebalance_timer, member.said.rebalance_timeout_ms)


def on_timer(shard: GroupMachine, group: ConsumerGroup, name: tuple[Any, ...], out: Outcome) -> None:
    """A timer of a group has run out."""
    kind = name[0]
    if kind == "regex":
        _resolve(shard, group, out)
    elif kind == "assign":
        _assign(group, out)
    elif len(name) == 3:
        member = group.members.get(name[2])
        if member is None:
            return
        if kind == "rebalance":
            current = member.current
            if current.state != UNREVOKED_PARTITIONS or current.member_epoch == STATIC_LEAVING_EPOCH:
                return
        elif kind != "session" and member.said.classic is None:
            return
        fence(shard, group, [member], out)


def _resolve(shard: GroupMachine, group: ConsumerGroup, out: Outcome) -> None:
    """Match some more topics; when all are through, log what came out."""
    metadata = shard.metadata
    if group.resolving is None:
        expressions = sorted({r for _, r in group.subscriptions if r})
        if not expressions:
            return
        group.topics_made_seen = metadata.topics_made
        group.resolving = regex.resolve(expressions, list(metadata.topics))
    found = out.advance(group.resolving, ("regex", group.group_id))
    if found is not None:
        group.resolving = None
        out.records += regex.resolution_records(group, found, metadata, out.now_ms)


def _assign(group: ConsumerGroup, out: Outcome) -> None:
    """Go on with a target assignment that takes long; when done it is the group's, for the epoch it was made for."""
    pending = group.assigning
    if pending is None:
        return
    changes = out.advance(pending.steps, ("assign", group.group_id))
    if changes is not None:
        group.assigning = None
        settled = target.settle(group, pending, changes)
        out.records += target.target_records(group.group_id, settled, pending.epoch, out.now_ms)
