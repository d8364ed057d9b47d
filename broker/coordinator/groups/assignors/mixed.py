"""The uniform assignor for members with different subscriptions: as even as the subscriptions allow.

    1. each member keeps what it has and still subscribes to
    2. unassigned partitions go to the subscriber with the fewest, topic by topic: first topics with the most partitions
       per subscriber, then those with fewer subscribers, then by id
    3. partitions move from the subscriber with the most to the one with the fewest while they differ by more than one,
       topic by topic, until nothing moves any more, at most 16 times

Source: KIP-848; Kafka's UniformHeterogeneousAssignmentBuilder.
"""

from __future__ import annotations

from collections.abc import Generator
from heapq import heapify, heappop, heappush, heapreplace
from itertools import chain, repeat
from typing import Final

from broker.coordinator.groups.assignors.spec import Assignment, Changes, Spec, Steps

ROUNDS: Final = 16
WORK_A_SLICE: Final = 5_000


class _Table:
    """The assignment while it is computed; members by number."""

    def __init__(self, spec: Spec) -> None:
        assert spec.wants is not None
        self.owners: dict[bytes, list[int]] = {}  # topic -> owner of each partition, -1: none
        self.loads = [0] * len(spec.members)
        self.subscribers: dict[bytes, list[int]] = {}
        self.touched: set[int] = set()
        for number, member_id in enumerate(spec.members):
            for topic_id in spec.wants[member_id]:
                self.subscribers.setdefault(topic_id, []).append(number)
        for topic_id in self.subscribers:
            self.owners[topic_id] = [-1] * spec.topics[topic_id]

    def keep_targets(self, spec: Spec) -> None:
        """Each member keeps what it still subscribes to."""
        assert spec.wants is not None
        for number, member_id in enumerate(spec.members):
            subscribed = spec.wants[member_id]
            for topic_id, partitions in spec.target(member_id).items():
                if topic_id not in subscribed:
                    self.touched.add(number)
                    continue
                owners = self.owners[topic_id]
                for partition in partitions:
                    owners[partition] = number
                self.loads[number] += len(partitions)

    def give(self, topic_id: bytes, partition: int, number: int) -> None:
        """Move a partition to a member."""
        owners = self.owners[topic_id]
        before = owners[partition]
        if before >= 0:
            self.loads[before] -= 1
            self.touched.add(before)
        owners[partition] = number
        self.loads[number] += 1
        self.touched.add(number)


def assign_mixed(spec: Spec) -> Steps:
    """Assign as evenly as the subscriptions allow, moving few partitions."""
    table = _Table(spec)
    yield
    table.keep_targets(spec)
    yield
    subscribers, topics = table.subscribers, spec.topics
    ordered = sorted(subscribers, key=lambda t: (-topics[t] / len(subscribers[t]), len(subscribers[t]), t))
    yield from _deal(table, ordered)
    shared = [topic_id for topic_id in ordered if len(subscribers[topic_id]) > 1]
    unmoved, work = 0, 0
    for topic_id in chain.from_iterable(repeat(shared, ROUNDS)):
        unmoved = 0 if _balance(table, topic_id) else unmoved + 1
        if unmoved >= len(shared):
            break
        work += len(subscribers[topic_id]) + len(table.owners[topic_id])
        if work > WORK_A_SLICE:
            work = 0
            yield
    return (yield from _changes(table, spec))


def _deal(table: _Table, ordered: list[bytes]) -> Generator[None, None, None]:
    """Give unassigned partitions to subscribers."""
    work = 0
    for topic_id in ordered:
        owners = table.owners[topic_id]
        free = [partition for partition, owner in enumerate(owners) if owner < 0]
        if free:
            heap = [(table.loads[number], number) for number in table.subscribers[topic_id]]
            heapify(heap)
            for partition in free:
                load, number = heap[0]
                table.give(topic_id, partition, number)
                heapreplace(heap, (load + 1, number))
        work += len(owners) + len(table.subscribers[topic_id])
        if work > WORK_A_SLICE:
            work = 0
            yield


def _balance(table: _Table, topic_id: bytes) -> bool:
    """Balance the subscribers of one topic by moving its partitions; whether any moved."""
    loads, subscribers = table.loads, table.subscribers[topic_id]
    by_owner: dict[int, list[int]] = {}
    for partition, owner in enumerate(table.owners[topic_id]):
        by_owner.setdefault(owner, []).append(partition)
    if max(loads[number] for number in by_owner) - min(loads[number] for number in subscribers) <= 1:
        return False
    least = [(loads[number], number) for number in subscribers]
    most = [(-loads[number], number) for number in by_owner]
    heapify(least)
    heapify(most)
    moved = False
    while most:
        load, giver = heappop(most)
        if -load != loads[giver]:
            heappush(most, (-loads[giver], giver))
            continue
        while least[0][0] != loads[least[0][1]]:
            heapreplace(least, (loads[least[0][1]], least[0][1]))
        taker = least[0][1]
        if loads[giver] - loads[taker] <= 1:
            break
        partition = by_owner[giver].pop()
        table.give(topic_id, partition, taker)
        moved = True
        heapreplace(least, (loads[taker], taker))
        heappush(least, (loads[giver], giver))
        if by_owner[giver]:
            heappush(most, (-loads[giver], giver))
    return moved


def _changes(table: _Table, spec: Spec) -> Steps:
    """The targets that changed."""
    new: dict[int, dict[bytes, list[int]]] = {number: {} for number in table.touched}
    work = 0
    for topic_id, owners in table.owners.items():
        for partition, owner in enumerate(owners):
            mine = new.get(owner)
            if mine is not None:
                mine.setdefault(topic_id, []).append(partition)
        work += len(owners)
        if work > WORK_A_SLICE:
            work = 0
            yield
    changes: Changes = {}
    for number, topics in new.items():
        assignment: Assignment = {topic_id: tuple(partitions) for topic_id, partitions in topics.items()}
        old = spec.target(spec.members[number])
        if assignment.keys() != old.keys() or any(set(assignment[t]) != set(old[t]) for t in assignment):
            changes[spec.members[number]] = assignment
    return changes
