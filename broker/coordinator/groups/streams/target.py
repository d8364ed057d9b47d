"""The target assignment of a streams group: how it is computed, and the records that change it.

When it is computed: common/target.py.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

from broker.coordinator.groups.assignors.spec import run
from broker.coordinator.groups.common.group import PendingTarget
from broker.coordinator.groups.common.target import advance, compute_in_steps, for_present_members
from broker.coordinator.groups.streams.member import (
    NONE_REPORTED,
    CurrentAssignment,
    MemberMetadata,
    TaskOffsets,
    TasksTuple,
)
from broker.coordinator.groups.streams.records import target_epoch_record, target_record
from broker.coordinator.groups.streams.sticky_assignor import Previous, Targets, assign_steps

if TYPE_CHECKING:
    from broker.coordinator.groups.common.outcome import Outcome
    from broker.coordinator.groups.streams.group import StreamsGroup
    from broker.coordinator.groups.streams.machine import Machine
    from broker.coordinator.groups.streams.topology import ConfiguredTopology

STANDBY_REPLICAS: Final = "num.standby.replicas"
RACK_TAGS: Final = "rack.aware.assignment.tags"  # logged with the group; the sticky assignor does not look at them
WORK_AT_ONCE: Final = 3_000  # members + tasks + 2 x standby tasks assigned inside a request: about 15 ms


def assignment_configs(machine: Machine, group_id: str) -> dict[str, str]:
    """The settings of the assignor; logged with the group, so that a change is noticed."""
    configs = {STANDBY_REPLICAS: str(machine.group_value(group_id, "streams.num.standby.replicas"))}
    tags = machine.group_value(group_id, "streams.rack.aware.assignment.tags")
    return {**configs, RACK_TAGS: ",".join(tags)} if tags else configs


def previous(metadata: MemberMetadata, current: CurrentAssignment, reported: TaskOffsets) -> Previous:
    """A member as the assignor sees it: with the tasks that it has now, and has not to give back."""
    assigned = current.assigned
    active = {subtopology_id: frozenset(epochs) for subtopology_id, epochs in assigned.active.items()}
    tasks = TasksTuple(active, assigned.standby)
    return Previous(metadata.process_id, tasks, reported.offsets, metadata.instance_id)


def previous_of(group: StreamsGroup) -> dict[str, Previous]:
    """All members of a group as the assignor sees them, by member id."""
    reported = group.task_offsets
    return {
        m.member_id: previous(m.member_metadata, m.current, reported.get(m.member_id, NONE_REPORTED))
        for m in group.members.values()
    }


def compute_target(
    group: StreamsGroup,
    members: Mapping[str, Previous],
    configured: ConfiguredTopology,
    configs: Mapping[str, str],
    epoch: int,
    out: Outcome,
    *,
    may_wait: bool,
) -> Targets | None:
    """Compute and write the members' targets; without tasks as long as the topology is not ready.

    members    the members as they will be, by member id
    may_wait   whether a large target may be computed in steps: the group is in the log, so that its timer finds it
    None: it is computed in steps.
    """
    if not configured.is_ready:
        targets = dict.fromkeys(members, TasksTuple())
    else:
        subtopologies, standbys = configured.assignable(), int(configs.get(STANDBY_REPLICAS, "0"))
        steps = assign_steps(members, subtopologies, standbys)
        work = len(members) + sum(s.tasks * (1 + 2 * standbys * s.is_stateful) for s in subtopologies)
        if may_wait and work > WORK_AT_ONCE:
            instance_ids = {m: found.instance_id for m, found in members.items() if found.instance_id is not None}
            compute_in_steps(group, PendingTarget(epoch, steps, list(members), instance_ids), out)
            return None
        targets = run(steps)
    _write_target(group, targets, epoch, out)
    return targets


def continue_target(group: StreamsGroup, out: Outcome) -> None:
    """Take the next step of the pending target; after the last, write it for the members that are still there."""
    done = advance(group, out)
    if done is not None:
        pending, targets = done
        _write_target(group, for_present_members(group, pending, targets), pending.epoch, out)


def _write_target(group: StreamsGroup, targets: Targets, epoch: int, out: Outcome) -> None:
    for member_id, tasks in targets.items():
        if group.target.get(member_id) != tasks:
            out.records.append(target_record(group.group_id, member_id, tasks))
    out.records.append(target_epoch_record(group.group_id, epoch, out.now_ms))
