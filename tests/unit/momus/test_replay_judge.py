"""Which differences between a recording of Kafka and a run on momus decide nothing, and how a result is written."""

from __future__ import annotations

import socket
from collections.abc import Callable
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from core_broker import frame
from core_requests import produce_request
from proxy_kit import reply

from momus.cli.replay.bundle import SENT, TOOK, Event
from momus.cli.replay.departures import KNOWN, departure_of
from momus.cli.replay.judge import Judge, junit, report, rule_of
from momus.cli.replay.player import Found
from protocol.messages.classic_group import HeartbeatRequest, HeartbeatResponse, JoinGroupRequest, JoinGroupResponse
from protocol.messages.produce import PartitionProduceResponse, ProduceResponse, TopicProduceResponse


def found(api: str, path: str, recorded: object, now: object) -> Found:
    return Found(7, api, 4, "client", 0, path, recorded, now)


@pytest.mark.parametrize(
    ("api", "path", "recorded", "now"),
    [
        ("Fetch", "responses.length", 1, 0),
        ("Fetch", "responses[0].partitions[0].records", [(0, b"a")], [(0, b"a"), (1, b"b")]),
        ("Fetch", "responses[0].partitions[0].high_watermark", 3, 4),
        ("AddPartitionsToTxn", "results[0].partition_error_code", 51, 0),
        ("OffsetCommit", "topics[0].partitions[0].error_code", 27, 0),
        ("JoinGroup", "members.length", 2, 1),
        ("ListOffsets", "topics[0].partitions[0].offset", 5, 6),
        ("Metadata", "topics.length", 3, 2),
        ("Metadata", "topics[0].name", "__consumer_offsets", "orders"),
        ("AlterUserScramCredentials", "results[0].error_code", 0, -1),
        ("Fetch", "responses[0].partitions[0].aborted_transactions", None, []),
        ("Fetch", "responses[0].topic_id", b"a", b"b"),
        ("Fetch", "responses[0].partitions[0].partition_index", 1, 2),
        ("OffsetForLeaderEpoch", "topics[0].partitions[0].end_offset", 5, 6),
    ],
)
def test_what_follows_from_the_moment_is_undecided(api, path, recorded, now):
    assert rule_of(found(api, path, recorded, now)) is not None


@pytest.mark.parametrize(
    ("api", "path", "recorded", "now"),
    [
        ("Fetch", "responses[0].partitions[0].records", [(0, b"a")], [(0, b"b")]),
        ("Fetch", "responses[0].partitions[0].error_code", 0, 1),
        ("Produce", "responses[0].partition_responses[0].base_offset", 3, 4),
        ("OffsetFetch", "groups[0].topics[0].partitions[0].committed_offset", 3, 4),
        ("OffsetForLeaderEpoch", "topics[0].partitions[0].leader_epoch", 0, 1),
        ("JoinGroup", "error_code", 0, 26),
        ("JoinGroup", "error_code", 0, 82),
        ("CreateTopics", "topics[0].error_code", 0, 36),
        ("Metadata", "topics[0].name", "orders", "payments"),
    ],
)
def test_what_follows_from_the_request_is_a_difference(api, path, recorded, now):
    assert rule_of(found(api, path, recorded, now)) is None


@pytest.mark.parametrize(
    ("api", "path", "recorded", "now", "name"),
    [
        ("Metadata", "topics[0].error_code", 5, 0, "A topic that Metadata or FindCoordinator creates"),
        ("FindCoordinator", "coordinators[0].error_code", 15, 0, "A topic that Metadata or FindCoordinator creates"),
        ("AddPartitionsToTxn", "results[0].partition_error_code", 51, 0, "EndTxn is answered when"),
        ("OffsetFetch", "groups[0].topics[0].partitions[0].error_code", 88, 0, "EndTxn is answered when"),
        (
            "DescribeTransactions",
            "transaction_states[0].transaction_state",
            "Ongoing",
            "CompleteAbort",
            "A transaction is",
        ),
        ("Fetch", "responses[0].partitions[0].aborted_transactions.length", 2, 1, "A Fetch of committed records"),
        ("Produce", "responses[0].partition_responses[0].error_code", 0, 87, "A batch whose records do not have"),
        ("Produce", "responses[0].partition_responses[0].error_code", 45, 46, "With `producer.state=lookup`"),
        ("ShareAcknowledge", "responses[0].partitions[0].error_code", -1, 121, "An acknowledgement of records"),
        ("CreatePartitions", "results[0].error_code", 0, 42, "Clients cannot create, delete or grow"),
        ("GetTelemetrySubscriptions", "the connection", "open", "closed", "GetTelemetrySubscriptions is absent"),
    ],
)
def test_a_known_departure_is_recognised_by_its_name(api, path, recorded, now, name):
    assert str(departure_of(found(api, path, recorded, now))).startswith(name)
    reverse = found(api, path, now, recorded)
    assert departure_of(reverse) is None or api == "GetTelemetrySubscriptions"


@pytest.mark.parametrize(
    ("api", "path", "recorded", "now"),
    [
        ("Metadata", "topics[0].error_code", 3, 29),
        ("DescribeTransactions", "transaction_states[0].transaction_state", "Ongoing", "CompleteCommit"),
        ("EndTxn", "error_code", 51, 47),
        ("Produce", "responses[0].partition_responses[0].error_code", 0, 2),
        ("Fetch", "the connection", "open", "closed"),
    ],
)
def test_what_supported_md_does_not_name_is_no_known_departure(api, path, recorded, now):
    assert departure_of(found(api, path, recorded, now)) is None


@pytest.mark.parametrize("name", [each.name for each in KNOWN])
def test_the_name_of_a_departure_begins_one_line_of_supported_md(name):
    lines = (Path(__file__).parents[3] / "SUPPORTED.md").read_text().splitlines()
    assert len([line for line in lines if line.startswith(f"* {name}")]) == 1


class Nothing:
    """A target that no event is played against."""

    is_other = True

    def __getattr__(self, name: str) -> Any:
        raise AssertionError(name)


class OneConnection(Nothing):
    """A target whose other end is a socket of the test's. `go_to`: what happens as time passes."""

    def __init__(self, ours: socket.socket, go_to: Callable[[int], None] = lambda _at_ms: None) -> None:
        self._ours = ours
        self.go_to = go_to

    def connect(self, broker: int) -> socket.socket:
        return self._ours

    def settle(self) -> None: ...


def test_a_result_names_what_differs_and_counts_what_is_undecided():
    judge = Judge(Nothing())
    judge.answers = 10
    for each in (found("Produce", "a|b", "<x>", 2), found("Fetch", "responses.length", 1, 0)):
        assert judge._goes_on(each, 1)
    assert judge.summary() == "10 answers, 1 different, 1 undecided"
    text = report(judge, "make test")
    assert "| 7 | Produce v4 | a\\|b | <x> | 2 |" in text
    assert "| how much a Fetch found at its moment | 1 |" in text
    suite = ElementTree.fromstring(junit(judge, "make test"))
    assert (suite.get("failures"), suite.get("skipped"), suite.get("tests")) == ("1", "1", "3")


def test_known_departures_are_counted_by_name_and_are_no_failure():
    judge = Judge(Nothing())
    judge.answers = 10
    for _ in range(3):
        assert judge._goes_on(found("EndTxn", "error_code", 51, 0), 1)
    assert judge.summary() == "10 answers, 0 different, 0 undecided, 3 known departures"
    assert judge.same == 7
    assert "| EndTxn is answered when the transaction is complete | 3 |" in report(judge, "make test")
    suite = ElementTree.fromstring(junit(judge, "make test"))
    assert (suite.get("failures"), suite.get("skipped"), suite.get("tests")) == ("0", "1", "2")
    assert suite[1].get("name") == "EndTxn is answered when the transaction is complete"
    assert suite[1][0].get("message") == "3 answers, a departure that SUPPORTED.md names"


def produced(version: int, code: int, correlation_id: int) -> bytes:
    rows = [PartitionProduceResponse(index=0, error_code=code, base_offset=-1 if code else 0)]
    answer = ProduceResponse(responses=[TopicProduceResponse(name="t", partition_responses=rows)])
    return reply(answer, version, correlation_id)


def test_records_that_a_cluster_was_not_ready_for_are_sent_once():
    requests = [frame(produce_request("t", 0, b"x"), 9, number) for number in (1, 2)]
    ours, theirs = socket.socketpair()
    theirs.sendall(produced(9, 0, 2))

    events = [
        Event(TOOK, 1, 1, 0, requests[0]),
        Event(SENT, 1, 1, 0, produced(9, 6, 1)),
        Event(TOOK, 1, 1, 0, requests[1]),
        Event(SENT, 1, 1, 0, produced(9, 0, 2)),
    ]
    judge = Judge(OneConnection(ours))
    judge.judge(events)
    assert theirs.recv(1 << 16) == requests[1]
    assert judge.summary() == "2 answers, 0 different, 1 undecided"
    theirs.close()


def test_a_member_that_a_cluster_was_not_ready_for_joins_once():
    joins = [frame(JoinGroupRequest(group_id="g", protocol_type="consumer"), 5, number) for number in (1, 2)]
    answers = [reply(JoinGroupResponse(error_code=code), 5, number) for number, code in ((1, 16), (2, 79))]
    ours, theirs = socket.socketpair()
    theirs.sendall(answers[1])

    events = [Event(kind, 1, 1, 0, data[at]) for at in (0, 1) for kind, data in ((TOOK, joins), (SENT, answers))]
    judge = Judge(OneConnection(ours))
    judge.judge(events)
    assert theirs.recv(1 << 16) == joins[1]
    assert judge.summary() == "2 answers, 0 different, 1 undecided"
    theirs.close()


def test_an_answer_that_is_due_a_little_later_by_our_clock_is_waited_for():
    ours, theirs = socket.socketpair()

    def go_to(at_ms: int) -> None:
        if at_ms == 1000 + 489 + 30:
            theirs.sendall(produced(9, 0, 1))

    judge = Judge(OneConnection(ours, go_to))
    request = frame(produce_request("t", 0, b"x"), 9, 1)
    judge.judge([Event(TOOK, 1, 1, 1000, request), Event(SENT, 1, 1, 1489, produced(9, 0, 1))])
    assert judge.summary() == "1 answers, 0 different, 0 undecided"
    theirs.close()


def test_a_run_ends_where_answers_stay_away():
    judge = Judge(Nothing())
    gone = [judge._goes_on(found("Fetch", "the answer", "there", "missing"), 1) for _ in range(21)]
    assert gone == [True] * 20 + [False]


def test_a_round_of_a_group_that_waits_for_others_is_undecided_and_its_late_answer_passed_over():
    ours, theirs = socket.socketpair()
    ours.settimeout(0.5)
    join = frame(JoinGroupRequest(group_id="g", protocol_type="consumer"), 5, 1)
    joined = [reply(JoinGroupResponse(generation_id=generation), 5, 1) for generation in (1, 2)]
    beat = frame(HeartbeatRequest(group_id="g"), 4, 2)
    beaten = reply(HeartbeatResponse(), 4, 2)

    def go_to(at_ms: int) -> None:
        if at_ms == 9000:
            theirs.sendall(joined[1] + beaten)

    events = [
        Event(TOOK, 1, 1, 1000, join),
        Event(SENT, 1, 1, 1001, joined[0]),
        Event(TOOK, 1, 1, 1002, beat),
        Event(SENT, 1, 1, 9000, beaten),
    ]
    judge = Judge(OneConnection(ours, go_to))
    judge.judge(events)
    assert theirs.recv(1 << 16) == join + beat  # over one connection
    assert judge.summary() == "2 answers, 0 different, 1 undecided"
    theirs.close()


@pytest.mark.parametrize(
    ("api", "path", "recorded", "now"),
    [
        ("Heartbeat", "error_code", 0, 82),
        ("OffsetFetch", "groups[0].topics[0].partitions[0].committed_offset", 3, -1),
        ("OffsetFetch", "groups[0].topics.length", 1, 0),
    ],
)
def test_what_follows_in_a_group_that_rebalanced_at_another_moment_is_undecided_there_alone(api, path, recorded, now):
    judge = Judge(Nothing())
    judge.answers = 4
    for group in ("before", "moved"):
        assert judge._goes_on(found(api, path, recorded, now)._replace(names=(group,)), 1)
    assert judge._goes_on(found("SyncGroup", "error_code", 0, 27)._replace(names=("moved",)), 1)
    assert judge._goes_on(found(api, path, recorded, now)._replace(names=("moved",)), 1)
    assert judge.summary() == "4 answers, 2 different, 2 undecided"


def test_a_connection_that_is_given_up_within_a_moment_ends_none_of_the_others():
    ours, theirs = socket.socketpair()
    theirs.close()

    requests = b"".join(frame(produce_request("t", 0, b"x"), 9, number) for number in (1, 2))
    answers = produced(9, 0, 1) + produced(9, 0, 2)
    judge = Judge(OneConnection(ours))
    judge.judge([Event(TOOK, 1, 1, 0, requests), Event(SENT, 1, 1, 0, answers)])
    assert [each.path for each in judge.different] == ["the connection"]


def test_commits_of_a_producer_that_got_no_id_here_are_undecided():
    judge = Judge(Nothing())
    judge.answers = 3
    commit = found("TxnOffsetCommit", "topics[0].partitions[0].error_code", 0, 49)._replace(names=("g", "t"))
    assert judge._goes_on(commit, 1)
    assert judge._goes_on(found("InitProducerId", "error_code", 0, 16)._replace(names=("t",)), 1)
    assert judge._goes_on(commit, 1)
    assert judge.summary() == "3 answers, 1 different, 2 undecided"
    fetch = found("OffsetFetch", "groups[0].topics[0].partitions[0].committed_offset", 4, -1)._replace(names=("g",))
    assert judge._goes_on(fetch, 1)
    assert len(judge.different) == 1
