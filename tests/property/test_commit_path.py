"""The shortcuts of OffsetCommit and OffsetFetch are shortcuts: the same bytes to a broker that has them and to one that
has not give the same replies, the same log and the same state."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
from budget import budget
from core_broker import Client, World, frame, make_topic, watch_repeats
from core_pair import GROUPS, TOPICS, Pair, spell
from core_requests import commit_request
from hypothesis import given, note
from hypothesis import strategies as st

from protocol.api import ApiKey
from protocol.messages.classic_group import (
    HeartbeatRequest,
)
from protocol.messages.offsets import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
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

INT32, INT64 = st.integers(-(2**31), 2**31 - 1), st.integers(-(2**63), 2**63 - 1)
TAGS = st.none() | st.none() | st.none() | st.dictionaries(st.integers(0, 300), st.binary(max_size=4), max_size=2)


def tagged(item: Any, tags: dict[int, bytes] | None) -> Any:
    """The same message part with tagged fields that nobody knows."""
    item.unknown_tags = tags
    return item


@st.composite
def commits(draw: Any) -> OffsetCommitRequest:
    """Anything a client might commit; most often what the shortcut is made for."""
    plain = draw(st.sampled_from([True, True, True, False]))
    topics = []
    for name in draw(st.lists(st.sampled_from([*TOPICS, "none"]), min_size=1, max_size=1 if plain else 3)):
        count = TOPICS.get(name, 2)
        if draw(st.booleans()):
            indexes = list(range(count))
        else:
            beyond = st.integers(-1, count) if not plain else st.integers(0, count - 1)
            indexes = draw(st.lists(beyond, min_size=0 if not plain else 1, max_size=6, unique=draw(st.booleans())))
        rows = [
            tagged(
                OffsetCommitRequestPartition(
                    partition_index=index,
                    committed_offset=draw(INT64 | st.integers(-1, 5)),
                    committed_leader_epoch=draw(st.just(-1) | INT32),
                    committed_metadata=draw(st.sampled_from(["", ""] if plain else ["", None, "m", "x" * 4097])),
                ),
                None if plain else draw(TAGS),
            )
            for index in indexes
        ]
        topics.append(tagged(OffsetCommitRequestTopic(name=name, partitions=rows), None if plain else draw(TAGS)))
    request = OffsetCommitRequest(
        group_id=draw(st.sampled_from(GROUPS)),
        generation_id_or_member_epoch=draw(st.sampled_from([-1, -1, 0, 1, 2, 3])),
        member_id=draw(st.sampled_from(["", "", "$0", "$1", "nobody"])),
        group_instance_id=draw(st.sampled_from([None, None, "instance", "other"])),
        topics=topics,
    )
    return tagged(request, None if plain else draw(TAGS))


@st.composite
def questions(draw: Any) -> OffsetFetchRequest:
    """Anything a client might ask."""
    groups = []
    for group_id in draw(st.lists(st.sampled_from(GROUPS), min_size=1, max_size=draw(st.sampled_from([1, 1, 2])))):
        topics = None
        if draw(st.booleans()):
            names = draw(st.lists(st.sampled_from([*TOPICS, "none"]), max_size=3))
            topics = [
                OffsetFetchRequestTopics(
                    name=name, partition_indexes=draw(st.lists(st.integers(-1, TOPICS.get(name, 2)), max_size=5))
                )
                for name in names
            ]
        group = OffsetFetchRequestGroup(
            group_id=group_id,
            member_id=draw(st.sampled_from([None, None, "$0"])),
            member_epoch=draw(st.sampled_from([-1, -1, 1])),
            topics=topics,
        )
        groups.append(tagged(group, draw(TAGS)))
    return tagged(OffsetFetchRequest(groups=groups, require_stable=draw(st.booleans())), draw(TAGS))


STEPS = st.sampled_from(
    ["frame"] * 12
    + ["turn"] * 6
    + ["mutate", "advance", "delete offsets", "grow", "delete topic", "make topic", "fail"]
)


@pytest.mark.heavy
@pytest.mark.parametrize("flush", ["os", "fsync"])
def test_shortcuts_and_general_handlers_answer_and_write_the_same(flush):
    @budget(15)
    @given(st.data())
    def check(data: Any) -> None:
        pair = Pair(flush)
        pool: list[bytes] = []
        for _ in range(data.draw(st.integers(1, 5))):
            request = data.draw(st.one_of(commits(), commits(), questions()))
            version = data.draw(st.sampled_from([8, 9, 10]))
            client_id = data.draw(st.sampled_from(["c", "c", "client-7", None, ""]))
            header_tags = data.draw(st.sampled_from([None] * 5 + [{5: b"x"}]))
            pool.append(spell(pair, request, version, client_id, header_tags))
        for step in data.draw(st.lists(STEPS, min_size=4, max_size=30)):
            which = data.draw(st.sampled_from([0, 0, 0, 1]))
            note(f"{step} {which}")
            if step == "frame":
                pair.send(which, data.draw(st.sampled_from(pool)))
            elif step == "mutate":
                raw = bytearray(data.draw(st.sampled_from(pool)))
                at = data.draw(st.integers(4, len(raw) - 1))
                raw[at] = data.draw(st.integers(0, 255))
                if raw[4] == 0 and raw[5] in (8, 9):  # still one of ours
                    pair.send(which, bytes(raw))
                pair.check_replies()
            elif step == "advance":
                pair.each(lambda world: world.advance(10_000))
            elif step == "delete offsets":
                topics = [
                    OffsetDeleteRequestTopic(name="five", partitions=[OffsetDeleteRequestPartition(partition_index=0)])
                ]
                pair.send(which, frame(OffsetDeleteRequest(group_id="g", topics=topics), 0))
            elif step == "grow":
                topics = [CreatePartitionsTopic(name="five", count=9, assignments=None)]
                pair.send(which, frame(CreatePartitionsRequest(topics=topics, timeout_ms=1), 3))
            elif step == "delete topic":
                wanted = DeleteTopicState(name="five", topic_id=bytes(16))
                pair.send(which, frame(DeleteTopicsRequest(topics=[wanted], timeout_ms=1), 6))
            elif step == "make topic":
                wanted = CreatableTopic(name="five", num_partitions=3, replication_factor=1)
                pair.send(which, frame(CreateTopicsRequest(topics=[wanted], timeout_ms=1), 7))
            elif step == "fail":
                pair.check_replies()
                pair.each(lambda world: world.files.inject(1))
                pair.check_replies()
                pair.send(which, data.draw(st.sampled_from(pool)))
                pair.check_replies()
                pair.each(lambda world: world.files.heal())
            else:
                pair.check_replies()
        pair.send(0, frame(HeartbeatRequest(group_id="g", generation_id=0, member_id="x"), 3))
        pair.check_replies()
        pair.check_state()

    check()


def test_shortcuts_are_taken_by_what_they_are_made_for():
    """Or the comparison above compares nothing."""
    world = World("os")
    client = Client(world)
    make_topic(client, "five", 5)
    taken = Counter[int]()
    watch_repeats(world, lambda api_key, is_served: taken.update({api_key: is_served}))
    rows = [
        OffsetCommitRequestPartition(partition_index=p, committed_offset=p, committed_metadata="") for p in range(5)
    ]
    commit = OffsetCommitRequest(
        group_id="g", member_id="", topics=[OffsetCommitRequestTopic(name="five", partitions=rows)]
    )
    question = OffsetFetchRequest(groups=[OffsetFetchRequestGroup(group_id="g", topics=None)])
    for request in (commit, commit, question):  # the first one loads the shard, which drops what is kept
        client.call(request, 8)
    for _ in range(3):
        client.call(commit, 8)
        client.call(question, 8)
        client.call(question, 8)
    assert taken[ApiKey.OFFSET_COMMIT] == 3
    assert taken[ApiKey.OFFSET_FETCH] == 3  # each commit moves an offset, and the reply names all topics


@pytest.mark.parametrize("high_byte", [1, 0x7F, 0x80])
def test_version_that_looks_like_a_known_one_in_its_low_byte_is_not_taken_for_it(high_byte):
    for shortcuts in (True, False):
        world = World("os", shortcuts=shortcuts)
        make_topic(Client(world), "five", 5)
        for request in (
            commit_request("g", {0: 1}, "five"),
            OffsetFetchRequest(groups=[OffsetFetchRequestGroup(group_id="g", topics=None)]),
        ):
            client = Client(world)
            client.call(request, 8)
            client.call(request, 8)
            raw = bytearray(frame(request, 8))
            raw[6] = high_byte
            client.send_bytes(bytes(raw))
            world.run()
            assert client.closed, f"{type(request).__name__} version {high_byte << 8 | 8} was answered"
