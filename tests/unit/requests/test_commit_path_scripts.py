"""The shortcuts of offset requests where something has changed since they were learnt: each script meets a broker
with them and one without."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from core_broker import frame, watch_repeats
from core_pair import Pair, spell
from core_requests import commit_request

from protocol.messages.classic_group import HeartbeatRequest
from protocol.messages.offsets import (
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
)
from protocol.messages.topics import (
    CreatableTopic,
    CreatePartitionsRequest,
    CreatePartitionsTopic,
    CreateTopicsRequest,
    DeleteTopicsRequest,
    DeleteTopicState,
)

ALL = OffsetFetchRequest(groups=[OffsetFetchRequestGroup(group_id="g", topics=None)])
FIVE = OffsetFetchRequest(
    groups=[
        OffsetFetchRequestGroup(
            group_id="g",
            topics=[
                OffsetFetchRequestTopics(name="five", partition_indexes=[0, 1, 4]),
                OffsetFetchRequestTopics(name="many", partition_indexes=[0]),
            ],
        )
    ]
)


def commit(offsets, group_id="g", topic="five", version=8, **fields) -> Callable[[Pair], None]:
    """Send a commit; metadata as given in fields."""
    return lambda pair: pair.send(
        0, spell(pair, commit_request(group_id, offsets, topic, **fields), version, "c", None)
    )


def every(start: int, partitions=range(5)) -> dict[int, int]:
    return {p: start + p for p in partitions}


def ask(request, version=8) -> Callable[[Pair], None]:
    return lambda pair: pair.send(0, spell(pair, request, version, "c", None))


def send(request, version) -> Callable[[Pair], None]:
    return lambda pair: pair.send(0, frame(request, version))


def delete_offsets(*partitions: int) -> Callable[[Pair], None]:
    rows = [OffsetDeleteRequestPartition(partition_index=p) for p in partitions]
    return send(OffsetDeleteRequest(group_id="g", topics=[OffsetDeleteRequestTopic(name="five", partitions=rows)]), 0)


def delete_topic(name: str) -> Callable[[Pair], None]:
    return send(DeleteTopicsRequest(topics=[DeleteTopicState(name=name, topic_id=bytes(16))], timeout_ms=1), 6)


def make_five(pair: Pair, partitions: int) -> None:
    wanted = CreatableTopic(name="five", num_partitions=partitions, replication_factor=1)
    pair.send(0, frame(CreateTopicsRequest(topics=[wanted], timeout_ms=1), 7))
    pair.check_replies()
    pair.ids["five"] = pair.worlds[0].broker.metadata.topics["five"].topic_id


def grow_five(pair: Pair) -> None:
    wanted = CreatePartitionsTopic(name="five", count=9, assignments=None)
    pair.send(0, frame(CreatePartitionsRequest(topics=[wanted], timeout_ms=1), 3))


def fail_next_write(pair: Pair) -> None:
    pair.each(lambda world: world.files.inject(1))


def advance(pair: Pair) -> None:
    pair.each(lambda world: world.advance(5_000))


def turn(pair: Pair) -> None:
    pair.check_replies()


MEMBER = {"member_id": "$0", "generation_id_or_member_epoch": 1}
STATIC = {"member_id": "$1", "generation_id_or_member_epoch": 1, "group_instance_id": "instance"}
SCRIPTS: dict[str, list[Callable[[Pair], None]]] = {
    "all the same": [
        commit(every(1)),
        commit(every(2)),
        ask(ALL),
        ask(ALL),
        commit(every(3)),
        ask(ALL),
        turn,
        ask(ALL),
    ],
    "in one turn": [commit(every(1)), turn, *[commit(every(n)) for n in range(2, 9)], ask(FIVE), ask(FIVE)],
    "one partition": [commit({3: 1}), turn, commit({3: 2}), ask(FIVE), commit({4: 3}), ask(FIVE), turn, ask(FIVE)],
    "fewer than there are": [commit(every(1)), turn, commit(every(5, range(3))), turn, commit(every(9)), ask(ALL)],
    "more than there are": [commit(every(1, range(3))), turn, commit(every(5)), turn, commit({1: 9}), ask(ALL)],
    "not from zero on": [commit(every(1, range(1, 3))), turn, commit(every(7, range(1, 3))), ask(ALL)],
    "backwards": [commit(every(1, [4, 3, 2, 1, 0])), turn, commit(every(7, [4, 3, 2, 1, 0])), ask(ALL)],
    "other partitions, same length": [commit(every(1, [0, 1])), turn, commit(every(7, [3, 4])), turn, ask(ALL)],
    "out of range after": [
        commit(every(1, [0, 1])),
        turn,
        commit(every(7, [4, 5])),
        commit(every(7, [-1, 0])),
        ask(ALL),
    ],
    "metadata stays until the next commit": [
        commit(every(1), metadata="m"),
        turn,
        commit({2: 7}),
        ask(ALL),
        turn,
        commit(every(9)),
        ask(ALL),
        commit({1: 4}, metadata=None),
    ],
    "offsets deleted in between": [
        commit({0: 1}),
        turn,
        commit({0: 2}),
        ask(ALL),
        turn,
        ask(ALL),
        delete_offsets(0),
        turn,
        ask(ALL),
        commit({0: 3}),
        turn,
        ask(ALL),
        commit({0: 4}),
        ask(ALL),
    ],
    "some offsets deleted": [
        commit(every(1)),
        turn,
        delete_offsets(1, 4),
        turn,
        ask(FIVE),
        commit(every(4)),
        ask(FIVE),
    ],
    "write fails": [
        commit(every(1)),
        ask(ALL),
        turn,
        ask(ALL),
        fail_next_write,
        commit(every(2)),
        ask(ALL),
        turn,
        ask(ALL),
        commit(every(3)),
        ask(ALL),
        turn,
        commit(every(4)),
    ],
    "first write fails": [fail_next_write, commit({0: 1}), ask(ALL), turn, ask(ALL), commit({0: 2}), turn, ask(ALL)],
    "topic deleted": [
        commit(every(1)),
        turn,
        commit(every(2)),
        turn,
        delete_topic("five"),
        turn,
        commit(every(3)),
        ask(ALL),
    ],
    "topic made again": [
        commit(every(1)),
        turn,
        delete_topic("five"),
        turn,
        lambda pair: make_five(pair, 5),
        commit(every(2)),
        ask(ALL),
        turn,
        commit(every(3)),
        ask(ALL),
    ],
    "topic made again with fewer": [
        commit(every(1)),
        turn,
        delete_topic("five"),
        lambda pair: make_five(pair, 2),
        commit(every(2)),
        turn,
        commit(every(3, range(2))),
        ask(ALL),
    ],
    "topic grown": [
        commit(every(1)),
        turn,
        commit(every(1, range(9))),
        turn,
        grow_five,
        turn,
        commit(every(1, range(9))),
        turn,
        commit(every(3)),
        ask(ALL),
    ],
    "member": [
        commit(every(1), "dynamic", **MEMBER),
        turn,
        advance,
        commit(every(2), "dynamic", **MEMBER),
        turn,
        advance,
        commit(every(3), "dynamic", member_id="$0", generation_id_or_member_epoch=2),
        commit(every(3), "dynamic", member_id="x", generation_id_or_member_epoch=1),
        commit(every(3), "dynamic"),
        commit(every(4), "dynamic", **MEMBER),
        turn,
    ],
    "member whose session ran out": [
        commit(every(1), "dynamic", **MEMBER),
        turn,
        *[advance] * 4,
        commit(every(2), "dynamic", **MEMBER),
        turn,
        *[advance] * 7,
        commit(every(3), "dynamic", **MEMBER),
        commit(every(4), "dynamic"),
        turn,
        commit(every(5), "dynamic"),
    ],
    "static member": [
        commit(every(1), "static", **STATIC),
        turn,
        commit(every(2), "static", **STATIC),
        commit(every(3), "static", **{**STATIC, "member_id": "other"}),
        commit(every(3), "static", **{**STATIC, "group_instance_id": "other"}),
        commit(every(3), "static", **{**STATIC, "group_instance_id": None}),
    ],
    "generation without a group": [
        commit({0: 1}, generation_id_or_member_epoch=1),
        commit({0: 1}, generation_id_or_member_epoch=1, version=9),
        commit({0: 1}),
        turn,
        commit({0: 2}, generation_id_or_member_epoch=1),
        commit({0: 2}, generation_id_or_member_epoch=1, version=9),
    ],
    "question before there is a topic in the group": [
        commit({0: 1}, topic="one"),
        ask(FIVE),
        turn,
        ask(FIVE),
        ask(ALL),
        turn,
        ask(ALL),
        commit({0: 2}),
        turn,
        ask(FIVE),
        ask(ALL),
        commit({0: 2}, topic="many"),
        turn,
        ask(FIVE),
        ask(ALL),
    ],
    "same bytes, other version": [
        commit(every(1), version=8),
        commit(every(1), version=9),
        commit(every(2), version=8),
        ask(ALL, 8),
        ask(ALL, 9),
        turn,
        ask(ALL, 8),
        ask(ALL, 9),
        ask(ALL, 10),
    ],
    "by id": [commit(every(1), version=10), turn, commit(every(2), version=10), ask(ALL, 10), ask(ALL, 9)],
    "by id of a topic that is gone": [
        commit(every(1), version=10),
        turn,
        delete_topic("five"),
        turn,
        commit(every(2), version=10),
        ask(ALL, 10),
        ask(ALL, 9),
    ],
    "offsets at the ends of their range": [
        commit({0: 2**63 - 1, 1: -1, 2: -(2**63) + 1}),
        turn,
        commit({0: -1, 1: 0, 2: 1}),
        turn,
        commit({0: 2**63 - 1, 1: -1, 2: -(2**63) + 1}),
        ask(ALL),
    ],
    "the lowest number of all": [
        commit({0: -(2**63)}),
        turn,
        commit({0: -(2**63)}),
        ask(ALL),
        delete_offsets(0),
        ask(ALL),
    ],
    "many groups, one connection": [
        step
        for n in range(3)
        for step in [commit(every(n), f"g{n % 2}"), ask(ALL), commit(every(n), "longer-name"), turn]
    ],
}


@pytest.mark.parametrize("flush", ["os", "fsync"])
@pytest.mark.parametrize("name", SCRIPTS)
def test_script_gives_the_same_with_and_without_shortcuts(name, flush):
    pair = Pair(flush)
    for step in SCRIPTS[name]:
        step(pair)
    pair.send(0, frame(HeartbeatRequest(group_id="g", generation_id=0, member_id="x"), 3))
    pair.check_replies()
    pair.check_state()


@pytest.mark.parametrize("partitions", [1, 2, 5])
@pytest.mark.parametrize("value", [0, 1, 2, 0x7F, 0x80, 0xFF])
def test_frame_with_any_byte_changed_gives_the_same_with_and_without_shortcuts(partitions, value):
    pair = Pair("os")
    plain = spell(pair, commit_request("g", every(1, range(partitions)), "five"), 8, "c", None)
    question = spell(pair, FIVE, 8, "c", None)
    for raw in (plain, question):
        for at in range(4, len(raw)):
            pair.send(0, plain)
            pair.send(0, question)
            pair.check_replies()
            changed = raw[:at] + bytes([value]) + raw[at + 1 :]
            if changed[4:6] == raw[4:6]:
                pair.send(0, changed)
                pair.check_replies()
    pair.check_state()


def test_every_step_of_a_script_meets_a_broker_that_serves_repeats_from_bytes():
    pair = Pair("os")
    taken = []
    watch_repeats(pair.worlds[0], lambda api_key, is_served: taken.append(is_served))
    for _ in range(4):
        commit(every(1))(pair)
    assert taken[-2:] == [True, True]  # the first one may have to load the shard, the second one is kept
