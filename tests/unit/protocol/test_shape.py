"""The fields of a message that differ from one to the next are found by its declaration, in every version."""

from __future__ import annotations

import pytest
from core_broker import frame

from protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from protocol.shape import OpenShape

HEADER_AT = 12  # in a frame: its client id
SHAPE = OpenShape(ProduceRequest, "records")
VERSIONS = range(ProduceRequest.MIN_VERSION, ProduceRequest.MAX_VERSION + 1)


def request(records: bytes | None, name: str = "topic", transactional_id: str | None = "tx") -> ProduceRequest:
    """One partition of one topic."""
    parts = [PartitionProduceData(index=5, records=records)]
    data = TopicProduceData(name=name, topic_id=bytes(range(16)), partition_data=parts)
    return ProduceRequest(transactional_id=transactional_id, acks=-1, timeout_ms=9, topic_data=[data])


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
