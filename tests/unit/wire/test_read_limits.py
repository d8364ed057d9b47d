"""As Kafka since 4.4: an array has at most a million elements, a section at most 10,000 tagged fields."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from core_broker import Client, World, frame, make_topic

from protocol.codec_support import uvarint
from protocol.codegen import codec
from protocol.construct_codec import construct_codec
from protocol.construct_codec import decode_request_header as construct_header
from protocol.errors import ErrorCode, MalformedError
from protocol.header import decode_request_header, decode_response_header, encode_request_header
from protocol.messages.cluster import ApiVersionsRequest, ApiVersionsResponse
from protocol.messages.offsets import OffsetFetchRequest, OffsetFetchRequestTopic

MOST_ELEMENTS, MOST_TAGS = 1_000_000, 10_000
CODECS = pytest.mark.parametrize("codec_of", [codec, construct_codec])
CodecOf = Callable[[Any, int], Any]


def tagged(count: int, first: int = 100) -> dict[int, bytes]:
    """So many tagged fields that nothing declares, empty ones."""
    return {first + at: b"" for at in range(count)}


def fetch_of(count: int) -> OffsetFetchRequest:
    return OffsetFetchRequest(group_id="g", topics=[OffsetFetchRequestTopic(name="t", partition_indexes=[0] * count)])


def fetch_bytes(version: int, count: int, size: int) -> bytes:
    """An OffsetFetch that claims so many partitions, of whose bytes there are `size`."""
    if version < 6:
        head = b"\0\1g" + b"\0\0\0\1" + b"\0\1t" + count.to_bytes(4, "big")
    else:
        head = b"\2g" + b"\2" + b"\2t" + uvarint(count + 1)
    return head + bytes(size)


@pytest.fixture
def world() -> World:
    world = World("os")
    make_topic(Client(world), "t", 1)
    return world


def closes(world: World, data: bytes, caplog: pytest.LogCaptureFixture) -> bool:
    """Whether these bytes end a connection as a malformed request, by one line."""
    caplog.clear()
    client = Client(world)
    client.send_bytes(data)
    world.run()
    assert len(caplog.records) == client.closed
    assert client.closed == ("malformed" in caplog.text)
    return client.closed


@pytest.mark.slow  # a million partitions are read, answered and read again
def test_fetch_of_a_million_partitions_is_answered_and_of_one_more_closes_the_connection(world, caplog):
    client = Client(world)
    reply = client.call(fetch_of(MOST_ELEMENTS), 5)
    assert len(reply.topics[0].partitions) == MOST_ELEMENTS
    assert {each.error_code for each in reply.topics[0].partitions} == {ErrorCode.NONE}
    assert closes(world, frame(fetch_of(MOST_ELEMENTS + 1), 5), caplog)


@CODECS
@pytest.mark.parametrize("version", [5, 7])
def test_array_is_read_up_to_a_million_elements(codec_of: CodecOf, version: int) -> None:
    """With a quarter of their bytes, as reading them all takes construct seconds: it is the end that is missed."""
    read = codec_of(OffsetFetchRequest, version).decode
    size = MOST_ELEMENTS + 8
    limit = f"at most {MOST_ELEMENTS}"
    with pytest.raises(MalformedError) as at_limit:
        read(fetch_bytes(version, MOST_ELEMENTS, size))
    assert limit not in str(at_limit.value)
    with pytest.raises(MalformedError, match=limit):
        read(fetch_bytes(version, MOST_ELEMENTS + 1, 4 * size))


@pytest.mark.parametrize("version", [5, 7])
def test_array_of_a_million_elements_is_read_whole(version: int) -> None:
    fast = codec(OffsetFetchRequest, version)
    read, _ = fast.decode(fast.encode(fetch_of(MOST_ELEMENTS)))
    assert len(read.topics[0].partition_indexes) == MOST_ELEMENTS


@CODECS
def test_nullable_array_above_a_million_is_refused_and_null_is_not(codec_of: CodecOf) -> None:
    read = codec_of(OffsetFetchRequest, 5).decode
    assert read(b"\0\1g\xff\xff\xff\xff")[0].topics is None
    with pytest.raises(MalformedError, match=f"at most {MOST_ELEMENTS}"):
        read(b"\0\1g" + (MOST_ELEMENTS + 1).to_bytes(4, "big") + bytes(6 * MOST_ELEMENTS + 6))


@CODECS
@pytest.mark.parametrize("count", [MOST_TAGS, MOST_TAGS + 1])
@pytest.mark.parametrize("cls", [ApiVersionsRequest, ApiVersionsResponse])  # without and with tagged fields of its own
def test_tagged_fields_of_a_body_are_read_up_to_their_limit(codec_of: CodecOf, cls: Any, count: int) -> None:
    message = cls()
    message.unknown_tags = tagged(count)
    data = codec(cls, 3).encode(message)
    if count <= MOST_TAGS:
        assert codec_of(cls, 3).decode(data)[0].unknown_tags == message.unknown_tags
        return
    with pytest.raises(MalformedError, match=f"{MOST_TAGS}"):
        codec_of(cls, 3).decode(data)


@pytest.mark.parametrize("decode", [decode_request_header, construct_header])
def test_tagged_fields_of_a_header_are_read_up_to_their_limit(decode: Callable[[bytes], Any]) -> None:
    header, _ = decode(encode_request_header(18, 3, 1, "c", tagged(MOST_TAGS)))
    assert len(header.unknown_tags) == MOST_TAGS
    with pytest.raises(MalformedError, match=f"{MOST_TAGS}"):
        decode(encode_request_header(18, 3, 1, "c", tagged(MOST_TAGS + 1)))


def test_tagged_fields_of_a_response_header_are_read_up_to_their_limit() -> None:
    head = (1).to_bytes(4, "big")
    fields = b"".join(uvarint(tag) + b"\0" for tag in range(MOST_TAGS + 1))
    assert decode_response_header(head + uvarint(MOST_TAGS) + fields, 3, 12)[0] == 1
    with pytest.raises(MalformedError, match=f"{MOST_TAGS}"):
        decode_response_header(head + uvarint(MOST_TAGS + 1) + fields, 3, 12)


@pytest.mark.parametrize("codec_name", ["generated", "construct"])
@pytest.mark.parametrize("place", ["body", "header"])
def test_too_many_tagged_fields_close_the_connection(place, codec_name, caplog):
    world = World("os", codec=codec_name)
    for count in (MOST_TAGS, MOST_TAGS + 1):
        request = ApiVersionsRequest(client_software_name="a", client_software_version="1")
        request.unknown_tags = tagged(count) if place == "body" else None
        body = codec(ApiVersionsRequest, 3).encode(request)
        data = encode_request_header(18, 3, 1, "c", tagged(count) if place == "header" else None) + body
        assert closes(world, len(data).to_bytes(4, "big") + data, caplog) == (count > MOST_TAGS)
