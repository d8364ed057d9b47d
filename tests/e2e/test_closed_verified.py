"""The end of a test's cluster: one exchange removes it, unless a fault of it has acted on nothing."""

from __future__ import annotations

import pytest

from momus.control import Control, ControlError


@pytest.fixture
def asked(monkeypatch):
    """What the control endpoint is asked."""
    made: list[str] = []
    ask = Control.ask

    def noted(self, method, path, body=None):
        made.append(f"{method} {path.removeprefix(self.prefix)}")
        return ask(self, method, path, body)

    monkeypatch.setattr(Control, "ask", noted)
    return made


def test_cluster_that_left_nothing_unmet_goes_with_one_exchange(shared_broker, asked):
    cluster = shared_broker.create_cluster()
    fault = cluster.faults.inject_error("Metadata", "COORDINATOR_NOT_AVAILABLE", trigger="once")
    assert cluster.control.ask("DELETE", f"{cluster.control.prefix}?met=true") == {"unmet": [fault.name]}
    cluster.create_topic("t")  # asks for no metadata as a client does
    fault.remove()
    asked.clear()
    assert cluster.close_verified() == []
    assert asked == ["DELETE ?met=true"]
    with pytest.raises(ControlError, match="no such cluster"):
        cluster.control.ask("GET", cluster.control.prefix)
    assert not cluster.is_open


def test_fault_that_never_acted_is_named_and_its_cluster_goes_all_the_same(shared_broker):
    cluster = shared_broker.create_cluster(journal_mb=1)
    cluster.faults.inject_error("OffsetCommit", "NOT_COORDINATOR", name="idle")
    (sentence,) = cluster.close_verified()
    assert sentence.startswith("the fault idle never acted")
    assert not cluster.is_open
    with pytest.raises(ControlError, match="no such cluster"):
        cluster.control.ask("GET", cluster.control.prefix)


def test_unmet_expectation_is_named_before_its_cluster_goes(shared_broker):
    cluster = shared_broker.create_cluster(journal_mb=1)
    cluster.journal.expect(api="OffsetCommit", at_least=1)
    (sentence,) = cluster.close_verified()
    assert "came 0 times, expected 1 or more" in sentence
    assert not cluster.is_open


def test_only_true_and_false_say_whether_faults_must_be_met(shared_broker):
    with shared_broker.create_cluster() as cluster, pytest.raises(ControlError, match='"met" is true or false, not no'):
        cluster.control.ask("DELETE", f"{cluster.control.prefix}?met=no")
