"""Commits that say what must be committed before: all of them or none, and in a race exactly one wins."""

from __future__ import annotations

import random
import struct

import pytest
from core_broker import FLUSHES, Client, World, make_topic
from core_requests import commit_request, committed

from momus import optimistic
from protocol.codegen import codec
from protocol.errors import ErrorCode
from protocol.messages.offsets import OffsetCommitRequest

NONE = -1


def expecting(request, expected: dict[int, int]):
    for partition in request.topics[0].partitions:
        if partition.partition_index in expected:
            partition.unknown_tags = {10000: struct.pack(">q", expected[partition.partition_index])}
    return request


def outcome(response) -> dict[int, tuple[int, int | None]]:
    """Error and what is said to be committed, by partition."""
    found = {}
    for p in response.topics[0].partitions:
        tag = (p.unknown_tags or {}).get(10000)
        found[p.partition_index] = p.error_code, struct.unpack(">q", tag)[0] if tag else None
    return found


@pytest.fixture
def world():
    world = World("os", offsets_topic_num_partitions="1")
    make_topic(Client(world), "t", 5)
    return world


def log_end(world) -> int:
    return world.broker.groups.shards[0].log.end_offset


def test_commit_is_taken_when_all_is_as_expected(world):
    client = Client(world)
    assert outcome(client.call(expecting(commit_request("g", {0: 1, 1: 2}), {0: NONE}), 8)) == {
        0: (0, None),
        1: (0, None),
    }
    client.call(expecting(commit_request("g", {0: 5, 1: 6}), {0: 1, 1: 2}), 9)
    assert committed(world, "g") == {0: 5, 1: 6}


@pytest.mark.parametrize("version", [8, 9])
def test_one_conflict_refuses_the_whole_commit_and_writes_nothing(world, version):
    client = Client(world)
    client.call(commit_request("g", {0: 1, 1: 2}), version)
    end_offset = log_end(world)
    answer = client.call(expecting(commit_request("g", {0: 10, 1: 20, 2: 30}), {0: 1, 1: 7, 2: 0}), version)
    assert outcome(answer) == {
        0: (ErrorCode.OPERATION_NOT_ATTEMPTED, None),
        1: (ErrorCode.INVALID_REQUEST, 2),
        2: (ErrorCode.INVALID_REQUEST, NONE),
    }
    assert (committed(world, "g"), log_end(world)) == ({0: 1, 1: 2}, end_offset)


def test_tag_of_a_wrong_size_is_a_conflict(world):
    request = commit_request("g", {0: 1})
    request.topics[0].partitions[0].unknown_tags = {10000: b"\0"}
    assert outcome(Client(world).call(request, 8)) == {0: (ErrorCode.INVALID_REQUEST, NONE)}


def test_fencing_comes_before_expectations(world):
    request = expecting(commit_request("g", {0: 1}, member_id="m", generation_id_or_member_epoch=3), {0: 99})
    code = outcome(Client(world).call(request, 8))[0]
    assert code[0] not in (0, ErrorCode.INVALID_REQUEST)
    assert code[1] is None


def test_offset_of_a_topic_that_had_the_name_before_counts_as_none(world):
    from protocol.messages.topics import DeleteTopicsRequest, DeleteTopicState

    client = Client(world)
    client.call(commit_request("g", {0: 1}), 8)
    client.call(DeleteTopicsRequest(topics=[DeleteTopicState(name="t")], timeout_ms=1000), 6)
    make_topic(client, "t", 5)
    assert outcome(client.call(expecting(commit_request("g", {0: 1}), {0: NONE}), 8)) == {0: (0, None)}


@pytest.mark.parametrize("flush", FLUSHES)
@pytest.mark.parametrize("brokers", [1, 3])
def test_of_fifty_writers_on_one_key_exactly_one_wins_a_round(flush, brokers):
    world = World(flush, brokers=brokers)
    make_topic(Client(world), "t", 1)
    writers = [Client(world, n % brokers) for n in range(50)]
    rng = random.Random(5)
    current = NONE
    for round_number in range(20):
        rng.shuffle(writers)
        for n, writer in enumerate(writers):
            writer.send(expecting(commit_request("g", {0: round_number * 100 + n}), {0: current}), 8)
            if rng.random() < 0.2:
                world.turn()
        world.run()
        outcomes = {n: outcome(writer.replies()[0])[0] for n, writer in enumerate(writers)}
        winners = [n for n, (code, _) in outcomes.items() if code == 0]
        assert len(winners) == 1
        current = round_number * 100 + winners[0]
        assert {o for n, o in outcomes.items() if n != winners[0]} == {(ErrorCode.INVALID_REQUEST, current)}
        assert committed(world, "g") == {0: current}


class LoopedSocket:
    """A socket that leads into a broker of this process."""

    def __init__(self, world):
        self.client = Client(world)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.client.leave()

    def sendall(self, data):
        self.client.send_bytes(data)
        self.client.world.run()

    def recv(self, n):
        data = bytes(self.client.transport.received[:n])
        del self.client.transport.received[:n]
        return data


def test_helper_commits_and_says_what_is_there_otherwise(world, monkeypatch):
    monkeypatch.setattr(optimistic.socket, "create_connection", lambda *_: LoopedSocket(world))
    optimistic.commit_if("localhost:9092", "g", {("t", 0): (120, NONE), ("t", 1): (7, NONE)})
    optimistic.commit_if("localhost:9092", "g", {("t", 0): (121, 120)})
    with pytest.raises(optimistic.OffsetConflict) as conflict:
        optimistic.commit_if("localhost:9092", "g", {("t", 0): (130, 120), ("t", 1): (8, 7), ("t", 4): (1, 0)})
    assert conflict.value.current == {("t", 0): 121, ("t", 4): NONE}
    assert committed(world, "g") == {0: 121, 1: 7}
    with pytest.raises(optimistic.CommitError) as refused:
        optimistic.commit_if("localhost:9092", "g", {("nowhere", 0): (1, NONE)})
    assert refused.value.codes == {("nowhere", 0): ErrorCode.UNKNOWN_TOPIC_OR_PARTITION}


def test_helper_writes_what_the_codec_reads():
    data = optimistic._request("g", "m", 3, {("t", 0): (120, 100), ("ü", 300): (1, NONE)})
    request, end = codec(OffsetCommitRequest, 8).decode(data[4:], 16)
    assert end == len(data) - 4
    assert (request.group_id, request.member_id, request.generation_id_or_member_epoch) == ("g", "m", 3)
    assert [
        (t.name, p.partition_index, p.committed_offset, p.unknown_tags) for t in request.topics for p in t.partitions
    ] == [
        ("t", 0, 120, {10000: struct.pack(">q", 100)}),
        ("ü", 300, 1, {10000: struct.pack(">q", NONE)}),
    ]
