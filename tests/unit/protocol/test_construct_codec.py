"""`codec=construct`: every request is read and every response written by construct, with the same effect."""

from __future__ import annotations

from collections import Counter

import pytest
from core_broker import Client, World, make_topic
from core_requests import commit_request, committed, fetch_request, produce_request
from txn_kit import Producer, visible

from protocol import primitives
from protocol.codegen import codec
from protocol.construct_codec import ConstructCodec, construct_codec
from protocol.errors import MalformedError
from protocol.messages.fetch import FetchableTopicResponse, FetchResponse, PartitionData
from protocol.messages.offsets import OffsetCommitRequest


@pytest.fixture
def counted(monkeypatch):
    """How many messages construct has read and written, by class."""
    counts: Counter[str] = Counter()
    decode, encode_parts = ConstructCodec.decode, ConstructCodec.encode_parts

    def counting_decode(self, buffer, position=0):
        counts[self.cls.__name__] += 1
        return decode(self, buffer, position)

    def counting_encode(self, message):
        counts[self.cls.__name__] += 1
        return encode_parts(self, message)

    monkeypatch.setattr(ConstructCodec, "decode", counting_decode)
    monkeypatch.setattr(ConstructCodec, "encode_parts", counting_encode)
    return counts


def test_every_frame_passes_through_construct(counted):
    world = World("os", codec="construct")
    client = Client(world)
    make_topic(client)
    for offset in range(3):
        client.call(commit_request("g", {0: offset}), 8)
        client.call(produce_request("t", 0, b"v"), 9)
        client.call(fetch_request("t", 0, offset), 12)
        assert committed(world, "g") == {0: offset}
    producer = Producer(client)
    for _ in range(2):
        assert producer.init() == 0
        producer.add({"t": [0]})
        assert producer.produce(b"in a transaction") == 0
        producer.add_offsets("g")
        producer.send_offsets({0: 7})
        assert producer.end() == 0
    assert visible(client)[-2:] == [b"in a transaction"] * 2
    assert committed(world, "g") == {0: 7}
    frames = sum(world.broker.metrics.counts)
    assert sum(counted.values()) == 2 * frames
    assert counted["OffsetCommitRequest"] == counted["OffsetCommitResponse"] == 3
    assert counted["TxnOffsetCommitRequest"] == counted["TxnOffsetCommitResponse"] == 2


def test_parked_fetch_is_answered_by_construct(counted):
    world = World("os", codec="construct")
    client, other = Client(world), Client(world)
    make_topic(client)
    client.send(fetch_request("t", 0, 0, max_wait_ms=1000), 12)
    world.run()
    assert client.replies() == []
    other.call(produce_request("t", 0, b"v"), 9)
    world.run()
    (answer,) = client.replies()
    assert answer.responses[0].partitions[0].high_watermark == 1
    assert counted["FetchResponse"] == 1


def test_generated_codec_leaves_construct_alone(counted):
    world = World("os")
    client = Client(world)
    make_topic(client)
    client.call(commit_request("g", {0: 1}), 8)
    assert not counted


class Slice:
    """Bytes that lie in a file."""

    def __len__(self) -> int:
        return 5

    def read(self) -> bytes:
        return b"bytes"


def test_slice_of_a_file_is_a_part_of_its_own():
    part = Slice()
    row = PartitionData(partition_index=1, records=part)
    response = FetchResponse(responses=[FetchableTopicResponse(topic="t", partitions=[row])])
    slow, fast = construct_codec(FetchResponse, 12), codec(FetchResponse, 12)
    assert slow.encode_parts(response) == fast.encode_parts(response)
    assert part in slow.encode_parts(response)
    assert slow.encode(response) == fast.encode(response)


def test_message_that_cannot_be_read_is_malformed():
    data = codec(OffsetCommitRequest, 8).encode(OffsetCommitRequest(group_id="g"))
    with pytest.raises(MalformedError, match="OffsetCommitRequest v8: at byte 7: expected 4 bytes, 2 are left"):
        construct_codec(OffsetCommitRequest, 8).decode(b"front" + data[:4], 5)


def test_struct_of_a_message_is_made_once():
    assert primitives.struct(OffsetCommitRequest, 8) is primitives.struct(OffsetCommitRequest, 8)
