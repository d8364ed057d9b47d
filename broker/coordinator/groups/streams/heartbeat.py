"""StreamsGroupHeartbeat: the steps from the request to records and response, in Kafka's order.

    1  find or create the group, then the member; refuse member epochs that do not fit
    2  take over the member's new metadata; store the first topology, compare later ones with it
    3  check whether the topology fits the topics, again each time these changed; take over the offsets of tasks
    4  increase the group epoch if the member, the topics, this check or the assignor's settings changed
    5  compute a new target assignment if the group epoch is ahead of the assignment epoch and nothing delays it
    6  move the member one step towards its target assignment
    7  respond: status, the tasks if they changed, the endpoints if the member may not know them

Source: KIP-1071; Kafka's GroupMetadataManager.streamsGroupHeartbeat.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from broker.coordinator.groups.common.heartbeat import HeartbeatStep
from broker.coordinator.groups.common.member import JOINING_EPOCH, check_other_epoch
from broker.coordinator.groups.common.metadata_hash import metadata_hash
from broker.coordinator.groups.common.target import is_too_early
from broker.coordinator.groups.streams import topology as topologies
from broker.coordinator.groups.streams.endpoints import partitions_by_endpoint
from broker.coordinator.groups.streams.member import (
    NONE_REPORTED,
    UNKNOWN,
    UNREVOKED_TASKS,
    MemberMetadata,
    TasksTuple,
)
from broker.coordinator.groups.streams.reconcile import reconcile
from broker.coordinator.groups.streams.records import (
    current_record,
    group_record,
    member_record,
    task_ids,
    topology_record,
)
from broker.coordinator.groups.streams.sender import (
    find_group,
    joining_member,
    known_member,
    merged,
    owned_tasks,
    owns_only_assigned,
)
from broker.coordinator.groups.streams.target import (
    RACK_TAGS,
    assignment_configs,
    compute_target,
    previous,
    previous_of,
)
from broker.coordinator.groups.streams.topology import InternalTopic
from protocol.errors import ErrorCode, KafkaError
from protocol.messages.streams_group import (
    StreamsGroupHeartbeatResponse,
    StreamsGroupHeartbeatResponseStatus,
    StreamsGroupHeartbeatResponseTaskIds,
)

if TYPE_CHECKING:
    from broker.base.context import Context
    from broker.coordinator.groups.common.outcome import Outcome
    from broker.coordinator.groups.streams.group import StreamsGroup
    from broker.coordinator.groups.streams.machine import Machine
    from protocol.messages.streams_group import StreamsGroupHeartbeatRequest
    from protocol.messages.streams_group_records import StreamsGroupTopologyValue

NO_VALID_TOPOLOGY: Final = -1
TELLS_OF_TAGS_SINCE: Final = 1  # older clients know no such status


def heartbeat(
    machine: Machine,
    ctx: Context,
    request: StreamsGroupHeartbeatRequest,
    topology: StreamsGroupTopologyValue | None,
    out: Outcome,
) -> tuple[StreamsGroupHeartbeatResponse, tuple[InternalTopic, ...]]:
    """Serve a heartbeat of a member that stays or joins: the response, and the internal topics to create.

    `request` has passed the checks that need no group; `topology` is its topology in the form it would be stored in.

    Shape:   member, topology, group epoch, target and current assignment records, each only if it changed.
    Errors:  GROUP_ID_NOT_FOUND, UNKNOWN_MEMBER_ID, FENCED_MEMBER_EPOCH, FENCED_INSTANCE_ID, UNRELEASED_INSTANCE_ID,
             GROUP_MAX_SIZE_REACHED, INVALID_REQUEST, STREAMS_INVALID_TOPOLOGY.
    """
    group = find_group(machine, request, out)
    owned, named = owned_tasks(request)
    step = Step(machine, group, out)
    step.find_member(request, owned)
    if topology is not None:
        topologies.check(topology)
    step.update_member(merged(step.member_metadata, ctx, request), topology, is_static=request.instance_id is not None)
    step.configure()
    if owned is not None:
        step.check_tasks(owned, named)
    step.take_offsets(request)
    step.move_epoch()
    step.assign()
    step.reconcile(owned)
    step.keep_what_is_not_logged()
    out.set_timer(step.member.session_timer, machine.group_value(group.group_id, "streams.session.timeout.ms"))
    if request.shutdown_application and group.shutdown_member_id is None:
        group.shutdown_member_id = request.member_id
    return step.answer(request, ctx.api_version), step.configured.missing


class Step(HeartbeatStep):
    """One request's way through a streams group, step by step."""

    __slots__ = (
        "configs",
        "configured",
        "endpoint_before",
        "group",
        "hash",
        "is_changed",
        "machine",
        "replaced_id",
        "status",
        "task_offsets",
        "topology",
    )

    def __init__(self, machine: Machine, group: StreamsGroup, out: Outcome) -> None:
        self.machine = machine
        self.group = group
        self.out = out
        self.group_epoch = group.group_epoch
        self.is_changed = False  # so the group epoch has to increase
        self.hash = group.metadata_hash
        self.replaced_id: str | None = None  # of the static member whose place the sender takes
        self.status: list[StreamsGroupHeartbeatResponseStatus] = []

    # -- 1

    def find_member(self, request: StreamsGroupHeartbeatRequest, owned: TasksTuple | None) -> None:
        """Find the member that sent the request, or make it.

        Errors:  UNKNOWN_MEMBER_ID, FENCED_MEMBER_EPOCH, FENCED_INSTANCE_ID, UNRELEASED_INSTANCE_ID.
        """
        group, member_id, instance_id, epoch = self.group, request.member_id, request.instance_id, request.member_epoch
        if epoch == JOINING_EPOCH:
            member, self.replaced_id = joining_member(group, member_id, instance_id, self.out)
        else:
            member = known_member(group, member_id, instance_id)
            if epoch != member.current.member_epoch:
                check_other_epoch(
                    member.current, epoch, "tasks", owns_only_assigned=owns_only_assigned(member.current, owned)
                )
        self.use_member(member)
        self.endpoint_before = self.member_metadata.user_endpoint

    # -- 2

    def update_member(
        self, member_metadata: MemberMetadata, topology: StreamsGroupTopologyValue | None, *, is_static: bool
    ) -> None:
        """Take over the member's metadata, and the group's first topology. Errors: INVALID_REQUEST.

        is_static   the request names an instance id: then only what the assignor looks at makes a new group epoch
        """
        group, records = self.group, self.out.records
        is_new = self.replaced_id is None and self.member.member_id not in group.members
        if member_metadata != self.member_metadata or is_new:
            records.append(member_record(group.group_id, self.member.member_id, member_metadata))
            self.is_changed = (
                is_new or not is_static or member_metadata.for_assignor != self.member_metadata.for_assignor
            )
        self.member_metadata = member_metadata
        stored = group.topology
        if stored is None:
            if topology is None:
                raise KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR, "the group has no topology, and none was sent")
            self.topology = topology
            records.append(topology_record(group.group_id, topology))
            return
        self.topology = stored
        if topology is not None and topology.epoch >= stored.epoch and not topologies.is_same(topology, stored):
            raise KafkaError(ErrorCode.INVALID_REQUEST, "the topology of a group cannot be changed yet")
        if member_metadata.topology_epoch < stored.epoch:
            self.add_status(
                topologies.STALE_TOPOLOGY,
                f"The member's topology has epoch {member_metadata.topology_epoch}, the group's {stored.epoch}.",
            )

    # -- 3

    def configure(self) -> None:
        """Check how the topology fits the topics that exist. Errors: STREAMS_INVALID_TOPOLOGY."""
        group, metadata = self.group, self.machine.metadata
        seen = group.metadata_seen
        if group.configured is not None and seen is not None and seen[0] is metadata and seen[1] == metadata.version:
            self.configured = group.configured
            return
        self.hash = metadata_hash(topologies.required_topics(self.topology), metadata)
        if self.hash != group.metadata_hash:
            self.is_changed = True
        self.configured = topologies.configured(self.topology, metadata)

    def check_tasks(self, owned: TasksTuple, named: set[str]) -> None:
        """Refuse tasks that the topology does not have. Errors: INVALID_REQUEST.

        named   the subtopologies of the request, also those without a task
        """
        if not self.configured.is_ready:
            return
        subtopologies = self.configured.subtopologies or {}
        unknown = named - subtopologies.keys()
        if unknown:
            raise KafkaError(ErrorCode.INVALID_REQUEST, f"Subtopology {min(unknown)} is not in the topology.")
        for tasks in owned:
            for subtopology_id, partitions in tasks.items():
                subtopology = subtopologies[subtopology_id]
                if min(partitions) < 0 or max(partitions) >= subtopology.tasks:
                    raise KafkaError(
                        ErrorCode.INVALID_REQUEST, f"Subtopology {subtopology_id} has {subtopology.tasks} tasks only."
                    )

    def take_offsets(self, request: StreamsGroupHeartbeatRequest) -> None:
        """Take over the offsets that the member reports. Errors: INVALID_REQUEST."""
        known = self.group.task_offsets.get(self.member.member_id, NONE_REPORTED)
        if request.task_offsets is not None or request.task_end_offsets is not None:
            known = known.updated(request.task_offsets, request.task_end_offsets)
        self.task_offsets = known

    # -- 4

    def move_epoch(self) -> None:
        """Increase the group epoch if something changed."""
        group = self.group
        valid = self.topology.epoch if self.configured.is_ready else NO_VALID_TOPOLOGY
        self.configs = assignment_configs(self.machine, group.group_id)
        if self.is_changed or valid != group.validated_topology_epoch or self.configs != group.last_assignment_configs:
            self.group_epoch += 1
            self.out.records.append(group_record(group.group_id, self.group_epoch, self.hash, valid, self.configs))

    # -- 5

    def assign(self) -> None:
        """Compute a new target assignment if one is due; find the member's."""
        group, out = self.group, self.out
        delay_ms = self.machine.group_value(group.group_id, "streams.initial.rebalance.delay.ms")
        is_first = group.is_empty and delay_ms > 0
        if is_first and group.delay_timer not in self.machine.delay_timers:
            self.machine.delay_timers.add(group.delay_timer)
            out.set_timer(group.delay_timer, delay_ms)
        self.target_epoch = group.assignment_epoch
        if group.delay_timer in self.machine.delay_timers:
            self.add_status(
                topologies.ASSIGNMENT_DELAYED, "The group waits for more members before its first assignment."
            )
            self.target = TasksTuple()
            return
        self.target = group.target.get(self.replaced_id or self.member.member_id, TasksTuple())
        if group.assignment_epoch >= self.group_epoch:
            return
        interval_ms = self.machine.group_value(group.group_id, "streams.assignment.interval.ms")
        if is_too_early(group, interval_ms, out.now_ms):
            self.add_status(topologies.ASSIGNMENT_DELAYED, "The last assignment is too recent for another one.")
            return
        targets = None
        if group.pending_target is None:
            members = previous_of(group)
            members.pop(self.replaced_id or "", None)
            members[self.member.member_id] = previous(self.member_metadata, self.current, self.task_offsets)
            # not for a member that the next step may refuse: a refusal drops the timer that would finish the work
            may_wait = self.current.state != UNKNOWN and self.machine.groups.get(group.group_id) is group
            targets = compute_target(
                group, members, self.configured, self.configs, self.group_epoch, out, may_wait=may_wait
            )
        if targets is None:
            self.add_status(topologies.ASSIGNMENT_DELAYED, "The assignment is being computed.")
        else:
            self.target_epoch, self.target = self.group_epoch, targets[self.member.member_id]

    # -- 6

    def reconcile(self, owned: TasksTuple | None) -> None:
        """Move the member one step towards its target. Errors: FENCED_MEMBER_EPOCH."""
        group = self.group
        after = reconcile(self.current, self.member_metadata.process_id, self.target_epoch, self.target, group, owned)
        if self.write_current(group.group_id, after, current_record):
            self.set_rebalance_timer(is_revoking=after.state == UNREVOKED_TASKS)

    def keep_what_is_not_logged(self) -> None:
        """Keep offsets and the checked topology for the next heartbeats; nothing can refuse this one any more.

        Replaying a topology record discards the latter again, and a member's tombstone its offsets.
        """
        if self.task_offsets is not NONE_REPORTED:
            self.group.task_offsets[self.member.member_id] = self.task_offsets
        metadata = self.machine.metadata
        self.group.configured, self.group.metadata_seen = self.configured, (metadata, metadata.version)

    # -- 7

    def add_status(self, code: int, detail: str) -> None:
        """Add a problem to the response; the heartbeat still succeeds."""
        self.status.append(StreamsGroupHeartbeatResponseStatus(status_code=code, status_detail=detail))

    def answer(self, request: StreamsGroupHeartbeatRequest, api_version: int) -> StreamsGroupHeartbeatResponse:
        """The response. The endpoints' epoch is 0 for a group that this request creates."""
        group, current = self.group, self.current
        response = StreamsGroupHeartbeatResponse(
            member_id=self.member.member_id,
            member_epoch=current.member_epoch,
            heartbeat_interval_ms=self.machine.group_value(group.group_id, "streams.heartbeat.interval.ms"),
            task_offset_interval_ms=self.machine.group_value(group.group_id, "streams.task.offset.interval.ms"),
            acceptable_recovery_lag=self.machine.group_value(group.group_id, "streams.acceptable.recovery.lag"),
            status=self.status,
        )
        tasks_changed = current.assigned != self.before.assigned
        if request.member_epoch == JOINING_EPOCH or tasks_changed:
            kind = StreamsGroupHeartbeatResponseTaskIds
            response.active_tasks = task_ids(kind, current.assigned.active)
            response.standby_tasks = task_ids(kind, current.assigned.standby)
            response.warmup_tasks = task_ids(kind, current.assigned.warmup)
        endpoint = self.member_metadata.user_endpoint
        if endpoint != self.endpoint_before or (tasks_changed and endpoint is not None):
            group.endpoint_epoch += 1
        if group.endpoint_epoch != request.endpoint_information_epoch:
            shown = {m.member_id: (m.member_metadata.user_endpoint, m.current.assigned) for m in group.members.values()}
            for member_id in {self.replaced_id or "", self.member.member_id} & shown.keys():
                del shown[member_id]
            shown[self.member.member_id] = endpoint, current.assigned  # the sender comes last, as in Kafka
            response.partitions_by_user_endpoint = partitions_by_endpoint(
                shown.values(), self.configured, self.machine.metadata
            )
        if self.machine.groups.get(group.group_id) is group:
            response.endpoint_information_epoch = group.endpoint_epoch
        if self.configured.status is not None:
            self.add_status(*self.configured.status)
        if group.shutdown_member_id is not None:
            self.add_status(
                topologies.SHUTDOWN_APPLICATION,
                f"Member {group.shutdown_member_id} asked for a shutdown of the whole application.",
            )
        if api_version >= TELLS_OF_TAGS_SINCE:
            self._tell_missing_tags()
        return response

    def _tell_missing_tags(self) -> None:
        has = {key for key, _ in self.member_metadata.client_tags}
        missing = [tag for tag in self.configs.get(RACK_TAGS, "").split(",") if tag and tag not in has]
        if missing:
            self.add_status(
                topologies.MISSING_CLIENT_TAGS,
                "Missing required client tags for rack-aware standby assignment: "
                f"[{', '.join(missing)}]. Configure them via 'client.tag.<tagKey>' in your Streams config.",
            )
