"""The target assignment of a streams group: how it is computed, and the records that change it.

It is computed at once where that is quick; a large group is gone through between the turns of the loop, and until then
its members go on with the old target, as they do while the assignment interval has not passed.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

from broker.coordinator.groups.assignors.spec import run
from broker.coordinator.groups.common.group import PendingTarget
from broker.coordinator.groups.common.target import advance, compute_in_steps
from broker.coordinator.groups.streams.member import TasksTuple
from broker.coordinator.groups.streams.records import target_epoch_record, target_record
from broker.coordinator.groups.streams.sticky_assignor import Previous, Targets, assign_steps

if TYPE_CHECKING:
    from broker.coordinator.groups.common.outcome import Outcome
    from broker.coordinator.groups.streams.group import StreamsGroup
    from broker.coordinator.groups.streams.topology import ConfiguredTopology

STANDBY_REPLICAS: Final = "num.standby.replicas"  # the only setting of the assignor
WORK_AT_ONCE: Final = 3_000  # members, tasks and, twice, standby tasks that are assigned inside a request: about 15 ms


def compute_target(
    group: StreamsGroup,
    processes: Mapping[str, str],
    configured: ConfiguredTopology,
    configs: Mapping[str, str],
    epoch: int,
    out: Outcome,
    *,
    may_wait: bool,
) -> Targets | None:
    """Compute who shall have what; nothing, as long as the topology is not ready. `processes`: by member id.

    None: it takes long, and goes on between the turns; only where the group is one that a timer finds (`may_wait`).
    """
    if not configured.is_ready:
        targets = dict.fromkeys(processes, TasksTuple())
    else:
        subtopologies, standbys = configured.assignable(), int(configs.get(STANDBY_REPLICAS, "0"))
        previous = {m: Previous(process_id, group.target.get(m, TasksTuple())) for m, process_id in processes.items()}
        steps = assign_steps(previous, subtopologies, standbys)
        work = len(previous) + sum(s.tasks * (1 + 2 * standbys * s.is_stateful) for s in subtopologies)
        if may_wait and work > WORK_AT_ONCE:
            compute_in_steps(group, PendingTarget(epoch, steps), out)
            return None
        targets = run(steps)
    _write_target(group, targets, epoch, out)
    return targets


def continue_target(group: StreamsGroup, out: Outcome) -> None:
    """The next step; after the last one the target is the group's, but for members that have left meanwhile."""
    done = advance(group, out)
    if done is not None:
        pending, targets = done
        _write_target(group, {m: tasks for m, tasks in targets.items() if m in group.members}, pending.epoch, out)


def _write_target(group: StreamsGroup, targets: Targets, epoch: int, out: Outcome) -> None:
    for member_id, tasks in targets.items():
        if group.target.get(member_id) != tasks:
            out.records.append(target_record(group.group_id, member_id, tasks))
    out.records.append(target_epoch_record(group.group_id, epoch, out.now_ms))
