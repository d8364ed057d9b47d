"""Faults set on a whole broker: which requests they meet, what they count, and how they are set."""

from __future__ import annotations

import pytest
from cases import each_case
from core_broker import Client
from core_requests import fetch_request, produce_request
from faults_kit import Bench, code_of

from broker.faults.errors import FaultError
from broker.journal.ring import Ring
from protocol.api import ApiKey
from protocol.errors import ErrorCode
from protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic


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
