"""ConsumerGroupHeartbeat: the steps from the request to records and response, in Kafka's order.

    1  find or create the group, then the member; refuse member epochs that do not fit
    2  take over the member's new metadata; increase the group epoch if the subscribed topics changed, or the assignor
       that most members ask for
    3  compute a new target assignment if the group epoch is ahead of the assignment epoch
    4  move the member one step towards its target assignment
    5  respond, with the assignment if the member may not know it

Source: KIP-848; Kafka's GroupMetadataManager.consumerGroupHeartbeat.
"""

from __future__ import annotations

from base64 import urlsafe_b64encode
from typing import TYPE_CHECKING, Any

from broker.coordinator.groups.assignors.choose import assignor
from broker.coordinator.groups.assignors.spec import UNASSIGNED, run
from broker.coordinator.groups.common.heartbeat import HeartbeatStep
from broker.coordinator.groups.common.member import JOINING_EPOCH, STATIC_LEAVING_EPOCH, check_other_epoch
from broker.coordinator.groups.common.metadata_hash import metadata_hash
from broker.coordinator.groups.common.target import compute_in_steps, is_due
from broker.coordinator.groups.consumer import regex, target
from broker.coordinator.groups.consumer.group import ConsumerGroup
from broker.coordinator.groups.consumer.member import (
    UNKNOWN,
    UNREVOKED_PARTITIONS,
    ConsumerMember,
    CurrentAssignment,
    MemberMetadata,
)
from broker.coordinator.groups.consumer.migration import upgraded
from broker.coordinator.groups.consumer.reconcile import OwnedPartitions, reconcile
from broker.coordinator.groups.consumer.records import (
    current_record,
    group_record,
    member_record,
    member_tombstones,
    target_record,
)
from broker.coordinator.groups.consumer.target import Draft, topic_ids
from protocol.errors import ErrorCode, KafkaError
from protocol.messages.consumer_group import (
    ConsumerGroupHeartbeatResponse,
    ConsumerGroupHeartbeatResponseAssignment,
    ConsumerGroupHeartbeatResponseTopicPartitions,
)

if TYPE_CHECKING:
    from broker.base.context import Context
    from broker.coordinator.groups.common.outcome import Outcome
    from broker.coordinator.groups.consumer.machine import Machine
    from protocol.messages.consumer_group import ConsumerGroupHeartbeatRequest


def heartbeat(machine: Machine, ctx: Context, request: ConsumerGroupHeartbeatRequest, out: Outcome) -> Any:
    """Serve a heartbeat of a member that stays or joins. `request` has passed the checks that need no group.

    Shape:   member, group epoch, target and current assignment records, each only if it changed.
    Errors:  GROUP_ID_NOT_FOUND, UNKNOWN_MEMBER_ID, FENCED_MEMBER_EPOCH, FENCED_INSTANCE_ID, UNRELEASED_INSTANCE_ID,
             GROUP_MAX_SIZE_REACHED, INVALID_REGULAR_EXPRESSION.
    """
    group_id, epoch = request.group_id, request.member_epoch
    group = _group(machine, group_id, epoch, out)
    member_id = request.member_id or urlsafe_b64encode(ctx.rng.uuid_bytes()).decode().rstrip("=")
    check_size(machine, group, member_id, request.instance_id)
    owned = None
    if request.topic_partitions is not None:
        owned = {t.topic_id: frozenset(t.partitions) for t in request.topic_partitions}
    step = Step(machine, group, out)
    step.find_member(member_id, epoch, request.instance_id, owned)
    step.update_member(_merge(step.member_metadata, ctx, request))
    step.assign()
    step.reconcile(owned)
    group.metadata_seen = step.seen  # last: a refused request must not mark the metadata as compared
    timeout_ms = machine.group_value(group_id, "consumer.session.timeout.ms")
    out.set_timer(step.member.session_timer, timeout_ms)
    response = ConsumerGroupHeartbeatResponse(
        member_id=member_id,
        member_epoch=step.current.member_epoch,
        heartbeat_interval_ms=machine.group_value(group_id, "consumer.heartbeat.interval.ms"),
    )
    is_full = (
        owned is not None
        and request.rebalance_timeout_ms != -1
        and (request.subscribed_topic_names is not None or request.subscribed_topic_regex is not None)
    )
    if epoch == JOINING_EPOCH or is_full or step.current.assigned != step.before.assigned:
        response.assignment = _assignment(step.current)
    return response


def check_size(machine: Machine, group: ConsumerGroup, member_id: str, instance_id: str | None) -> None:
    """Refuse one member too many; a member, and who comes for a known instance id, has its place already."""
    most = machine.config.group_consumer_max_size
    if member_id not in group.members and instance_id not in group.static_members and len(group.members) >= most:
        raise KafkaError(
            ErrorCode.GROUP_MAX_SIZE_REACHED,
            f"The consumer group has reached its maximum capacity of {most} members.",
        )


def _group(machine: Machine, group_id: str, epoch: int, out: Outcome) -> ConsumerGroup:
    """The group; a joining member may create it, or convert a classic one. Errors: GROUP_ID_NOT_FOUND."""
    found = machine.groups.get(group_id)
    if isinstance(found, ConsumerGroup):
        return found
    if epoch != JOINING_EPOCH:
        raise KafkaError(ErrorCode.GROUP_ID_NOT_FOUND, f"Consumer group {group_id} not found.")
    if found is None:
        return ConsumerGroup(group_id)
    return upgraded(machine, found, out)


def _merge(member_metadata: MemberMetadata, ctx: Context, request: ConsumerGroupHeartbeatRequest) -> MemberMetadata:
    """The member's metadata after this request; null fields mean no change."""
    names, timeout_ms = request.subscribed_topic_names, request.rebalance_timeout_ms
    return MemberMetadata(
        member_metadata.instance_id if request.instance_id is None else request.instance_id,
        member_metadata.rack_id if request.rack_id is None else request.rack_id,
        ctx.client_id,
        ctx.client_host,
        member_metadata.topic_names if names is None else frozenset(names),
        member_metadata.topic_regex if request.subscribed_topic_regex is None else request.subscribed_topic_regex,
        member_metadata.rebalance_timeout_ms if timeout_ms == -1 else timeout_ms,
        member_metadata.server_assignor if request.server_assignor is None else request.server_assignor,
    )


def _assignment(current: CurrentAssignment) -> ConsumerGroupHeartbeatResponseAssignment:
    return ConsumerGroupHeartbeatResponseAssignment(
        topic_partitions=[
            ConsumerGroupHeartbeatResponseTopicPartitions(topic_id=topic_id, partitions=sorted(epochs))
            for topic_id, epochs in current.assigned.items()
        ]
    )


class Step(HeartbeatStep):
    """One request's way through a consumer group, step by step."""

    __slots__ = ("draft", "group", "machine", "replaced_id", "seen", "subscription_changed")

    def __init__(self, machine: Machine, group: ConsumerGroup, out: Outcome) -> None:
        self.machine = machine
        self.group = group
        self.out = out
        self.group_epoch = group.group_epoch
        self.seen = group.metadata_seen
        self.replaced_id: str | None = None
        self.subscription_changed = False

    # -- 1

    def find_member(self, member_id: str, epoch: int, instance_id: str | None, owned: OwnedPartitions | None) -> None:
        """Find the member that sent the request, or make it.

        Errors:  UNKNOWN_MEMBER_ID, FENCED_INSTANCE_ID, UNRELEASED_INSTANCE_ID, FENCED_MEMBER_EPOCH.
        """
        group, joins = self.group, epoch == JOINING_EPOCH
        if instance_id is None:
            member = group.members.get(member_id)
            if member is None and not joins:
                raise KafkaError(ErrorCode.UNKNOWN_MEMBER_ID, f"{member_id} is not a member of the group")
        else:
            member = group.static_member(instance_id)
            if joins and member is not None:
                if member.current.member_epoch != STATIC_LEAVING_EPOCH and not member.uses_classic_protocol:
                    raise KafkaError(
                        ErrorCode.UNRELEASED_INSTANCE_ID,
                        f"instance id {instance_id} is still owned by member {member.member_id}",
                    )
                self.replace_static(member, member_id)
                return
            if not joins:
                _check_static(member, member_id, instance_id)
            elif member_id in group.members:
                member = group.members[member_id]
        self.use_member(member or ConsumerMember(group.group_id, member_id))
        if not joins and epoch != self.current.member_epoch:
            assigned = self.current.assigned
            check_other_epoch(
                self.current,
                epoch,
                "partitions",
                owns_only_assigned=owned is not None
                and all(t in assigned and p <= assigned[t].keys() for t, p in owned.items()),
            )

    def replace_static(self, old: ConsumerMember, member_id: str) -> None:
        """Replace a static member that is back with another member id; the new one has its assignment, at epoch 0."""
        group_id, records = self.group.group_id, self.out.records
        current = old.current._replace(member_epoch=0, previous_member_epoch=0)
        self.use_member(ConsumerMember(group_id, member_id, old.member_metadata, current))
        self.replaced_id = old.member_id
        records += member_tombstones(group_id, old.member_id)
        for timer in old.timers():
            self.out.cancel_timer(timer)
        records.append(member_record(group_id, member_id, old.member_metadata))
        records.append(target_record(group_id, member_id, self.group.target.get(old.member_id, UNASSIGNED)))
        records.append(current_record(group_id, member_id, current))

    # -- 2

    def update_member(self, member_metadata: MemberMetadata) -> None:
        """Take over the member's metadata; increase the group epoch if needed. Errors: INVALID_REGULAR_EXPRESSION."""
        group, out, metadata = self.group, self.out, self.machine.metadata
        old, self.member_metadata = self.member_metadata, member_metadata
        regex_change = regex.NO_CHANGE
        bump = False
        is_new = self.member.member_id not in group.members
        if member_metadata != old:
            out.records.append(member_record(group.group_id, self.member.member_id, member_metadata))
            bump = member_metadata.topic_names != old.topic_names
            regex_change = regex.changed(group, old, member_metadata, out.records)
        is_other = member_metadata != old or is_new
        self.draft = (
            Draft(group, self.member.member_id, member_metadata, self.replaced_id) if is_other else Draft(group)
        )
        self.subscription_changed = bump or regex_change != regex.NO_CHANGE
        bump = bump or regex_change == regex.UPDATED_AND_RESOLVED
        if member_metadata.server_assignor != old.server_assignor:
            default = self.machine.config.group_consumer_assignors[0]
            bump = bump or group.preferred_assignor(default) != group.preferred_assignor(default, old, member_metadata)
        self._refresh_expressions()
        seen = group.metadata_seen
        if bump or seen is None or seen[0] is not metadata or seen[1] != metadata.version:
            self.seen = (metadata, metadata.version)
            hash_ = metadata_hash(self.draft.topic_names(), metadata)
            if bump or hash_ != group.metadata_hash:
                self.group_epoch += 1
                out.records.append(group_record(group.group_id, self.group_epoch, hash_))

    def _refresh_expressions(self) -> None:
        group, machine = self.group, self.machine
        if not group.regex_members and not self.member_metadata.topic_regex:
            return
        interval_ms = machine.config.group_consumer_regex_refresh_interval_ms
        if regex.is_due(group, self.draft, machine.metadata, self.out.now_ms, interval_ms):
            if self.out.access is not None:
                machine.askers[group.group_id] = self.out.access
            self.out.set_timer(("regex", group.group_id), 0)

    # -- 3

    def assign(self) -> None:
        """Compute a new target assignment if one is due; find the member's."""
        group, out, draft = self.group, self.out, self.draft
        self.target_epoch = group.assignment_epoch
        self.target = group.target.get(self.replaced_id or self.member.member_id, UNASSIGNED)
        interval_ms = self.machine.group_value(group.group_id, "consumer.assignment.interval.ms")
        if not is_due(group, self.group_epoch, interval_ms, out.now_ms):
            return
        default = self.machine.config.group_consumer_assignors[0]
        before = group.members.get(self.replaced_id or self.member.member_id)
        name = group.preferred_assignor(
            default, before.member_metadata if before is not None else None, self.member_metadata
        )
        if draft.member_id is None:
            draft = Draft(group, self.member.member_id, self.member_metadata, self.replaced_id)
        spec = draft.spec(self.machine.metadata)
        # not for a member that the next step may refuse: a refusal drops the timer that would finish the work
        may_wait = self.current.state != UNKNOWN and self.machine.groups.get(group.group_id) is group
        if may_wait and target.is_large(spec):
            compute_in_steps(group, target.pending_target(spec, name, self.group_epoch), out)
            return
        changes = run(assignor(name)(spec))
        out.records += target.target_records(group.group_id, changes, self.group_epoch, out.now_ms)
        self.target_epoch = self.group_epoch
        self.target = changes.get(self.member.member_id, self.target)

    # -- 4

    def reconcile(self, owned: OwnedPartitions | None) -> None:
        """Move the member one step towards its target. Errors: FENCED_MEMBER_EPOCH."""
        current, group = self.current, self.group
        if not self.subscription_changed and current.is_reconciled_to(self.target_epoch):
            return
        member_id, replaced_id = self.member.member_id, self.replaced_id
        wanted = topic_ids(group.resolved(self.member_metadata.subscription), self.machine.metadata)
        free_or_own = (None, member_id, replaced_id)
        after = reconcile(
            current,
            self.target_epoch,
            self.target,
            lambda topic_id, partition: group.owner(topic_id, partition) in free_or_own,
            wanted.__contains__,
            owned,
            subscription_changed=self.subscription_changed,
            wants_nothing=not wanted,
        )
        if self.write_current(group.group_id, after, current_record) and self.member_metadata.classic is None:
            self.set_rebalance_timer(is_revoking=after.state == UNREVOKED_PARTITIONS)


def _check_static(member: ConsumerMember | None, member_id: str, instance_id: str) -> None:
    if member is None:
        raise KafkaError(ErrorCode.UNKNOWN_MEMBER_ID, f"Instance id {instance_id} is unknown.")
    if member.member_id != member_id:
        raise KafkaError(
            ErrorCode.FENCED_INSTANCE_ID, f"{member_id} with instance id {instance_id} is fenced by {member.member_id}"
        )
