"""The fields of a message that differ from one to the next are found by its declaration, in every version."""

from __future__ import annotations

import pytest
from cases import each_case
from core_broker import frame

from protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from protocol.shape import OpenShape

HEADER_AT = 12  # in a frame: its client id
SHAPE = OpenShape(ProduceRequest, "records")
VERSIONS = range(ProduceRequest.MIN_VERSION, ProduceRequest.MAX_VERSION + 1)
SIZES = [1, 90, 125, 126, 127, 128, 129, 16_381, 16_382, 16_383, 16_384, 2_097_150, 2_097_152]


def request(records: bytes | None, name: str = "topic", transactional_id: str | None = "tx") -> ProduceRequest:
    """One partition of one topic."""
    parts = [PartitionProduceData(index=5, records=records)]
    data = TopicProduceData(name=name, topic_id=bytes(range(16)), partition_data=parts)
    return ProduceRequest(transactional_id=transactional_id, acks=-1, timeout_ms=9, topic_data=[data])


@pytest.mark.heavy
@each_case("version, size", [(version, size) for version in VERSIONS for size in SIZES])
def test_field_of_any_length_is_found_where_it_is(version: int, size: int) -> None:
    records = (bytes(range(251)) * (size // 251 + 1))[:size]
    for client_id in ("client", "", None, "c" * 300):
        for transactional_id in (None, "tx", "t" * 126):
            data = b"before" + frame(request(records, "n" * 126, transactional_id), version, 7, client_id)
            start, stop = 6 + HEADER_AT, len(data)
            cut = SHAPE.cut(data, start, stop, version, header="request")
            prefix_end, begin, end = SHAPE.finder(version)(data + b"after", start)
            assert data[start:prefix_end] == cut.prefix
            assert (data[begin:end], data[end:]) == (records, cut.tail)


@pytest.mark.parametrize("version", VERSIONS)
def test_string_too_long_for_a_length_of_one_byte_gives_another_prefix(version: int) -> None:
    data = frame(request(b"records", transactional_id="t" * 127), version)
    cut = SHAPE.cut(data, HEADER_AT, len(data), version, header="request")
    prefix_end, _, _ = SHAPE.finder(version)(data, HEADER_AT)
    assert (data[HEADER_AT:prefix_end] == cut.prefix) is (version < ProduceRequest.FLEXIBLE_SINCE)


@pytest.mark.parametrize("version", VERSIONS)
def test_field_that_is_empty_is_found_and_cut(version: int) -> None:
    data = frame(request(b""), version)
    cut = SHAPE.cut(data, HEADER_AT, len(data), version, header="request")
    prefix_end, begin, end = SHAPE.finder(version)(data, HEADER_AT)
    assert (data[HEADER_AT:prefix_end], data[begin:end], data[end:]) == (cut.prefix, b"", cut.tail)


@pytest.mark.parametrize("version", VERSIONS)
def test_message_without_a_header_is_cut_as_one_with_it(version: int) -> None:
    data = frame(request(b"records"), version, 7, None)
    after = 3 if version >= ProduceRequest.FLEXIBLE_SINCE else 2  # no client id, and no tags
    whole = SHAPE.cut(data, HEADER_AT, len(data), version, header="request")
    bare = SHAPE.cut(data, HEADER_AT + after, len(data), version, header="")
    assert (bare.prefix, bare.tail) == (whole.prefix[after:], whole.tail)


@pytest.mark.parametrize("version", VERSIONS)
def test_field_that_is_null_or_there_more_than_once_cannot_be_cut(version: int) -> None:
    twice, none = request(b"a"), request(b"a")
    twice.topic_data[0].partition_data *= 2
    none.topic_data = []
    for each in (request(None), twice, none):
        data = frame(each, version)
        with pytest.raises(ValueError, match=r"null|several"):
            SHAPE.cut(data, HEADER_AT, len(data), version, header="request")
