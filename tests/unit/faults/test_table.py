"""Faults set on a whole broker: what the client sees, what has taken effect, what else goes on."""

from __future__ import annotations

from typing import Any

import pytest
from cases import each_case
from core_broker import FLUSHES, Client, World, make_topic
from core_requests import commit_request, committed, fetch_request, produce_request

from broker.faults.errors import FaultError
from broker.journal.ring import Ring
from protocol.api import ApiKey
from protocol.errors import ErrorCode
from protocol.messages.cluster import ApiVersionsRequest
from protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic


class Bench:
    """A broker with a topic, and a client."""

    def __init__(self, flush: str = "os") -> None:
        self.world = World(flush)
        self.admin = Client(self.world)
        self.topic_id = make_topic(self.admin, "t", 3)
        self.client = Client(self.world)
        self.faults = self.world.broker.faults

    def set(self, fault: str, **words: Any) -> Any:
        return self.faults.add({"fault": fault, **words})

    def commit(self, offset: int, group: str = "g", **fields: Any) -> Any:
        return self.client.send(commit_request(group, {0: offset}, **fields), 8)

    def answers(self) -> list[Any]:
        self.world.run()
        return self.client.replies()

    def offset(self, group: str = "g") -> int | None:
        return committed(self.world, group).get(0)


@pytest.fixture
def bench() -> Bench:
    return Bench()


def code_of(answer: Any) -> int:
    return int(answer.topics[0].partitions[0].error_code)


def test_inject_error_refuses_the_request_and_nothing_is_written(bench):
    fault = bench.set("inject_error", api="OffsetCommit", error="NOT_COORDINATOR")
    bench.commit(5)
    (answer,) = bench.answers()
    assert code_of(answer) == ErrorCode.NOT_COORDINATOR
    assert bench.offset() is None
    assert (fault.calls, fault.hits) == (1, 1)


def test_inject_error_for_acks_0_writes_nothing_and_closes_the_connection_as_kafka_does(bench):
    fault = bench.set("inject_error", api="Produce", error="NOT_LEADER_OR_FOLLOWER")
    bench.client.send(produce_request("t", 0, b"lost", acks=0), 9)
    bench.world.run()
    assert bench.client.closed
    assert fault.hits == 1
    answer = bench.admin.call(fetch_request("t", 0, 0), 12)
    assert answer.responses[0].partitions[0].high_watermark == 0


ACKS_0 = {  # fault -> its fields, how often it acts, whether the connection is closed, how often the record is written
    "corrupt_reply": ({}, 0, False, 1),
    "throttle": ({"bytes_per_second": 1}, 0, False, 1),
    "hold": ({}, 1, False, 1),
    "hold before": ({"when": "before"}, 1, False, 0),
    "delay_on": ({"ms": 1000}, 1, False, 1),
    "disconnect_on": ({}, 1, True, 1),
    "disconnect_on before": ({"when": "before"}, 1, True, 0),
    "deliver_twice": ({}, 1, False, 2),
    "blackhole_client": ({}, 1, False, 0),
}


@each_case("kind, words, hits, is_closed, written", [(kind, *each) for kind, each in ACKS_0.items()], ACKS_0)
def test_fault_counts_what_it_did_to_a_request_without_a_reply(kind, words, hits, is_closed, written):
    bench = Bench()
    bench.world.broker.keep_journal(1 << 20)
    fault = bench.set(kind.split()[0], api="Produce", **words)
    bench.client.send(produce_request("t", 0, b"x", acks=0), 9)
    bench.client.asked.clear()
    bench.world.run()
    assert (fault.calls, fault.hits, bench.client.closed) == (1, hits, is_closed)
    answer = bench.admin.call(fetch_request("t", 0, 0), 12)
    assert answer.responses[0].partitions[0].high_watermark == written
    journal = bench.world.broker.clients.journal
    assert isinstance(journal, Ring)
    assert len(journal._notes) == hits


@pytest.mark.parametrize("kind", ["hold", "corrupt_reply", "throttle", "disconnect_on"])
def test_fault_of_replies_acts_when_there_is_one_and_its_trigger_counts_requests(bench, kind):
    words = {"bytes_per_second": 1} if kind == "throttle" else {}
    fault = bench.set(kind, api="Fetch", trigger="once", **words)
    other = Client(bench.world)
    for client in (bench.client, other):
        client.send(fetch_request("t", 0, 0, max_wait_ms=500, min_bytes=1), 12)
        bench.world.run()
    assert (fault.calls, fault.hits) == (2, 0)
    bench.world.advance(500)
    assert (fault.calls, fault.hits, len(other.replies())) == (2, 1, 1)


@pytest.mark.parametrize(
    ("trigger", "acts"),
    [
        ("once", [1, 0, 0, 0]),
        ("every_time", [1, 1, 1, 1]),
        ({"times": 2}, [1, 1, 0, 0]),
        ({"on_call": 3}, [0, 0, 1, 0]),
        ({"with_probability": 0.0}, [0, 0, 0, 0]),
        ({"with_probability": 1}, [1, 1, 1, 1]),
    ],
)
def test_trigger_decides_at_which_calls_a_fault_acts(bench, trigger, acts):
    fault = bench.set("inject_error", api="OffsetCommit", error="NOT_COORDINATOR", trigger=trigger)
    for offset in range(4):
        bench.commit(offset)
    assert [int(code_of(answer) != 0) for answer in bench.answers()] == acts
    assert (fault.calls, fault.hits) == (4, sum(acts))


def test_trigger_with_a_seed_acts_at_the_same_calls_again():
    runs = []
    for _ in range(2):
        bench = Bench()
        bench.set("inject_error", error="NOT_COORDINATOR", trigger={"with_probability": 0.5, "seed": 7})
        for offset in range(20):
            bench.commit(offset)
        runs.append([code_of(answer) for answer in bench.answers()])
    assert runs[0] == runs[1]
    assert len(set(runs[0])) == 2


@pytest.mark.parametrize(
    ("words", "matches"),
    [
        ({"api": "OffsetCommit"}, True),
        ({"api": ["Produce", "OffsetCommit"]}, True),
        ({"api": "Produce"}, False),
        ({"version": 8}, True),
        ({"version": [9, 10]}, False),
        ({"client_id": "cl*"}, True),
        ({"client_id": "other"}, False),
        ({"group": "g"}, True),
        ({"group": "h"}, False),
        ({"topic": "t"}, True),
        ({"topic": "u*"}, False),
        ({"topic": "t", "partition": 0}, True),
        ({"partition": 1}, False),
        ({"transactional_id": "x"}, False),
        ({"broker": 1}, True),
        ({"broker": 2}, False),
        ({"listener": "PLAINTEXT"}, True),
        ({"listener": "OTHER"}, False),
        ({"connection": "127.0.0.1:50000"}, True),
        ({"connection": "127.0.0.1:50001"}, False),
    ],
)
def test_filter_says_which_requests_match(bench, words, matches):
    fault = bench.set("inject_error", error="NOT_COORDINATOR", **words)
    bench.commit(5)
    assert (code_of(bench.answers()[0]) == ErrorCode.NOT_COORDINATOR) == matches
    assert fault.calls == matches


def test_topic_and_partition_are_found_by_topic_id_and_in_a_fetch_session(bench):
    wanted = FetchPartition(partition=1, fetch_offset=0, partition_max_bytes=1000)
    topics = [FetchTopic(topic_id=bench.topic_id, partitions=[wanted])]
    opened = bench.client.call(FetchRequest(max_bytes=1000, min_bytes=0, session_epoch=0, topics=topics), 17)
    fault = bench.set("inject_error", api="Fetch", topic="t", partition=1, error="UNKNOWN_SERVER_ERROR")
    again = FetchRequest(max_bytes=1000, min_bytes=0, session_id=opened.session_id, session_epoch=1)
    assert bench.client.call(again, 17).error_code == ErrorCode.UNKNOWN_SERVER_ERROR
    by_id = FetchRequest(max_bytes=1000, session_epoch=-1, topics=topics)
    assert bench.client.call(by_id, 17).error_code == ErrorCode.UNKNOWN_SERVER_ERROR
    assert fault.hits == 2


def test_first_fault_that_fires_acts_and_all_that_match_count(bench):
    first = bench.set("inject_error", error="NOT_COORDINATOR", trigger={"on_call": 2})
    second = bench.set("inject_error", error="COORDINATOR_NOT_AVAILABLE")
    bench.commit(1)
    bench.commit(2)
    codes = [code_of(answer) for answer in bench.answers()]
    assert codes == [ErrorCode.COORDINATOR_NOT_AVAILABLE, ErrorCode.NOT_COORDINATOR]
    assert [(each.calls, each.hits) for each in (first, second)] == [(2, 1), (2, 1)]


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


@pytest.mark.parametrize(
    ("data", "says"),
    [
        ([], "JSON object"),
        ({"fault": "inject_eror"}, "did you mean inject_error"),
        ({"fault": "inject_error"}, "needs 'error'"),
        ({"fault": "inject_error", "error": "NOT_COORDINTOR"}, "did you mean NOT_COORDINATOR"),
        ({"fault": "inject_error", "error": "NONE"}, "NONE is not an error"),
        ({"fault": "hold", "api": "OfsetCommit"}, "did you mean OffsetCommit"),
        ({"fault": "hold", "topik": "t"}, "did you mean topic"),
        ({"fault": "hold", "when": "middle"}, "before, after"),
        ({"fault": "hold", "partition": "0"}, "'0'"),
        ({"fault": "hold", "version": [1]}, "[first, last]"),
        ({"fault": "hold", "group": 5}, "a text"),
        ({"fault": "hold", "trigger": "twice"}, "trigger"),
        ({"fault": "hold", "trigger": {"on_call": 0}}, "N from 1"),
        ({"fault": "hold", "trigger": {"with_probability": 2}}, "P from 0 to 1"),
        ({"fault": "hold", "name": "a b"}, "letters"),
        ({"fault": "delay_on", "ms": -1}, "0 to"),
        ({"fault": "throttle", "bytes_per_second": 0}, "1 to"),
        ({"fault": "slow_disk", "ms": 5, "api": "Fetch"}, "takes no 'api'"),
    ],
)
def test_fault_that_cannot_be_set_says_why(bench, data, says):
    with pytest.raises(FaultError, match=says.replace("[", r"\[").replace("]", r"\]")):
        bench.faults.add(data)
    assert bench.faults.all() == []


def test_name_is_given_once(bench):
    bench.set("hold", name="gate")
    with pytest.raises(FaultError, match="set already"):
        bench.set("hold", name="gate")


def test_as_json_can_be_set_again(bench):
    words = {"api": ["OffsetCommit"], "version": [0, 9], "topic": "t", "trigger": {"times": 2}}
    fault = bench.set("inject_error", error="NOT_COORDINATOR", **words)
    shown = fault.as_json()
    assert {key: shown[key] for key in words} == words
    bench.faults.remove(fault.name)
    again = bench.faults.add({key: value for key, value in shown.items() if key not in ("calls", "hits", "held")})
    assert again.as_json() == shown


def test_error_that_a_request_cannot_carry_is_still_a_reply(bench):
    """Every API that is served has a way to refuse a whole request."""
    routes = bench.world.broker.router.routes
    assert ApiKey.METADATA in routes
    bench.set("inject_error", error="UNKNOWN_SERVER_ERROR")
    for api_key, route in sorted(routes.items()):
        route.load()
        request = route.request()
        if api_key == ApiKey.PRODUCE:
            request.acks = 1
        bench.client.send(request, route.max_version)
        assert len(bench.answers()) == 1, request


def test_first_fault_that_fires_acts_on_a_request_of_the_registry_and_all_that_match_count_it(bench):
    words = {"do": "error", "route": "ListSubjects"}
    late, every, other = (
        bench.set("registry", trigger={"on_call": 2}, **words),
        bench.set("registry", **words),
        bench.set("registry", do="error", route="GetMode"),
    )
    found = [bench.faults.of_registry("ListSubjects", None, "User:a") for _ in range(3)]
    assert found == [every, late, every]
    assert [(each.calls, each.hits) for each in (late, every, other)] == [(3, 1), (3, 2), (0, 0)]
