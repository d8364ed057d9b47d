"""Bytes become requests: however they are cut, whatever they claim."""

from __future__ import annotations

import pytest
from core_broker import Client, World, frame, make_topic, split_frames
from core_requests import commit_request, committed, produce_request

from protocol.errors import ErrorCode
from protocol.messages.cluster import ApiVersionsRequest, MetadataRequest, MetadataRequestTopic
from protocol.messages.offsets import OffsetFetchRequest, OffsetFetchRequestGroup

ALL = OffsetFetchRequest(groups=[OffsetFetchRequestGroup(group_id="g", topics=None)])


@pytest.fixture
def world():
    world = World("os")
    make_topic(Client(world), "t", 3)
    return world


def requests() -> bytes:
    """Five different frames, shortcuts and general handlers among them."""
    return b"".join(
        [
            frame(ApiVersionsRequest(client_software_name="a", client_software_version="1"), 3, 1),
            frame(commit_request("g", {0: 1, 1: 2}), 8, 2),
            frame(MetadataRequest(topics=None), 12, 3),
            frame(commit_request("g", {0: 3, 1: 4}), 8, 4),
            frame(ALL, 8, 5),
            frame(produce_request("t", 0, b"v" * 50), 9, 6),
        ]
    )


def answers(client: Client) -> list[int]:
    """Correlation ids of the replies, in order."""
    return [int.from_bytes(body[:4], "big") for body in split_frames(bytes(client.transport.received))]


def test_frames_cut_at_every_byte_are_answered_in_order(world):
    data = requests()
    for at in range(len(data) + 1):
        client = Client(world)
        client.send_bytes(data[:at])
        world.run()
        client.send_bytes(data[at:])
        world.run()
        assert answers(client) == [1, 2, 3, 4, 5, 6], f"cut at {at}"
    assert committed(world, "g") == {0: 3, 1: 4}


@pytest.mark.parametrize("piece", [1, 2, 3, 5, 11, 12, 13, 64])
def test_frames_in_pieces_of_one_length_are_answered_in_order(world, piece):
    client = Client(world)
    data = requests()
    for at in range(0, len(data), piece):
        client.send_bytes(data[at : at + piece])
        world.run()
    assert answers(client) == [1, 2, 3, 4, 5, 6]


def test_hundreds_of_frames_in_one_read_are_answered_in_order(world):
    client = Client(world)
    client.send_bytes(b"".join(frame(commit_request("g", {0: n}), 8, n) for n in range(500)))
    world.run()
    assert answers(client) == list(range(500))
    assert committed(world, "g")[0] == 499


@pytest.mark.parametrize("size", [-(2**31), -1, 0, 1, 7, 104857601, 2**31 - 1])
@pytest.mark.parametrize("behind", [b"", b"\0" * 3, b"\0" * 20])
def test_size_that_cannot_be_closes_the_connection_with_one_line(world, size, behind, caplog):
    client = Client(world)
    caplog.clear()
    client.send_bytes(size.to_bytes(4, "big", signed=True) + behind)
    world.run()
    assert client.closed
    assert len(caplog.records) == 1
    assert str(size) in caplog.text
    assert Client(world).call(MetadataRequest(topics=None), 12).topics


def test_good_frames_before_a_bad_one_have_their_effect_but_the_connection_goes(world):
    client = Client(world)
    client.send_bytes(frame(commit_request("g", {0: 7}), 8) + (-1).to_bytes(4, "big", signed=True))
    world.run()
    assert client.closed
    assert committed(world, "g") == {0: 7}


@pytest.mark.parametrize("whole", [True, False])
def test_frame_above_socket_request_max_bytes_is_refused_even_if_it_came_whole(whole):
    world = World("os", socket_request_max_bytes="1000")
    make_topic(Client(world))
    largest = produce_request("t", 0, b"v" * (1000 - len(frame(produce_request("t", 0, b"v" * 800), 9)) + 4 + 800))
    data = frame(largest, 9)
    assert len(data) == 1004
    client = Client(world)
    assert client.call(largest, 9).responses[0].partition_responses[0].error_code == 0
    data = frame(produce_request("t", 0, b"v" * 2000), 9)
    client.send_bytes(data if whole else data[:500])
    world.run()
    assert client.closed
    assert world.broker.partitions.get(world.broker.metadata.topics["t"], 0).log.end_offset == 1


def test_unfinished_large_frame_takes_memory_only_as_it_comes_and_is_served_when_whole(world):
    client = Client(world)
    data = frame(produce_request("t", 0, *[b"v" * 10_000] * 60), 9)
    for at in range(0, len(data), 65_536):
        client.send_bytes(data[at : at + 65_536])
        world.run()
        came = min(at + 65_536, len(data))
        held = client.connection.parts_size
        assert held == (came if came < len(data) else 0)
        assert world.broker.clients.backlog.bytes == held
    assert len(answers(client)) == 1
    # and behind it another one, its first bytes in the same read as the last of the large one
    small = frame(commit_request("g", {0: 1}), 8, 9)
    client.send_bytes(data[:400_000])
    client.send_bytes(data[400_000:] + small[:10])
    client.send_bytes(small[10:])
    world.run()
    assert answers(client)[1:] == [1, 9]


def test_size_field_alone_allocates_nothing(world):
    client = Client(world)
    client.send_bytes((100 << 20).to_bytes(4, "big") + b"\0\3\0\14" + bytes(8))
    world.run()
    assert not client.closed
    assert client.connection.parts_size == 16


@pytest.mark.parametrize("key", [-1, 4, 7, 99, 32767])
def test_unknown_api_closes_the_connection_with_one_line(world, key, caplog):
    client = Client(world)
    client.send_bytes(b"\0\0\0\x0a" + key.to_bytes(2, "big", signed=True) + b"\0\0\0\0\0\1\xff\xff")
    world.run()
    assert client.closed
    assert len([record for record in caplog.records if record.name == "momus.connection"]) == 1


def test_unknown_version_closes_the_connection_but_for_api_versions_is_answered_in_version_0(world):
    client = Client(world)
    client.send_bytes(b"\0\0\0\x0a" + b"\0\3" + b"\0\x63" + b"\0\0\0\1\xff\xff")
    world.run()
    assert client.closed
    client = Client(world)
    client.asked.append((18, 0))
    client.send_bytes(b"\0\0\0\x0a" + b"\0\x12" + b"\0\x63" + b"\0\0\0\1\xff\xff")
    world.run()
    (answer,) = client.replies()
    assert answer.error_code == ErrorCode.UNSUPPORTED_VERSION
    assert [key.api_key for key in answer.api_keys] == [18]
    assert client.call(MetadataRequest(topics=None), 12).topics, "and the connection goes on"


def test_body_that_cannot_be_read_closes_the_connection_with_one_line(world, caplog):
    good = frame(MetadataRequest(topics=None), 12)
    for cut in range(12, len(good) - 1):
        client = Client(world)
        caplog.clear()
        client.send_bytes((cut - 4).to_bytes(4, "big") + good[4:cut])
        world.run()
        assert client.closed or answers(client)
        assert len(caplog.records) == client.closed
        assert "Traceback" not in caplog.text


def test_log_says_which_field_of_a_refused_request_cannot_be_read(world, caplog):
    client = Client(world)
    whole = frame(commit_request("g", {0: 1, 1: 2}), 8)
    cut = whole[: whole.index(b"\x02t") + 3 + 18 + 4 + 3]  # inside the second partition's offset
    client.send_bytes((len(cut) - 4).to_bytes(4, "big") + cut[4:])
    world.run()
    assert client.closed
    assert caplog.messages == [
        "closing connection /127.0.0.1 (client 'client'): malformed OffsetCommitRequest v8:"
        f" topics[0].partitions[1].committed_offset at byte {len(cut) - 4 - 3}: expected 8 bytes, 3 are left"
    ]


def test_no_bytes_are_taken_from_a_connection_that_was_refused(world):
    client = Client(world)
    client.send_bytes(b"\xff\xff\xff\xff" + frame(commit_request("g", {0: 9}), 8))
    client.connection.data_received(frame(commit_request("g", {0: 9}), 8))  # already on its way
    world.run()
    assert client.transport.received == b""
    assert committed(world, "g") == {}


def test_connections_above_max_connections_are_turned_away_with_one_line_each(caplog):
    world = World("os", max_connections="2")
    first, second, third = Client(world), Client(world), Client(world)
    world.run()
    assert [client.closed for client in (first, second, third)] == [False, False, True]
    assert len([r for r in caplog.records if "max.connections" in r.getMessage()]) == 1
    first.leave()
    world.run()
    fourth = Client(world)
    world.run()
    assert not fourth.closed
    assert fourth.call(MetadataRequest(topics=None), 12).topics


def test_metadata_request_for_a_million_names_is_refused_before_it_is_read(world, caplog):
    client = Client(world)
    names = [MetadataRequestTopic(name=f"{n:022}") for n in range(20_000)]
    client.call(MetadataRequest(topics=names, allow_auto_topic_creation=False), 12)
    client.send(MetadataRequest(topics=names * 3, allow_auto_topic_creation=False), 12)
    world.run()
    assert client.closed
    assert "Metadata request of 2400" in caplog.text
    assert Client(world).call(MetadataRequest(topics=None), 12).topics
