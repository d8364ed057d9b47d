"""The next step of one consumer group member towards its target assignment, as a pure function.

    keep     assigned, and in the target
    revoke   assigned, and not in the target
    add      in the target, and no other member has it; what another member still has is *unreleased*

| state                    | the heartbeat's owned partitions | next                                                |
|--------------------------|----------------------------------|-----------------------------------------------------|
| STABLE at the target     | any                              | unchanged, without topics it unsubscribed from      |
| UNREVOKED                | not sent, or some pending one    | unchanged; it may have to give back even more       |
| UNREVOKED                | none of the pending ones         | as below, from the epoch it is at                   |
| STABLE below, UNRELEASED | nothing of revoke                | target epoch: keep and add; UNRELEASED if some were |
| STABLE below, UNRELEASED | not sent, or some of revoke      | UNREVOKED at its epoch: keep; revoke is pending     |
| UNKNOWN                  | not sent, or any                 | FENCED_MEMBER_EPOCH                                 |
| UNKNOWN                  | none                             | as STABLE below, from the target epoch              |

A partition that enters `assigned` gets the target epoch as its assignment epoch; one that stays, or moves to pending,
keeps its own (KAFKA-19779).
Source: KIP-848; Kafka's CurrentAssignmentBuilder (consumer).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from broker.coordinator.groups.assignors.spec import Assignment
from broker.coordinator.groups.consumer.member import (
    NO_PARTITIONS,
    NOTHING,
    STABLE,
    UNKNOWN,
    UNRELEASED_PARTITIONS,
    UNREVOKED_PARTITIONS,
    CurrentAssignment,
    PartitionEpochs,
)
from protocol.errors import ErrorCode, KafkaError

OwnedPartitions = Mapping[bytes, frozenset[int]]  # the partitions that a heartbeat lists as owned


def reconcile(
    current: CurrentAssignment,
    target_epoch: int,
    target: Assignment,
    is_free: Callable[[bytes, int], bool],
    subscribed: Callable[[bytes], bool],
    owned: OwnedPartitions | None,
    *,
    subscription_changed: bool,
    wants_nothing: bool = False,
) -> CurrentAssignment:
    """The member's current assignment after this heartbeat; the very same object if nothing changes.

    is_free    whether no other member has a partition
    subscribed whether the member subscribes to a topic id
    owned      the partitions in the heartbeat; None if it has no list: the member then still owns everything
    wants_nothing   whether no topic matches its subscription now
    Errors:    FENCED_MEMBER_EPOCH: a member in a state of a newer broker that still has partitions.
    """
    epoch = current.member_epoch
    if current.state == UNKNOWN:
        if owned is None or owned:
            raise KafkaError(ErrorCode.FENCED_MEMBER_EPOCH, "the member's state is unknown; it must rejoin")
        epoch = target_epoch
    elif current.state == UNREVOKED_PARTITIONS:
        if _still_owns(owned, current.pending):
            return _without_unsubscribed(current, subscribed, owned, False) if subscription_changed else current
    elif current.state == STABLE and epoch == target_epoch:
        return _without_unsubscribed(current, subscribed, owned, wants_nothing) if subscription_changed else current
    return _next(current, epoch, target_epoch, target, is_free, subscribed, owned)


def _still_owns(owned: OwnedPartitions | None, partitions: PartitionEpochs) -> bool:
    if owned is None:
        return True
    return any(not owned.get(topic_id, frozenset()).isdisjoint(epochs) for topic_id, epochs in partitions.items())


def _next(
    current: CurrentAssignment,
    epoch: int,
    target_epoch: int,
    target: Assignment,
    is_free: Callable[[bytes, int], bool],
    subscribed: Callable[[bytes], bool],
    owned: OwnedPartitions | None,
) -> CurrentAssignment:
    keep: dict[bytes, Mapping[int, int]] = {}
    revoke: dict[bytes, Mapping[int, int]] = {}
    for topic_id, epochs in current.assigned.items():
        wanted = target.get(topic_id, ()) if subscribed(topic_id) else ()
        if len(wanted) == len(epochs) and epochs.keys() == set(wanted):
            keep[topic_id] = epochs
            continue
        in_target = frozenset(wanted)
        kept = {p: e for p, e in epochs.items() if p in in_target}
        if kept:
            keep[topic_id] = kept
        if len(kept) < len(epochs):
            revoke[topic_id] = {p: e for p, e in epochs.items() if p not in in_target}
    if revoke and _still_owns(owned, revoke):
        return CurrentAssignment(
            epoch, current.member_epoch, UNREVOKED_PARTITIONS, keep, revoke, current.revocation_epoch
        )
    is_waiting = False
    for topic_id, wanted in target.items():
        if not subscribed(topic_id):
            continue
        kept_here = keep.get(topic_id, NO_PARTITIONS)
        if len(kept_here) == len(wanted):
            continue
        added = dict(kept_here)
        for partition in wanted:
            if partition not in kept_here:
                if is_free(topic_id, partition):
                    added[partition] = target_epoch
                else:
                    is_waiting = True
        if added:
            keep[topic_id] = added
    state = UNRELEASED_PARTITIONS if is_waiting else STABLE
    return CurrentAssignment(target_epoch, current.member_epoch, state, keep, NOTHING, current.revocation_epoch)


def _without_unsubscribed(
    current: CurrentAssignment, subscribed: Callable[[bytes], bool], owned: OwnedPartitions | None, wants_nothing: bool
) -> CurrentAssignment:
    """Revoke at once the topics that the member has just unsubscribed from.

    A member that wants nothing, and has nothing, is written again too: its previous epoch is then its present one.
    """
    gone = {t: epochs for t, epochs in current.assigned.items() if not subscribed(t)}
    if not gone and not wants_nothing:
        return current
    keep = {t: epochs for t, epochs in current.assigned.items() if t not in gone}
    pending = dict(current.pending)
    for topic_id, epochs in gone.items():
        pending[topic_id] = {**pending.get(topic_id, NO_PARTITIONS), **epochs}
    if pending and _still_owns(owned, pending):
        return current.moved(current.member_epoch, UNREVOKED_PARTITIONS, keep, pending)
    return current.moved(current.member_epoch, current.state, keep, current.pending)
