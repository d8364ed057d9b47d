"""The fields of a message that differ from one to the next are found by its declaration, in every version."""

from __future__ import annotations

import pytest
from core_broker import frame
from core_requests import raw_produce

from protocol.messages.produce import ProduceRequest
from protocol.shape import OpenShape

HEADER_AT = 12  # in a frame: its client id
SHAPE = OpenShape(ProduceRequest, "records")
VERSIONS = range(ProduceRequest.MIN_VERSION, ProduceRequest.MAX_VERSION + 1)


@pytest.mark.parametrize("version", VERSIONS)
def test_message_without_a_header_is_cut_as_one_with_it(version: int) -> None:
    data = frame(raw_produce(b"records"), version, 7, None)
    after = 3 if version >= ProduceRequest.FLEXIBLE_SINCE else 2  # no client id, and no tags
    whole = SHAPE.cut(data, HEADER_AT, len(data), version, header="request")
    bare = SHAPE.cut(data, HEADER_AT + after, len(data), version, header="")
    assert (bare.prefix, bare.tail) == (whole.prefix[after:], whole.tail)


@pytest.mark.parametrize("version", VERSIONS)
def test_field_that_is_null_or_there_more_than_once_cannot_be_cut(version: int) -> None:
    twice, none = raw_produce(b"a"), raw_produce(b"a")
    twice.topic_data[0].partition_data *= 2
    none.topic_data = []
    for each in (raw_produce(None), twice, none):
        data = frame(each, version)
        with pytest.raises(ValueError, match=r"null|several"):
            SHAPE.cut(data, HEADER_AT, len(data), version, header="request")
