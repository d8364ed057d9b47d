"""The uniform assignor for members with equal subscriptions: even to within one partition, moving few partitions.

With P partitions and M members each member gets P // M, and P mod M of the members one more. In order, each member
keeps what it has, up to its share. What is above a share, and unassigned partitions, go to members below theirs. A
member that does not need the extra partition leaves it to a later one, unless every member left has to take one.
Members with different subscriptions: assignors/mixed.py.

Source: KIP-848; Kafka's UniformHomogeneousAssignmentBuilder.
"""

from __future__ import annotations

from collections.abc import Generator

from broker.coordinator.groups.assignors.mixed import assign_mixed
from broker.coordinator.groups.assignors.spec import Assignment, Changes, Spec, Steps

PAIRS_A_SLICE = 20_000


def assign_uniform(spec: Spec) -> Steps:
    """Give each member an even share of all partitions."""
    if spec.wants is not None:
        return (yield from assign_mixed(spec))
    topics = spec.topics
    share, extra = divmod(sum(topics.values()), len(spec.members))
    changes: Changes = {}
    unfilled: list[tuple[str, int]] = []
    surplus: list[tuple[bytes, int]] = []
    held = 0
    left = len(spec.members)
    for member_id in spec.members:
        old = spec.target(member_id)
        size = 0
        for topic_id, partitions in old.items():
            if topic_id not in topics:
                changes[member_id] = {t: p for t, p in old.items() if t in topics}
                size = sum(map(len, changes[member_id].values()))
                break
            size += len(partitions)
        held += size
        takes_extra = extra > 0
        room = share + takes_extra - size
        if room < 0:
            changes[member_id] = _first(changes.get(member_id, old), share + takes_extra, surplus)
        elif room > 0 and takes_extra and left > extra:
            room -= 1
            takes_extra = False
        if room > 0:
            unfilled.append((member_id, room))
        extra -= takes_extra
        left -= 1
    yield
    if held < sum(topics.values()):
        free = yield from _unassigned(spec)
        surplus = free + surplus
    at = 0
    for member_id, room in unfilled:
        if at == len(surplus):
            break
        changes[member_id] = _with(changes.get(member_id, spec.target(member_id)), surplus[at : at + room])
        at += room
    return changes


def _first(assignment: Assignment, count: int, surplus: list[tuple[bytes, int]]) -> Assignment:
    """The first `count` partitions; the others are surplus."""
    kept: dict[bytes, tuple[int, ...]] = {}
    for topic_id, partitions in assignment.items():
        if count:
            kept[topic_id] = partitions[:count]
        surplus += [(topic_id, partition) for partition in partitions[count:]]
        count = max(count - len(partitions), 0)
    return kept


def _with(assignment: Assignment, more: list[tuple[bytes, int]]) -> Assignment:
    added: dict[bytes, list[int]] = {}
    for topic_id, partition in more:
        added.setdefault(topic_id, []).append(partition)
    return {
        **assignment,
        **{t: tuple(sorted((*assignment.get(t, ()), *partitions))) for t, partitions in added.items()},
    }


def _unassigned(spec: Spec) -> Generator[None, None, list[tuple[bytes, int]]]:
    """The partitions that are in no target, in order."""
    taken: dict[bytes, set[int]] = {topic_id: set() for topic_id in spec.topics}
    done = 0
    for member_id in spec.members:
        for topic_id, partitions in spec.target(member_id).items():
            if topic_id in taken:
                taken[topic_id].update(partitions)
            done += 1
        if done > PAIRS_A_SLICE:
            done = 0
            yield
    free: list[tuple[bytes, int]] = []
    for topic_id, count in spec.topics.items():
        here = taken[topic_id]
        if len(here) < count:
            free += [(topic_id, partition) for partition in range(count) if partition not in here]
    return free
