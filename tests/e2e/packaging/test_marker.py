"""The marker momus(...): which fixtures obey it, and that none is passed over without a word."""

from __future__ import annotations

import pytest

pytest_plugins = ["pytester"]

ALONE = ("-p", "no:cacheprovider", "-p", "no:asyncio", "-p", "no:xdist")


def test_marker_is_obeyed_by_the_process_of_a_test_and_by_the_clusters_of_a_class_and_a_module(pytester):
    pytester.makepyfile(
        """
import pytest
pytestmark = pytest.mark.momus(brokers=2, topics={"t": 3})

def brokers(cluster):
    assert cluster.produce("t", "x", partition=2) == [(2, 0)]
    return len(cluster.bootstrap_servers.split(","))

def test_module(kafka_broker_module):
    assert brokers(kafka_broker_module) == 2

@pytest.mark.momus(brokers=3)
class TestOfClass:
    def test_class(self, kafka_broker_class):
        assert brokers(kafka_broker_class) == 3

@pytest.mark.momus(config={"log.retention.hours": 7}, seed=5)
def test_process(kafka_process_broker):
    assert brokers(kafka_process_broker) == 2
    assert kafka_process_broker.seed == 5
    assert kafka_process_broker.config["log.retention.hours"] == "7"
"""
    )
    pytester.runpytest_inprocess(*ALONE).assert_outcomes(passed=3)


def test_fault_of_the_marker_is_set_in_the_process_of_a_test_and_asked_for(pytester):
    pytester.makepyfile(
        """
import pytest
@pytest.mark.momus(faults=[{"fault": "inject_error", "api": "Produce", "error": "NOT_COORDINATOR"}])
def test_idle(kafka_process_broker): pass
"""
    )
    done = pytester.runpytest_inprocess(*ALONE)
    done.assert_outcomes(passed=1, errors=1)
    done.stdout.fnmatch_lines(["*the fault fault-1 never acted*"])


def test_marker_without_words_is_not_passed_over(pytester):
    pytester.makepyfile(
        """
import pytest
@pytest.mark.momus({"orders": 3})
def test_it(kafka_broker): pass
"""
    )
    done = pytester.runpytest_inprocess(*ALONE)
    done.assert_outcomes(errors=1)
    done.stdout.fnmatch_lines(["*momus(topics, load, faults, **words) takes words, not {'orders': 3}*"])


@pytest.mark.parametrize(("flush", "has"), [("memory", "os"), ("fsync", "fsync")])
def test_seed_and_flush_of_the_command_line_are_obeyed_by_the_process_of_a_test(pytester, flush, has):
    pytester.makepyfile(
        f"""
import pytest
def test_option(kafka_process_broker):
    found = kafka_process_broker.control.ask("GET", "/_admin/clusters")[0]
    assert (found["seed"], found["flush"]) == (7, "{has}")
@pytest.mark.momus(seed=8, flush="memory")
def test_marker(kafka_process_broker):
    found = kafka_process_broker.control.ask("GET", "/_admin/clusters")[0]
    assert (found["seed"], found["flush"]) == (8, "memory")
"""
    )
    words = ("--momus-seed", "7", "--momus-flush", flush)
    pytester.runpytest_inprocess(*ALONE, *words).assert_outcomes(passed=2)


@pytest.mark.parametrize("wider", ["class", "module", "session"])
def test_marker_that_only_a_shared_cluster_could_obey_fails_its_test(pytester, wider):
    pytester.makepyfile(
        f"""
import pytest
class TestBoth:
    @pytest.mark.momus(brokers=3)
    def test_marked(self, kafka_broker_{wider}): pass
    def test_plain(self, kafka_broker_{wider}): pass
    @pytest.mark.momus(brokers=3)
    def test_of_its_own(self, kafka_broker, kafka_broker_{wider}): pass
    @pytest.mark.momus(brokers=3)
    def test_without(self): pass
"""
    )
    done = pytester.runpytest_inprocess(*ALONE)
    done.assert_outcomes(passed=3, errors=1)
    done.stdout.fnmatch_lines([f"kafka_broker_{wider} is shared with tests without this marker: use kafka_broker"])
