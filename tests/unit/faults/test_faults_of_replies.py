"""Faults of replies: later, slower, changed, twice, cut off or never."""

from __future__ import annotations

import pytest
from core_requests import fetch_request, produce_request

from protocol.messages.cluster import ApiVersionsRequest


@pytest.mark.parametrize("when", ["before", "after"])
def test_delay_lasts_so_long_by_the_clusters_clock(bench, when):
    fault = bench.set("delay_on", api="OffsetCommit", ms=400, when=when)
    bench.commit(5)
    bench.world.advance(399)
    assert bench.answers() == []
    assert fault.held == 1
    assert (bench.offset() == 5) == (when == "after")
    bench.world.advance(1)
    assert len(bench.answers()) == 1
    assert bench.offset() == 5
    assert fault.held == 0


def test_throttle_sends_a_reply_when_its_bytes_have_had_their_time(bench):
    bench.client.call(produce_request("t", 0, b"x" * 10_000), 9)
    bench.set("throttle", api="Fetch", bytes_per_second=10_000)
    bench.client.send(fetch_request("t", 0, 0), 12)
    bench.world.advance(999)
    assert bench.answers() == []
    bench.world.advance(200)
    assert len(bench.answers()) == 1


@pytest.mark.parametrize(("when", "written"), [("before", False), ("after", True), ("middle", True)])
def test_disconnect_closes_before_after_or_within_the_reply(bench, when, written):
    bench.set("disconnect_on", api="OffsetCommit", when=when)
    before = bytes(bench.client.transport.received)
    bench.commit(5)
    bench.world.run()
    assert bench.client.closed
    got = bytes(bench.client.transport.received)[len(before) :]
    size = int.from_bytes(got[:4], "big")
    assert (0 < len(got) < 4 + size) if when == "middle" else not got
    assert (bench.offset() == 5) == written


def test_disconnect_sends_the_replies_before_it(bench):
    bench.set("disconnect_on", api="OffsetCommit", trigger={"on_call": 2})
    bench.commit(1)
    bench.commit(2)
    assert len(bench.answers()) == 1
    assert bench.client.closed


def test_blackhole_swallows_a_client_until_it_is_removed(bench):
    fault = bench.set("blackhole_client", client_id="client")
    bench.commit(5)
    bench.client.send(ApiVersionsRequest(), 3)
    assert bench.answers() == []
    assert not bench.client.closed
    bench.faults.remove(fault.name)
    bench.world.run()
    assert bench.client.closed
    assert bench.offset() is None
    assert fault.held == 0


def test_corrupt_reply_changes_one_byte_behind_the_head(bench):
    bench.commit(1)
    bench.world.run()
    start = len(bench.client.transport.received)
    bench.set("corrupt_reply", api="OffsetCommit", at=2)
    bench.commit(1)
    bench.world.run()
    healthy, damaged = bench.client.transport.received[:start], bench.client.transport.received[start:]
    differing = [i for i, (a, b) in enumerate(zip(healthy, damaged, strict=True)) if a != b]
    assert differing == [7, 8 + 2]  # the correlation id is another one


def test_deliver_twice_appends_twice_and_answers_once(bench):
    bench.set("deliver_twice", api="Produce", trigger="once")
    answer = bench.client.call(produce_request("t", 0, b"a"), 9)
    assert answer.responses[0].partition_responses[0].base_offset == 1
    assert bench.client.replies() == []


def test_deliver_twice_of_an_idempotent_batch_appends_once(bench):
    bench.set("deliver_twice", api="Produce")
    batch = {"producer_id": 7, "producer_epoch": 0, "base_sequence": 0}
    answer = bench.client.call(produce_request("t", 0, b"a", **batch), 9)
    part = answer.responses[0].partition_responses[0]
    assert (part.error_code, part.base_offset) == (0, 0)
    fetched = bench.client.call(fetch_request("t", 0, 0), 12)
    assert fetched.responses[0].partitions[0].high_watermark == 1
