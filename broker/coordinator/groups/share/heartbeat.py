"""ShareGroupHeartbeat: the steps from the request to records and response, in Kafka's order.

    1  find or create the group, then the member; refuse member epochs that do not fit
    2  take over what the member said; increase the group epoch if subscriptions, topics or share partitions changed
    3  compute a new target assignment if the group epoch is ahead of the assignment epoch
    4  give the member its target
    5  list the share partitions that are subscribed and have no state yet: the caller makes it
    6  respond, with the assignment if the member may not know it

Source: KIP-932; Kafka's GroupMetadataManager.shareGroupHeartbeat.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from broker.coordinator.groups.assignors.simple import assign_simple
from broker.coordinator.groups.assignors.spec import UNASSIGNED, Assignment
from broker.coordinator.groups.common.member import JOINING_EPOCH
from broker.coordinator.groups.common.metadata_hash import metadata_hash
from broker.coordinator.groups.common.target import is_due
from broker.coordinator.groups.share.group import ShareGroup
from broker.coordinator.groups.share.member import CurrentAssignment, MemberMetadata, ShareMember
from broker.coordinator.groups.share.records import (
    current_record,
    group_record,
    member_record,
    state_partitions_record,
    target_epoch_record,
    target_record,
)
from broker.coordinator.groups.share.state_partitions import Missing, union
from protocol.errors import ErrorCode, KafkaError
from protocol.messages.share_group import (
    ShareGroupHeartbeatResponse,
    ShareGroupHeartbeatResponseAssignment,
    ShareGroupHeartbeatResponseTopicPartitions,
)

if TYPE_CHECKING:
    from broker.base.context import Context
    from broker.coordinator.groups.common.outcome import Outcome
    from broker.coordinator.groups.share.machine import Machine
    from protocol.messages.share_group import ShareGroupHeartbeatRequest


def heartbeat(
    machine: Machine, ctx: Context, request: ShareGroupHeartbeatRequest, out: Outcome
) -> tuple[Any, int, Missing]:
    """Serve a heartbeat of a member that stays or joins. `request` has passed the checks that need no group.

    Returns the response, the group epoch, and the share partitions whose state has to be made.
    Shape:   member, group epoch, targets, current assignment and share partitions, each only if it changed.
    Errors:  GROUP_ID_NOT_FOUND, UNKNOWN_MEMBER_ID, FENCED_MEMBER_EPOCH, GROUP_MAX_SIZE_REACHED.
    """
    step = _Step(machine, _group(machine, request), request, out)
    step.update_member(ctx)
    step.assign()
    step.reconcile()
    group = step.group
    group.metadata_seen = step.seen  # last: a refused request must not mark the metadata as compared
    to_make = step.missing_state()
    out.set_timer(step.member.session_timer, machine.group_value(group.group_id, "share.session.timeout.ms"))
    response = ShareGroupHeartbeatResponse(
        member_id=request.member_id,
        member_epoch=step.current.member_epoch,
        heartbeat_interval_ms=machine.group_value(group.group_id, "share.heartbeat.interval.ms"),
    )
    is_full = request.subscribed_topic_names is not None
    if request.member_epoch == JOINING_EPOCH or is_full or step.current.assigned != step.member.current.assigned:
        response.assignment = ShareGroupHeartbeatResponseAssignment(
            topic_partitions=[
                ShareGroupHeartbeatResponseTopicPartitions(topic_id=topic_id, partitions=sorted(partitions))
                for topic_id, partitions in step.current.assigned.items()
            ]
        )
    return response, step.group_epoch, to_make


def _group(machine: Machine, request: ShareGroupHeartbeatRequest) -> ShareGroup:
    """The group; a joining member may create it. Errors: GROUP_ID_NOT_FOUND."""
    found = machine.groups.get(request.group_id)
    if isinstance(found, ShareGroup):
        return found
    if machine.has_group(request.group_id):
        raise KafkaError(ErrorCode.GROUP_ID_NOT_FOUND, f"Group {request.group_id} is not a share group.")
    if request.member_epoch != JOINING_EPOCH:
        raise KafkaError(ErrorCode.GROUP_ID_NOT_FOUND, f"Share group {request.group_id} not found.")
    return ShareGroup(request.group_id)


def check_epoch(current: CurrentAssignment, epoch: int) -> None:
    """Refuse a heartbeat with another member epoch than the member's, unless the last response was lost.

    | epoch received     | result                                                                        |
    |--------------------|-------------------------------------------------------------------------------|
    | 0                  | accepted: the member joins, or joins again                                    |
    | the member's       | accepted                                                                      |
    | below the member's | accepted if it is the previous one: a lost response; else FENCED_MEMBER_EPOCH |
    | above the member's | FENCED_MEMBER_EPOCH                                                           |
    """
    known = current.member_epoch
    if epoch in (JOINING_EPOCH, known, current.previous_member_epoch):
        return
    raise KafkaError(
        ErrorCode.FENCED_MEMBER_EPOCH,
        f"the member's epoch is {known}, not {epoch}: it must give up its partitions and rejoin",
    )


class _Step:
    """One request's way through a share group, step by step."""

    def __init__(self, machine: Machine, group: ShareGroup, request: ShareGroupHeartbeatRequest, out: Outcome) -> None:
        self.machine = machine
        self.group = group
        self.request = request
        self.out = out
        self.group_epoch = group.group_epoch
        self.seen = group.metadata_seen
        self.bumped = False
        member_id = request.member_id
        member = group.members.get(member_id)
        if member is None and len(group.members) >= machine.config.group_share_max_size:
            raise KafkaError(
                ErrorCode.GROUP_MAX_SIZE_REACHED,
                f"The share group has reached its maximum capacity of {machine.config.group_share_max_size} members.",
            )
        if member is None and request.member_epoch != JOINING_EPOCH:
            raise KafkaError(
                ErrorCode.UNKNOWN_MEMBER_ID, f"Member {member_id} is not a member of group {group.group_id}."
            )
        self.is_new = member is None
        self.member = member or ShareMember(group.group_id, member_id)
        self.current = self.member.current
        check_epoch(self.current, request.member_epoch)

    def update_member(self, ctx: Context) -> None:
        """Take over what the member said; increase the group epoch if needed."""
        group, metadata, old = self.group, self.machine.metadata, self.member.member_metadata
        names, rack_id = self.request.subscribed_topic_names, self.request.rack_id
        self.metadata = MemberMetadata(
            old.rack_id if rack_id is None else rack_id,
            ctx.client_id,
            ctx.client_host,
            old.topic_names if names is None else frozenset(names),
        )
        if self.metadata != old:
            self.out.records.append(member_record(group.group_id, self.member.member_id, self.metadata))
        others = [m.member_metadata.topic_names for m in group.members.values() if m is not self.member]
        self.names = frozenset().union(self.metadata.topic_names, *others)
        bump = self.metadata.topic_names != old.topic_names
        if group.assignment_epoch >= group.group_epoch:
            bump = bump or group.has_unassigned()
        seen = group.metadata_seen
        if bump or seen is None or seen[0] is not metadata or seen[1] != metadata.version:
            self.seen = (metadata, metadata.version)
            hash_ = metadata_hash(self.names, metadata)
            if bump or hash_ != group.metadata_hash:
                self.bumped = True
                self.group_epoch += 1
                self.out.records.append(group_record(group.group_id, self.group_epoch, hash_))

    def assign(self) -> None:
        """Compute a new target assignment if one is due; find the member's."""
        group, out, member_id = self.group, self.out, self.member.member_id
        self.target_epoch = group.assignment_epoch
        self.target: Assignment = group.target.get(member_id, UNASSIGNED)
        interval_ms = self.machine.group_value(group.group_id, "share.assignment.interval.ms")
        if not is_due(group, self.group_epoch, interval_ms, out.now_ms):
            return
        topics = self.machine.metadata.topics
        wants = {m.member_id: m.member_metadata.topic_names for m in group.members.values()}
        wants[member_id] = self.metadata.topic_names
        ids = {
            names: frozenset([topics[name].topic_id for name in names if name in topics])
            for names in set(wants.values())
        }
        assignable = {t: sorted(found) for t, (_, found) in group.state_partitions.initialized.items()}
        made = assign_simple({m: ids[names] for m, names in wants.items()}, assignable, group.target)
        for assigned_id, assignment in made.items():
            if group.target.get(assigned_id) != assignment:  # one without a target gets a record in any case
                out.records.append(target_record(group.group_id, assigned_id, assignment))
        out.records.append(target_epoch_record(group.group_id, self.group_epoch, out.now_ms))
        self.target_epoch = self.group_epoch
        self.target = made[member_id]

    def reconcile(self) -> None:
        """Give the member its target, without topics that it does not subscribe to."""
        current = self.current
        if not self.bumped and current.member_epoch == self.target_epoch:
            return
        topics = self.machine.metadata.topics
        wanted = {topics[name].topic_id for name in self.metadata.topic_names if name in topics}
        assigned = {topic_id: partitions for topic_id, partitions in self.target.items() if topic_id in wanted}
        if self.target_epoch != current.member_epoch:
            self.current = CurrentAssignment(self.target_epoch, current.member_epoch, assigned)
        else:
            self.current = current._replace(assigned=assigned)
        if self.current != current or self.is_new:
            self.out.records.append(current_record(self.group.group_id, self.member.member_id, self.current))

    def missing_state(self) -> Missing:
        """The subscribed share partitions without state; their record goes to `out`.

        One whose state was asked for a while ago is asked for again: the answer may have been lost.
        """
        group, topics, partitions = self.group, self.machine.metadata.topics, self.group.state_partitions
        retry_ms = self.machine.config.group_share_initialize_retry_interval_ms
        fresh = {
            topic_id: found
            for topic_id, found in partitions.initializing.items()
            if topic_id in group.initializing_since and self.out.now_ms - group.initializing_since[topic_id] < retry_ms
        }
        known = union(partitions.initialized, fresh)
        missing = {}
        added: dict[bytes, frozenset[int]] = {}
        for name in sorted(self.names):
            topic = topics.get(name)
            if topic is not None:
                there = known.get(topic.topic_id, ("", frozenset()))[1]
                left = frozenset(range(len(topic.partitions))) - there
                if left:
                    missing[topic.topic_id] = name, left
                    added[topic.topic_id] = partitions.added(topic.topic_id, left)
        if missing:
            self.out.records.append(state_partitions_record(group.group_id, partitions.begun(missing)))
        return Missing(missing, added)
