"""How large a request may be whose repeats are served from its bytes."""

from __future__ import annotations

import pytest
from core_broker import Client, World, count_repeats, make_topic
from core_requests import commit_request

from broker.requests.kept import KEPT_BYTES, MOST_SIZES, PATIENCE, Form, Kept, Misses, Table
from broker.requests.repeated import MOST_BYTES
from protocol.api import ApiKey

NAME = "c" * 30_000
A_PARTITION = 18 + 7  # bytes in a request of v8 and in its reply


@pytest.mark.parametrize("more", [-1000, 1000])
def test_request_is_kept_up_to_a_size_of_it_and_its_reply(more: int) -> None:
    world = World("memory")
    client = Client(world)
    partitions = (MOST_BYTES + more - len(NAME)) // A_PARTITION
    make_topic(client, "t", partitions)
    served = count_repeats(world, ApiKey.OFFSET_COMMIT)
    for offset in range(4):
        client.send(commit_request("g", dict.fromkeys(range(partitions), offset)), 8, client_id=NAME)
        world.run()
        (answer,) = client.replies()
        assert {each.error_code for each in answer.topics[0].partitions} == {0}
    assert any(served) is (more < 0)


def kept(statics: tuple[bytes, ...] = ()) -> Kept:
    made = Kept(None, None)  # type: ignore[arg-type]  # a table looks at neither
    made.statics = statics
    return made


def test_table_that_holds_too_many_bytes_is_emptied_first() -> None:
    another = Form(0, Misses(), 0, 1)
    of_connection = {b"of another API": another}
    table = Table(8, of_connection)
    for key in (b"0", b"1", b"2"):
        table.keep(key, b"prefix", kept(), KEPT_BYTES * 2 // 5, 100)
        assert table.held_bytes <= KEPT_BYTES
    assert (list(table.forms), table.count, table.held_bytes) == ([b"2"], 1, KEPT_BYTES * 2 // 5)
    assert of_connection == {b"of another API": another, **table.forms}


def test_request_that_is_kept_again_is_counted_once() -> None:
    table = Table(8, {})
    for statics in ((b"a",), (b"a",), (b"b",), (b"b",), (b"a",)):
        table.keep(b"1", b"prefix", kept(statics), 100, 50)
    assert (table.count, table.held_bytes) == (2, 200)


def test_table_whose_prefixes_have_too_many_sizes_is_emptied_first() -> None:
    table = Table(0, {})
    for size in [*range(1, MOST_SIZES + 1), 1, MOST_SIZES]:
        table.keep(b"0", b"p" * size, kept(), 100, 0)
    assert (table.count, table.forms[b"0"].prefix_sizes) == (MOST_SIZES, [*range(1, MOST_SIZES + 1)])
    table.keep(b"0", b"p" * 99, kept(), 100, 0)
    assert (table.count, table.held_bytes, table.forms[b"0"].prefix_sizes) == (1, 100, [99])


def test_where_no_repeats_come_ever_fewer_requests_are_kept() -> None:
    table = Table(8, {})
    worth = [number for number in range(1, 70) if table.is_worth_keeping()]
    assert worth == [*range(1, PATIENCE + 1), 16, 32, 64]
