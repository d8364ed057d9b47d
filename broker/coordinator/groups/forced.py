"""A rebalance that no member has asked for: a test asks for it, through the control plane.

| group                      | what happens                                                                           |
|----------------------------|----------------------------------------------------------------------------------------|
| classic, stable            | it prepares a rebalance: each member is told REBALANCE_IN_PROGRESS, and joins again    |
| classic, in a rebalance    | an assignment that members wait for is given up, and they join again                   |
| consumer, share, streams   | its group epoch increases: the assignor computes again, and members get the next epoch |
| without members, or none   | nothing                                                                                |
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from broker.coordinator.groups.classic.rebalance import prepare_rebalance
from broker.coordinator.groups.classic.states import COMPLETING_REBALANCE, STABLE
from broker.coordinator.groups.common.outcome import Outcome
from broker.coordinator.groups.kinds import CLASSIC, SHARE

if TYPE_CHECKING:
    from broker.base.context import Context
    from broker.coordinator.groups.machine import GroupMachine
    from broker.turn.decision import Decision, Record


def rebalance(machine: GroupMachine, group_id: str, ctx: Context) -> Decision:
    """Start a rebalance of a group of any type."""
    out = Outcome(ctx, machine.config)
    group = machine.groups.get(group_id)
    if group is None or not group.members:
        return out.result()
    if group.group_type != CLASSIC:
        out.records.append(_next_epoch(group))
    elif group.state in (STABLE, COMPLETING_REBALANCE):
        prepare_rebalance(group, out)
    return out.result()


def _next_epoch(group: Any) -> Record:
    epoch = group.group_epoch + 1
    if group.group_type == "consumer":
        from broker.coordinator.groups.consumer.records import group_record  # late: 7 ms, as the groups themselves

        return group_record(group.group_id, epoch, group.metadata_hash)
    if group.group_type == SHARE:
        from broker.coordinator.groups.share.records import group_record as share_record  # late: 7 ms, as above

        return share_record(group.group_id, epoch, group.metadata_hash)
    from broker.coordinator.groups.streams.records import group_record as streams_record  # late: 7 ms, as above

    return streams_record(
        group.group_id, epoch, group.metadata_hash, group.validated_topology_epoch, group.last_assignment_configs
    )
