"""Committed offsets read like one register a group, whoever asks which broker while what fails or moves.

Clients commit one value on three partitions at once and fetch them; turns, syncs, failing disks, moves of the
coordinator, and virtual brokers that stop and start come at random in between. Each history is checked by the search of
Wing and Gong (as Lowe improved it): is there an order of the operations, each somewhere between its request and its
reply, in which every fetch tells the commit before it?
"""

from __future__ import annotations

import errno
import random
from typing import NamedTuple

import pytest
from budget import short_and_slow
from core_broker import Client, World, make_topic
from core_requests import commit_request

from broker.cluster.virtual_nodes import VirtualNodes
from protocol.messages.offsets import OffsetFetchRequest, OffsetFetchRequestGroup, OffsetFetchRequestTopics
from protocol.messages.reassign import (
    AlterPartitionReassignmentsRequest,
    ReassignablePartition,
    ReassignableTopic,
)

GROUPS = ("a", "b")
PARTITIONS = 3
NEVER = 1 << 60
NOTHING = -1


class Operation(NamedTuple):
    """A commit (`write`) or a fetch of one value; it took effect between `begin` and `end`, if it did."""

    write: bool
    value: int
    begin: int
    end: int


def is_linearizable(history: list[Operation], initial: int = NOTHING) -> bool:
    """Whether some order of the operations explains them all. One with end NEVER may not have happened at all."""
    told = {operation.value for operation in history if not operation.write}
    operations = [o for o in history if o.end != NEVER or o.value in told]  # what nobody has seen need not have been
    operations.sort(key=lambda operation: operation.begin)
    everything = frozenset(n for n, operation in enumerate(operations) if operation.end != NEVER)
    seen: set[tuple[frozenset[int], int]] = set()
    stack: list[tuple[frozenset[int], int]] = [(frozenset(), initial)]
    while stack:
        done, value = stack.pop()
        if everything <= done:
            return True
        if (done, value) in seen:
            continue
        seen.add((done, value))
        open_operations = [(n, o) for n, o in enumerate(operations) if n not in done]
        first_end = min(o.end for _, o in open_operations)
        for n, operation in open_operations:
            if operation.begin > first_end:
                break
            if operation.write:
                stack.append((done | {n}, operation.value))
            elif operation.value == value:
                stack.append((done | {n}, value))
    return False


def write(value: int, begin: int, end: int) -> Operation:
    return Operation(True, value, begin, end)


def read(value: int, begin: int, end: int) -> Operation:
    return Operation(False, value, begin, end)


@pytest.mark.parametrize(
    ("history", "right"),
    [
        ([write(1, 0, 1), read(1, 2, 3)], True),
        ([write(1, 0, 1), read(NOTHING, 2, 3)], False),  # a stale read
        ([write(1, 0, 9), read(NOTHING, 1, 2), read(1, 3, 4)], True),
        ([write(1, 0, 9), read(1, 1, 2), read(NOTHING, 3, 4)], False),  # time goes backwards
        ([write(1, 0, 1), write(2, 2, 3), read(1, 4, 5)], False),
        ([write(1, 0, 5), write(2, 0, 5), read(1, 6, 7)], True),
        ([write(1, 0, 5), write(2, 0, 5), read(1, 6, 7), read(2, 8, 9)], False),
        ([write(1, 0, NEVER), read(NOTHING, 1, 2), read(1, 3, 4)], True),
        ([read(7, 0, 1)], False),  # what nobody has written
    ],
)
def test_checker_tells_right_from_wrong(history, right):
    assert is_linearizable(history) is right


class User:
    """A client with one request under way at most; which broker it asks is random."""

    def __init__(self, world: World, number: int) -> None:
        self.client = Client(world, number % world.brokers)
        self.asked: tuple[str, int | None, int] | None = None

    def ask(self, group: str, value: int | None, now: int) -> None:
        self.asked = group, value, now
        if value is not None:
            self.client.send(commit_request(group, dict.fromkeys(range(PARTITIONS), value)), 8)
        else:
            topic = OffsetFetchRequestTopics(name="t", partition_indexes=list(range(PARTITIONS)))
            groups = [OffsetFetchRequestGroup(group_id=group, topics=[topic])]
            self.client.send(OffsetFetchRequest(groups=groups), 8)

    def answered(self, now: int) -> tuple[str, Operation] | None:
        """The operation that has ended, if it has.

        One that was refused did not happen. But where coordinators move it may have: it is also refused when what could
        not be written is the move that it was handled on top of.
        """
        replies = self.client.replies()
        if not replies:
            return None
        assert self.asked is not None
        (group, value, begin), self.asked = self.asked, None
        if value is not None:
            codes = {p.error_code for topic in replies[0].topics for p in topic.partitions}
            assert len(codes) == 1, "a commit was done in part"
            if codes == {0}:
                return group, write(value, begin, now)
            return (group, write(value, begin, NEVER)) if self.client.world.brokers > 1 else None
        answer = replies[0].groups[0]
        if answer.error_code:
            return None
        found = {p.committed_offset for topic in answer.topics for p in topic.partitions}
        assert len(found) == 1, "a fetch has seen a commit in part"
        return group, read(found.pop(), begin, now)


def move_coordinator(world: World, admin: Client, rng: random.Random) -> None:
    partition = ReassignablePartition(partition_index=0, replicas=[rng.choice(world.broker.nodes.up).node_id])
    topic = ReassignableTopic(name="__consumer_offsets", partitions=[partition])
    admin.send(AlterPartitionReassignmentsRequest(topics=[topic]), 0)


def stop_or_start(nodes: VirtualNodes, rng: random.Random) -> None:
    """Some node goes, unless it is the last, or comes back."""
    node = rng.choice(nodes.all)
    if not nodes.is_up(node):
        nodes.start(node, lambda durable: None)
    elif len(nodes.all) - sum(not nodes.is_up(each) for each in nodes.all) > 1:
        nodes.stop(node, lambda durable: None)


def run_history(seed: int, flush: str, brokers: int, steps: int = 160) -> dict[str, list[Operation]]:
    rng = random.Random(seed)
    world = World(flush, brokers=brokers, offsets_topic_num_partitions="1", shortcuts=rng.random() < 0.7)
    nodes = VirtualNodes(world.broker.nodes, world.broker.metadata_shard, world.broker.turn, world.broker.partitions)
    admin = Client(world)
    make_topic(admin, "t", PARTITIONS)
    for group in GROUPS:
        admin.call(commit_request(group, dict.fromkeys(range(PARTITIONS), NOTHING)), 8)
    users = [User(world, n) for n in range(6)]
    histories: dict[str, list[Operation]] = {group: [] for group in GROUPS}
    world.auto_sync = False
    value = 0
    for now in range(steps):
        user, kind = rng.choice(users), rng.random()
        if kind < 0.5 and user.asked is None:
            value += 1
            user.ask(rng.choice(GROUPS), value if rng.random() < 0.5 else None, now)
        elif kind < 0.75:
            world.turn()
        elif kind < 0.9 and world.syncs:
            world.sync(fail=rng.random() < 0.15)
        elif kind < 0.93:
            world.files.inject(1, error=errno.ENOSPC, short_bytes=rng.randrange(200))
        elif kind < 0.96 and brokers > 1:
            move_coordinator(world, admin, rng)
        elif kind < 0.98 and brokers > 1:
            stop_or_start(nodes, rng)
        elif world.broker.turn.jobs:
            world.broker.turn.begin()
            world.broker.turn.jobs.step()
        for each in users:
            ended = each.answered(now)
            if ended is not None:
                histories[ended[0]].append(ended[1])
    world.files.heal()
    world.auto_sync = True
    world.run()
    for each in users:
        if each.asked is not None:
            ended = each.answered(steps)
            if ended is not None:
                histories[ended[0]].append(ended[1])
    return histories


@pytest.mark.parametrize("brokers", [1, 3])
@pytest.mark.parametrize("flush", ["os", "fsync"])
@pytest.mark.parametrize("seed", short_and_slow(range(12), 4))
def test_history_is_linearizable(seed, flush, brokers):
    histories = run_history(seed, flush, brokers)
    for group, history in histories.items():
        assert is_linearizable(history), f"group {group}: {history}"


def test_histories_hold_something_to_check():
    histories = [h for seed in range(12) for h in run_history(seed, "fsync", 3).values()]
    assert sum(len(h) for h in histories) > 200
    assert any(o.write for h in histories for o in h)
    assert any(not o.write and o.value != NOTHING for h in histories for o in h)
