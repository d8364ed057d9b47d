"""The target assignment of a consumer group: what it is computed from, and the records that change it.

When it is computed: common/target.py.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

from broker.coordinator.groups.assignors.choose import assignor
from broker.coordinator.groups.assignors.spec import UNASSIGNED, Assignment, Changes, Spec
from broker.coordinator.groups.common.group import PendingTarget
from broker.coordinator.groups.consumer.member import MemberMetadata, Subscription
from broker.coordinator.groups.consumer.records import target_epoch_record, target_record
from broker.turn.decision import Record

if TYPE_CHECKING:
    from broker.cluster.metadata import ClusterMetadata
    from broker.coordinator.groups.consumer.group import ConsumerGroup

WORK_AT_ONCE: Final = 20_000  # members + partitions that are assigned inside a request: about 15 ms
MIXED_WORK_AT_ONCE: Final = 3_000  # ... + topics of each member, if subscriptions differ: about 10 ms


class Draft:
    """The group as it will be after the records of one request: one member added, changed or replaced."""

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
        """All topics that members subscribe to."""
        return self.group.topic_names(self.subscriptions)

    def target(self) -> Assignment:
        """The last target of the member, or of the one it replaces."""
        found = self.group.target.get(self.replaced_id or self.member_id or "")
        return UNASSIGNED if found is None else found

    def spec(self, metadata: ClusterMetadata) -> Spec:
        """The input of an assignor."""
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
    """The ids of the topics that exist."""
    topics = metadata.topics
    return frozenset(topics[name].topic_id for name in names if name in topics)


def is_large(spec: Spec) -> bool:
    """Whether computing the target would block the event loop too long."""
    work = len(spec.members) + sum(spec.topics.values())
    if spec.wants is None:
        return work > WORK_AT_ONCE
    return work + sum(map(len, spec.wants.values())) > MIXED_WORK_AT_ONCE


def pending_target(spec: Spec, name: str, epoch: int) -> PendingTarget:
    """A target that the assignor of that name computes in steps."""
    return PendingTarget(epoch, assignor(name)(spec), spec.members, spec.instance_ids)


def target_records(group_id: str, changes: Changes, epoch: int, now_ms: int) -> list[Record]:
    """The records of a new target: the members' first, then its epoch."""
    records = [target_record(group_id, member_id, assignment) for member_id, assignment in changes.items()]
    records.append(target_epoch_record(group_id, epoch, now_ms))
    return records


def _less(counts: dict[Subscription, int], subscription: Subscription) -> None:
    if counts[subscription] == 1:
        del counts[subscription]
    else:
        counts[subscription] -= 1
