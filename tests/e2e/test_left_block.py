"""Without pytest's fixtures: what a test meant to happen did not, and verify and the end of a `with` block say so."""

from __future__ import annotations

import unittest

import pytest
from kafka import KafkaAdminClient

from momus import Broker, UnverifiedError
from momus.cluster import Cluster
from momus.handle import ClusterHandle

NEVER = "the fault fault-1 never acted"


@pytest.fixture(autouse=True)
def as_users_have_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """tests/conftest.py turns it off."""
    monkeypatch.setattr(ClusterHandle, "verifies", True)


def idle(cluster: Broker | Cluster) -> None:
    """A fault that nothing meets."""
    cluster.faults.inject_error("EndTxn", "NOT_COORDINATOR")


def a_block(*ends: str) -> None:
    """A broker's block with an idle fault, in which this comes too: "other", "stop", "raise"."""
    with Broker() as broker:
        idle(broker.create_cluster(name="other") if "other" in ends else broker)
        if "stop" in ends:
            broker.stop()
        if "raise" in ends:
            raise ZeroDivisionError("by zero")


@pytest.mark.heavy
@pytest.mark.parametrize(
    ("ends", "error", "told"),
    [
        ("", UnverifiedError, f"^{NEVER}"),
        ("other", UnverifiedError, f"^cluster other: {NEVER}"),
        ("stop", UnverifiedError, f"^{NEVER}"),
        ("raise", ZeroDivisionError, "by zero"),
    ],
)
def test_end_of_a_brokers_block_fails_for_a_fault_that_never_acted(ends: str, error: type[BaseException], told: str):
    with pytest.raises(error, match=told):
        a_block(ends)


def test_end_of_a_clusters_block_fails_and_removes_it(shared_broker: Broker):
    with pytest.raises(UnverifiedError, match=NEVER), shared_broker.create_cluster(name="left") as cluster:
        idle(cluster)
    assert not cluster.is_open
    assert "left" not in [each["name"] for each in shared_broker.control.ask("GET", "/_admin/clusters")]


def test_exception_that_leaves_a_clusters_block_is_the_one_that_is_seen(shared_broker: Broker):
    cluster = shared_broker.create_cluster()
    idle(cluster)
    assert cluster.__exit__(ZeroDivisionError, ZeroDivisionError(), None) is None
    assert not cluster.is_open


def test_expectation_that_is_not_met_is_one_too_and_what_is_met_passes(shared_broker: Broker):
    with shared_broker.create_cluster(journal_mb=1) as cluster:
        cluster.journal.expect(api="Metadata", at_least=1)
        with pytest.raises(UnverifiedError, match="api=Metadata came 0 times, expected 1 or more"):
            cluster.verify()
        KafkaAdminClient(bootstrap_servers=cluster.bootstrap_servers).close()
        cluster.verify()


def test_unittest_fails_for_a_fault_that_never_acted(shared_broker: Broker):
    class Case(unittest.TestCase):
        def test_it(self) -> None:
            idle(self.enterContext(shared_broker.create_cluster()))

        def test_by_hand(self) -> None:
            cluster = shared_broker.create_cluster()
            self.addCleanup(cluster.close)
            self.addCleanup(cluster.verify)
            idle(cluster)

    result = unittest.TestResult()
    unittest.defaultTestLoader.loadTestsFromTestCase(Case).run(result)
    told = [text for _, text in (*result.failures, *result.errors)]
    assert len(told) == 2
    assert all(NEVER in each for each in told)
