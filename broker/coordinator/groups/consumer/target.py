"""The target assignment: when it is computed, from what, and the records that change it.

It is due when the group epoch is above the assignment epoch, at most once an assignment interval. It is computed at
once where that is quick; a large group is gone through between the turns of the loop, and until then its members go on
with the old target, as they do while the interval has not passed.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

from broker.coordinator.groups.assignors.choose import assignor
from broker.coordinator.groups.assignors.spec import UNASSIGNED, Assignment, Changes, Spec
from broker.coordinator.groups.common.group import PendingTarget
from broker.coordinator.groups.consumer.member import MemberMetadata, Subscription
from broker.coordinator.groups.consumer.records import target_epoch_record, target_record
from broker.coordinator.result import Record

if TYPE_CHECKING:
    from broker.cluster.metadata import ClusterMetadata
    from broker.coordinator.groups.consumer.group import ConsumerGroup

WORK_AT_ONCE: Final = 20_000  # members plus partitions that are assigned inside a request: about 15 ms
MIXED_WORK_AT_ONCE: Final = 3_000  # ... where members want different topics, with each topic a member wants: 10 ms


class Draft:
    """A group as it will be when the records of one request are replayed: one member new, changed or replaced."""

    __slots__ = ("group", "member_id", "member_metadata", "replaced_id", "subscriptions")

    def __init__(
        self,
        group: ConsumerGroup,
        member_id: str | None = None,
        member_metadata: MemberMetadata | None = None,
        replaced_id: str | None = None,
    ) -> None:
        self.group = group
        self.member_id = member_id
        self.member_metadata = member_metadata
        self.replaced_id = replaced_id
        self.subscriptions: Mapping[Subscription, int] = group.subscriptions
        if member_metadata is not None and member_id is not None:
            before = group.members.get(replaced_id or member_id)
            if before is None or before.member_metadata.subscription != member_metadata.subscription:
                counts = dict(group.subscriptions)
                if before is not None:
                    _less(counts, before.member_metadata.subscription)
                counts[member_metadata.subscription] = counts.get(member_metadata.subscription, 0) + 1
                self.subscriptions = counts

    def topic_names(self) -> frozenset[str]:
        """All topics that somebody wants."""
        return self.group.topic_names(self.subscriptions)

    def target(self) -> Assignment:
        """The last target of the member; one that replaces another has the other's."""
        found = self.group.target.get(self.replaced_id or self.member_id or "")
        return UNASSIGNED if found is None else found

    def spec(self, metadata: ClusterMetadata) -> Spec:
        """What an assignor needs to know."""
        group, member_id = self.group, self.member_id
        members = [m for m in group.members if m != self.replaced_id]
        targets: Mapping[str, Assignment] = group.target
        instance_ids = {m: i for i, m in group.static_members.items() if m != self.replaced_id}
        if member_id is not None and self.member_metadata is not None:
            if member_id == self.replaced_id or member_id not in group.members:
                members.append(member_id)
            if self.replaced_id is not None:
                targets = {**group.target, member_id: self.target()}
            if self.member_metadata.instance_id is not None:
                instance_ids[member_id] = self.member_metadata.instance_id
        wanted = {s: topic_ids(group.resolved(s), metadata) for s in self.subscriptions}
        everything = list(wanted.values())
        topics = {t: len(metadata.topics_by_id[t].partitions) for ids in everything for t in ids}
        if all(ids == everything[0] for ids in everything):
            return Spec(members, topics, targets, None, instance_ids)
        wants = {
            m: wanted[
                self.member_metadata.subscription
                if m == member_id and self.member_metadata
                else group.members[m].member_metadata.subscription
            ]
            for m in members
        }
        return Spec(members, topics, targets, wants, instance_ids)


def topic_ids(names: frozenset[str], metadata: ClusterMetadata) -> frozenset[bytes]:
    """The ids of those topics that exist."""
    topics = metadata.topics
    return frozenset(topics[name].topic_id for name in names if name in topics)


def is_large(spec: Spec) -> bool:
    """Whether computing it takes longer than the loop may be kept."""
    work = len(spec.members) + sum(spec.topics.values())
    if spec.wants is None:
        return work > WORK_AT_ONCE
    return work + sum(map(len, spec.wants.values())) > MIXED_WORK_AT_ONCE


def pending_target(spec: Spec, name: str, epoch: int) -> PendingTarget:
    """A target that the assignor of that name computes in steps."""
    return PendingTarget(epoch, assignor(name)(spec), spec.members, spec.instance_ids)


def target_records(group_id: str, changes: Changes, epoch: int, now_ms: int) -> list[Record]:
    """What makes the new target the group's."""
    records = [target_record(group_id, member_id, assignment) for member_id, assignment in changes.items()]
    records.append(target_epoch_record(group_id, epoch, now_ms))
    return records


def for_present_members(group: ConsumerGroup, pending: PendingTarget, changes: Changes) -> Changes:
    """The changes for those who are still members; who replaced a static member gets what was meant for it."""
    settled: Changes = {}
    for member_id, assignment in changes.items():
        if member_id in group.members:
            settled[member_id] = assignment
        else:
            heir = group.static_members.get(pending.instance_ids.get(member_id, ""))
            if heir is not None and heir not in pending.members:
                settled[heir] = assignment
    return settled


def _less(counts: dict[Subscription, int], subscription: Subscription) -> None:
    if counts[subscription] == 1:
        del counts[subscription]
    else:
        counts[subscription] -= 1
