"""What a test expects of requests and faults, where the broker ends, is reset or restored before the test is over."""

from __future__ import annotations

import os
import signal
import threading
import time
from contextlib import closing, suppress

import pytest
from cluster_kit import Wire
from test_journal import ask_api_versions

from momus import Broker
from momus.control import ControlError
from protocol.messages.cluster import MetadataRequest

HELLO = {"api": "ApiVersions"}


@pytest.fixture
def broker():
    with Broker(journal_mb=4) as broker:
        yield broker


@pytest.fixture
def cluster(broker):
    with broker.create_cluster(journal_mb=4) as cluster:
        yield cluster


def die(broker: Broker) -> None:
    """Let the process end without the broker's handle."""
    os.kill(broker.pid, signal.SIGKILL)
    while broker.running:
        time.sleep(0.01)


@pytest.mark.parametrize("end", ["stop", "kill"])
def test_expectation_counts_requests_before_and_after_a_restart(broker, end):
    broker.journal.expect(times=3, **HELLO)
    broker.journal.expect(times=2, **HELLO)
    broker.journal.expect(times=0, api="OffsetCommit")
    ask_api_versions(broker, 2)
    getattr(broker, end)()
    broker.start()
    ask_api_versions(broker, 1)
    (unmet,) = broker.journal.unmet()
    assert "came 3 times, expected exactly 2\n  2 of them before the journal began again" in unmet
    assert broker.unverified() == [unmet]


@pytest.mark.parametrize("end", ["stop", "kill"])
def test_expectation_counts_a_process_whose_journal_nobody_has_looked_at(broker, end):
    broker.journal.expect(times=2, **HELLO)
    broker.journal.expect(times=3, **HELLO)
    for _ in range(3):
        ask_api_versions(broker, 1)
        getattr(broker, end)()
        broker.start()
    (unmet,) = broker.journal.unmet()
    assert "came 3 times, expected exactly 2\n  3 of them before" in unmet


def test_expectation_counts_requests_before_and_after_a_reset_and_a_restore(cluster):
    snapshot = cluster.snapshot()
    cluster.journal.expect(times=3, **HELLO)
    cluster.journal.expect(times=2, **HELLO)
    for begin_anew in (cluster.reset, lambda: cluster.restore(snapshot), cluster.record):
        ask_api_versions(cluster, 1)
        begin_anew()
    (unmet,) = cluster.journal.unmet()
    assert "came 3 times, expected exactly 2\n  3 of them" in unmet


@pytest.mark.parametrize("end", ["reset", "restart"])
def test_expectation_counts_what_comes_until_connections_are_cut(broker, end):
    """Of 11,000 requests that were answered beside 30 resets 80 were not counted, and about 8 at each stop."""
    broker.journal.expect(at_least=1 << 30, api="Metadata")
    answered, is_over = [], threading.Event()

    def ask() -> None:
        while not is_over.is_set():
            with suppress(OSError, EOFError), closing(Wire(broker.bootstrap_servers)) as wire:
                while not is_over.is_set():
                    answered.append(wire.call(MetadataRequest(topics=[]), 9))

    asking = threading.Thread(target=ask)
    asking.start()
    for _ in range(30 if end == "reset" else 5):
        so_far = len(answered)
        while len(answered) < so_far + 20:
            time.sleep(0.01)
        getattr(broker, end)()
    is_over.set()
    asking.join()
    (unmet,) = broker.journal.unmet()
    came = int(unmet.split(" came ")[1].split()[0])
    assert came >= len(answered) > 100


def test_restore_that_is_refused_counts_nothing_twice(cluster):
    cluster.journal.expect(times=1, **HELLO)
    ask_api_versions(cluster, 1)
    with pytest.raises(ControlError, match="no such"):
        cluster.restore("none")
    assert list(cluster.journal.unmet()) == []


def test_upper_limit_is_not_kept_by_a_journal_that_was_off_before_a_restart():
    with Broker(flush="memory") as broker:
        broker.journal.expect(times=0, **HELLO)
        broker.restart()
        broker.journal.keep(1)
        (unmet,) = broker.journal.unmet()
        assert "before the journal began again: the journal is off" in unmet


def test_expectation_knows_that_the_journal_was_off_for_a_time(cluster):
    cluster.journal.expect(times=2, **HELLO)
    cluster.journal.expect(at_least=2, **HELLO)
    for mb in (0, 4, 8):
        ask_api_versions(cluster, 1)
        cluster.journal.keep(mb)
    (unmet,) = cluster.journal.unmet()
    assert "came 2 times as far as is known, expected exactly 2\n  1 of them before the journal began again" in unmet
    assert "before the journal began again: the journal is off" in unmet


@pytest.mark.parametrize("end", ["stop", "kill"])
def test_fault_that_has_not_acted_when_its_process_ends_is_named_at_the_end(broker, end):
    broker.faults.inject_error("OffsetCommit", "NOT_COORDINATOR", name="idle")
    broker.faults.inject_error("ApiVersions", "UNSUPPORTED_VERSION", name="busy")
    broker.faults.inject_error("OffsetCommit", "NOT_COORDINATOR", name="gone").remove()
    ask_api_versions(broker, 1)
    getattr(broker, end)()
    (down,) = broker.unverified()
    assert down.startswith("the fault idle never acted")
    broker.start()
    for _ in range(2):
        assert list(broker.faults.unmet()) == [down]
    broker.reset()
    assert list(broker.faults.unmet()) == [down]


@pytest.mark.parametrize("is_started_again", [False, True])
def test_process_that_ends_by_itself_cannot_be_asked_and_that_is_told(broker, is_started_again):
    broker.faults.inject_error("OffsetCommit", "NOT_COORDINATOR", name="cleared")
    broker.faults.clear()
    broker.faults.inject_error("OffsetCommit", "NOT_COORDINATOR", name="idle")
    broker.faults.inject_error("OffsetCommit", "NOT_COORDINATOR", name="gone").remove()
    met = broker.faults.inject_error("ApiVersions", "UNSUPPORTED_VERSION", name="met")
    broker.journal.expect(times=0, api="OffsetCommit")
    ask_api_versions(broker, 1)
    met.wait_until_hit()
    die(broker)
    if is_started_again:
        broker.start()
    told = broker.unverified()
    assert told[0] == "the broker ended, and could not be asked whether the fault idle acted"
    assert "before the journal began again: the broker ended, and could not be asked what it had seen" in told[1]
    assert len(told) == 2
    broker.restart()
    assert broker.unverified() == told


def test_faults_that_a_reset_has_dropped_are_not_asked_for(broker):
    broker.faults.inject_error("OffsetCommit", "NOT_COORDINATOR")
    broker.reset()
    die(broker)
    assert broker.unverified() == []


def test_fault_of_before_a_reset_or_a_restore_is_never_another_one(cluster):
    snapshot = cluster.snapshot()
    before = cluster.faults.hold("OffsetCommit")
    for begin_anew in (cluster.reset, lambda: cluster.restore(snapshot)):
        begin_anew()
        after = cluster.faults.delay_on("ApiVersions", ms=0)
        ask_api_versions(cluster, 1)
        with pytest.raises(ControlError, match="no such fault"):
            before.wait_until_hit(timeout=0)
        with pytest.raises(ControlError, match="no such fault"):
            before.remove()
        assert after.hits == 1
        before = after


def test_cluster_without_a_name_does_not_open_what_a_killed_process_has_left(broker):
    left = broker.create_cluster(flush="os")
    left.produce("orders", "x")
    broker.kill()
    broker.start()
    with broker.create_cluster(flush="os") as made, broker.fork() as fork:
        assert left.name not in (made.name, fork.name)
        with pytest.raises(ControlError, match="there is no topic orders"):
            made.consume("orders")
    with broker.create_cluster(flush="os", name=left.name) as again:
        assert [record.value for record in again.consume("orders")] == [b"x"]
