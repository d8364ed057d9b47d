"""Requests that a fault holds: before they take effect or before their reply, and what lets them go."""

from __future__ import annotations

import pytest
from core_broker import FLUSHES, Client
from core_requests import commit_request, fetch_request, produce_request
from faults_kit import Bench, code_of


@pytest.mark.parametrize("flush", FLUSHES)
def test_hold_stops_a_commit_between_append_and_reply(flush):
    bench = Bench(flush)
    fault = bench.set("hold", api="OffsetCommit")
    bench.commit(5)
    assert bench.answers() == []
    assert fault.held == 1
    assert bench.offset() == 5
    assert bench.faults.release(fault) == 1
    (answer,) = bench.answers()
    assert code_of(answer) == 0
    assert fault.held == 0


def test_hold_before_keeps_the_request_from_taking_effect_and_those_behind_it(bench):
    fault = bench.set("hold", api="OffsetCommit", when="before", trigger="once")
    bench.commit(5)
    bench.client.send(produce_request("t", 0, b"behind"), 9)
    assert bench.answers() == []
    assert bench.offset() is None
    assert bench.faults.release(fault) == 1
    assert [type(answer).__name__ for answer in bench.answers()] == ["OffsetCommitResponse", "ProduceResponse"]
    assert bench.offset() == 5


def test_release_of_one_lets_the_oldest_go(bench):
    fault = bench.set("hold", api="OffsetCommit")
    for offset in range(3):
        bench.commit(offset)
    bench.world.run()
    assert bench.faults.release(fault, 1) == 1
    assert len(bench.answers()) == 1


def test_release_of_one_lets_go_no_reply_that_is_still_to_come_and_the_oldest_of_all_connections(bench):
    fault = bench.set("hold", api="Fetch")
    waits, reads = Client(bench.world), Client(bench.world)
    waits.send(fetch_request("t", 0, 0, max_wait_ms=100_000, min_bytes=1), 12)
    bench.world.run()
    assert bench.faults.release(fault, 1) == 0
    reads.send(fetch_request("t", 1, 0, max_wait_ms=0), 12)
    bench.world.run()
    bench.admin.call(produce_request("t", 0, b"x"), 9)
    bench.world.run()
    assert (fault.held, waits.replies(), reads.replies()) == (2, [], [])
    for held, replies in ((1, (0, 1)), (0, (1, 0))):
        assert bench.faults.release(fault, 1) == 1
        bench.world.run()
        assert (fault.held, (len(waits.replies()), len(reads.replies()))) == (held, replies)


def test_release_of_two_lets_go_what_is_held_and_nothing_behind_it(bench):
    fault = bench.set("hold", api="OffsetCommit")
    for offset in range(3):
        bench.commit(offset)
    bench.world.run()
    assert bench.faults.release(fault, 2) == 1
    assert len(bench.answers()) == 1
    assert fault.held == 1


@pytest.mark.parametrize("when", ["before", "after"])
def test_release_of_all_lets_go_what_is_still_to_come_as_well(bench, when):
    fault = bench.set("hold", api="OffsetCommit", when=when, trigger={"times": 3})
    clients = [Client(bench.world) for _ in range(3)]
    for client in clients:
        client.send(commit_request("g", {0: 1}), 8)
    bench.world.run()
    assert bench.faults.release(fault) == 3
    bench.world.run()
    assert [len(client.replies()) for client in clients] == [1, 1, 1]
    fetch = bench.set("hold", api="Fetch")
    bench.client.send(fetch_request("t", 0, 0, max_wait_ms=500, min_bytes=1), 12)
    bench.world.run()
    assert bench.faults.release(fetch) == 0
    bench.world.advance(500)
    assert len(bench.answers()) == 1


def test_release_of_one_request_lets_the_oldest_of_all_connections_take_effect(bench):
    fault = bench.set("hold", api="OffsetCommit", when="before")
    first, second = Client(bench.world), Client(bench.world)
    for client in (first, first, second):
        client.send(commit_request("g", {0: 1}), 8)
        bench.world.run()
    seen = []
    for _ in range(3):
        assert bench.faults.release(fault, 1) == 1
        bench.world.run()
        seen.append((len(first.replies()), len(second.replies())))
    assert seen == [(1, 0), (0, 1), (1, 0)]


def test_release_with_nothing_held_answers_0(bench):
    assert bench.faults.release(bench.set("hold")) == 0


def test_remove_lets_go_what_a_fault_keeps_and_brings_shortcuts_back(bench):
    clients = bench.world.broker.clients
    shortcuts, dispatch = clients.shortcuts, clients.dispatch
    fault = bench.set("hold", api="OffsetCommit")
    assert not clients.shortcuts
    bench.commit(5)
    bench.world.run()
    bench.faults.remove(fault.name)
    assert len(bench.answers()) == 1
    assert clients.shortcuts is shortcuts
    assert clients.dispatch == dispatch
    assert bench.client.connection.gate is None or not bench.client.connection.gate


def test_client_that_leaves_is_held_no_more(bench):
    before = bench.set("hold", api="OffsetCommit", when="before", group="g")
    after = bench.set("hold", api="OffsetCommit", group="h")
    other = Client(bench.world)
    bench.commit(5)
    other.send(commit_request("h", {0: 1}), 8)
    bench.world.run()
    assert (before.held, after.held) == (1, 1)
    bench.client.leave()
    other.leave()
    bench.world.run()
    assert (before.held, after.held) == (0, 0)
    assert bench.faults.release(before) == bench.faults.release(after) == 0


def test_too_many_requests_behind_a_held_one_close_the_connection(bench):
    bench.set("hold", when="before", trigger="once")
    bench.commit(0)
    for _ in range(70):
        bench.client.send(produce_request("t", 0, b"x" * (1 << 20)), 9)
    bench.world.run()
    assert bench.client.closed
