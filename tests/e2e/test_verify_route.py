"""GET /verify and its kin say, to kits of other languages, what the Python kit says of the same requests and faults."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from confluent_kafka import Consumer, TopicPartition

from momus import Broker
from momus.cluster import Cluster
from momus.control import ControlError
from momus.journal import JournalError


@pytest.fixture(scope="module")
def process() -> Iterator[Broker]:
    with Broker() as broker:
        yield broker


@pytest.fixture
def cluster(process: Broker) -> Iterator[Cluster]:
    with process.create_cluster(journal_mb=1) as cluster:
        yield cluster


def ask(cluster: Cluster, method: str, path: str, body: object = None) -> Any:
    return cluster.control.ask(method, cluster.control.prefix + path, body)


def commit(cluster: Cluster, group: str) -> None:
    consumer = Consumer({**cluster.client_config("confluent"), "group.id": group})
    consumer.commit(offsets=[TopicPartition("orders", 0, 1)], asynchronous=False)
    consumer.close()


LIMITS = [{}, {"times": 1}, {"times": 2}, {"at_least": 2}, {"at_most": 0}, {"at_least": 1, "at_most": 3}]
FILTERS: list[dict[str, Any]] = [
    {"api": "OffsetCommit"},
    {"api": "OffsetCommit", "group": "billing"},
    {"api": "OffsetCommit", "group": "nobody"},
    {"group": "nobody"},
    {},
]


def test_verify_says_what_the_python_kit_says(cluster):
    cluster.create_topic("orders")
    commit(cluster, "billing")
    for filters in FILTERS:
        for limits in LIMITS:
            said = ask(cluster, "POST", "/journal/verify?check=false", {"filters": filters, **limits})
            why = ""
            try:
                cluster.journal.verify(**limits, **filters)
            except JournalError as error:
                why = str(error)
            assert (said["why"], said["met"]) == (why, not why)
    assert "\n".join(ask(cluster, "GET", "/journal/last?n=5")["lines"]) == cluster.journal.last(5) != ""


def test_faults_that_never_acted_are_told_as_by_the_python_kit(cluster):
    cluster.create_topic("orders")
    met = cluster.faults.inject_error("FindCoordinator", "COORDINATOR_NOT_AVAILABLE", trigger="once")
    cluster.faults.inject_error("OffsetCommit", "NOT_COORDINATOR", group="other")
    cluster.faults.hold(["EndTxn", "OffsetFetch"], principal="User:alice")
    cluster.faults.delay_on("OffsetCommit", 1, on_call=9)
    cluster.faults.fail_fsync()
    commit(cluster, "billing")
    assert met.hits == 1
    unmet = ask(cluster, "GET", "/verify")["unmet"]
    assert unmet == list(cluster.faults.unmet())
    assert len(unmet) == 4
    assert "but for group=other: " in unmet[0]


def test_expectations_are_verified_over_resets_and_restores_and_can_be_forgotten(cluster):
    wanted = {"filters": {"api": "OffsetCommit", "group": "billing"}, "times": 2}
    cluster.create_topic("orders")
    assert ask(cluster, "POST", "/journal/expect", wanted) == {"expected": 1}
    commit(cluster, "billing")
    ask(cluster, "POST", "/reset")
    cluster.create_topic("orders")
    (sentence,) = ask(cluster, "GET", "/verify")["unmet"]
    assert "came 1 time, expected exactly 2\n  1 of them before the journal began again" in sentence
    commit(cluster, "billing")
    snapshot = cluster.snapshot()
    assert ask(cluster, "GET", "/verify") == {"unmet": []}
    cluster.restore(snapshot)
    assert ask(cluster, "GET", "/verify") == {"unmet": []}
    commit(cluster, "billing")
    assert "came 3 times" in ask(cluster, "GET", "/verify")["unmet"][0]
    assert ask(cluster, "DELETE", "/journal/expect") == {"expected": 1}
    assert ask(cluster, "GET", "/verify") == {"unmet": []}


def test_upper_limit_over_a_journal_that_was_turned_off_is_not_met(cluster):
    ask(cluster, "POST", "/journal/expect", {"filters": {"api": "OffsetCommit"}, "times": 0})
    assert ask(cluster, "GET", "/verify") == {"unmet": []}
    ask(cluster, "POST", "/journal", {"bytes": 0})
    assert "the journal is off" in ask(cluster, "GET", "/verify")["unmet"][0]


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ({"times": 1, "at_most": 2}, "give times, or at_least and at_most"),
        ({"at_least": 3, "at_most": 2}, "no number of requests"),
        ({"filters": {"color": "red"}}, "no such filter: color"),
        ({"filters": {"api": "Sing"}}, "Sing"),
    ],
)
def test_what_cannot_be_expected_is_refused(cluster, body, words):
    for path in ("/journal/verify", "/journal/expect"):
        with pytest.raises(ControlError, match=words):
            ask(cluster, "POST", path, body)
    assert ask(cluster, "GET", "/verify") == {"unmet": []}
