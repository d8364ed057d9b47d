"""A field of any length in a repeat is found by the prefix before it, in every version of Produce."""

from __future__ import annotations

import pytest
from cases import each_case
from core_broker import Client, World, count_repeats, frame, make_topic
from core_requests import produce_request, raw_produce

from broker.requests.kept import MOST_SIZES
from broker.requests.repeated import long_size
from protocol.api import ApiKey
from protocol.messages.produce import ProduceRequest
from protocol.shape import OpenShape

HEADER_AT = 12  # in a frame: its client id
SHAPE = OpenShape(ProduceRequest, "records")
VERSIONS = range(ProduceRequest.MIN_VERSION, ProduceRequest.MAX_VERSION + 1)
SIZES = [1, 90, 125, 126, 127, 128, 129, 16_381, 16_382, 16_383, 16_384, 2_097_150, 2_097_152]


@pytest.mark.heavy
@each_case("version, size", [(version, size) for version in VERSIONS for size in SIZES])
def test_field_is_found_where_its_prefix_ends(version: int, size: int) -> None:
    records = (bytes(range(251)) * (size // 251 + 1))[:size]
    for client_id in ("client", "", None, "c" * 300):
        for transactional_id in (None, "tx", "t" * 127):
            data = b"before" + frame(raw_produce(records, "n" * 200, transactional_id), version, 7, client_id)
            start, stop = 6 + HEADER_AT, len(data)
            cut = SHAPE.cut(data, start, stop, version, header="request")
            at = start + len(cut.prefix)
            one_more, begin = long_size(data + b"after", at, version >= ProduceRequest.FLEXIBLE_SINCE)
            end = begin + one_more - 1
            assert (data[begin:end], data[end:]) == (records, cut.tail)


@pytest.mark.parametrize(
    ("data", "is_compact"),
    [(b"\xff\xff\xff\xff.", False), (b"\0\0\0", False), (b"\0....", True), (b"\xff" * 9, True), (b"\xff", True)],
    ids=["null", "cut", "compact null", "varint without an end", "varint that is cut"],
)
def test_field_that_is_null_or_not_whole_has_no_size(data: bytes, is_compact: bool) -> None:
    assert long_size(data, 0, is_compact)[0] == 0


@pytest.mark.parametrize("version", [8, 9])
def test_topics_with_names_of_many_lengths_take_turns_and_are_repeated(version: int) -> None:
    """Names of more than 126 bytes too, whose length a flexible version gives in two."""
    world = World("memory")
    client = Client(world)
    names = ["n" * (100 + 3 * each) for each in range(MOST_SIZES)]
    for name in names:
        make_topic(client, name, 1)
    for name in names:
        for _ in range(2):  # a repeat each, or ever fewer would be kept
            client.call(produce_request(name, 0, b"first"), version)
    served = count_repeats(world, ApiKey.PRODUCE)
    for value in (b"short", b"v" * 90, b"v" * 20_000, b""):
        for name in names:
            answer = client.call(produce_request(name, 0, value), version)
            assert answer.responses[0].partition_responses[0].error_code == 0
    assert served == [True] * 4 * MOST_SIZES
