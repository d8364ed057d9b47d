"""The timers of a consumer group.

session     no heartbeat of a member for its session timeout
rebalance   a member has not given partitions back within its rebalance timeout
rejoin      a member of the classic protocol was told to rejoin, and has not
resync      ... has rejoined, and has not asked for its assignment
regex       the group's expressions have to be resolved, or the next step of it
assign      the next step of a target assignment that is computed in steps
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from broker.coordinator.groups.common.member import STATIC_LEAVING_EPOCH
from broker.coordinator.groups.common.target import advance, for_present_members
from broker.coordinator.groups.consumer import regex, target
from broker.coordinator.groups.consumer.leave import fence
from broker.coordinator.groups.consumer.member import UNREVOKED_PARTITIONS

if TYPE_CHECKING:
    from broker.coordinator.groups.common.outcome import Outcome
    from broker.coordinator.groups.consumer.group import ConsumerGroup
    from broker.coordinator.groups.consumer.machine import Machine


def on_load(machine: Machine, group: ConsumerGroup, out: Outcome) -> None:
    """Start all timers in full after loading."""
    session_ms = machine.group_value(group.group_id, "consumer.session.timeout.ms")
    for member in group.members.values():
        classic = member.member_metadata.classic
        out.set_timer(member.session_timer, session_ms if classic is None else classic.session_timeout_ms)
        if member.current.state == UNREVOKED_PARTITIONS and classic is None:
            out.set_timer(member.rebalance_timer, member.member_metadata.rebalance_timeout_ms)


def on_timer(machine: Machine, group: ConsumerGroup, name: tuple[Any, ...], out: Outcome) -> None:
    """Handle a timer that has run out; one that no longer applies does nothing."""
    kind = name[0]
    if kind == "regex":
        _resolve(machine, group, out)
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
        elif kind != "session" and member.member_metadata.classic is None:
            return
        fence(machine, group, [member], out)


def _resolve(machine: Machine, group: ConsumerGroup, out: Outcome) -> None:
    """Resolve the expressions against the next topics; after the last topic, write the result."""
    metadata = machine.metadata
    asker = machine.askers.pop(group.group_id, None)
    if group.resolving is None:
        expressions = sorted({r for _, r in group.subscriptions if r})
        if not expressions:
            return
        group.topics_made_seen = metadata.topics_made
        group.resolving = regex.resolve(expressions, list(metadata.topics), asker)
    found = out.advance(group.resolving, ("regex", group.group_id))
    if found is not None:
        group.resolving = None
        out.records += regex.resolution_records(group, found, metadata, out.now_ms)
        group.metadata_seen = (metadata, metadata.version)  # the next heartbeat need not compare again, as in Kafka


def _assign(group: ConsumerGroup, out: Outcome) -> None:
    """Take the next step of the pending target; after the last step, write the target for its group epoch."""
    done = advance(group, out)
    if done is not None:
        pending, computed = done
        changes = for_present_members(group, pending, computed)
        out.records += target.target_records(group.group_id, changes, pending.epoch, out.now_ms)
