"""What a test left unmet fails it when it is over, whoever closed its cluster."""

from __future__ import annotations

from cases import each_case
from fixtures_kit import ALONE

pytest_plugins = ["pytester"]


def test_what_a_test_left_unmet_fails_it_when_it_is_over(pytester, told):
    pytester.makeconftest(
        "from momus.handle import VERIFY\nVERIFY.append(lambda cluster: [f'{cluster.name} is sad'])\n"
    )
    pytester.makepyfile(
        """
import pytest
@pytest.mark.momus(faults=[{"fault": "inject_error", "api": "Produce", "error": "NOT_COORDINATOR"}])
def test_it_4(kafka_broker):
    pass
"""
    )
    done = pytester.runpytest_subprocess(*ALONE)
    done.assert_outcomes(passed=1, errors=1)
    done.stdout.fnmatch_lines(["*never acted (no request matched it)*", "* is sad"])


ARRANGE = """
import pytest

def arrange(broker):
    broker.faults.inject_error("OffsetCommit", "NOT_COORDINATOR", name="idle")
    broker.journal.expect(api="OffsetCommit", at_least=1)
"""
LEFT = {
    "closed by its test": "with kafka_broker: arrange(kafka_broker)",
    "made by its test and closed": "with make_kafka_broker() as broker: arrange(broker)",
    "made by its test and left": "arrange(make_kafka_broker())",
    "fork that is closed": "with kafka_broker.fork() as fork: arrange(fork)",
    "fork that is left": "arrange(kafka_broker.fork())",
    "fork of a fork": "arrange(kafka_broker.fork().fork())",
    "fork of one that was made": "arrange(make_kafka_broker().fork())",
    "process": "arrange(kafka_process_broker)",
    "process that is stopped": "arrange(kafka_process_broker); kafka_process_broker.stop()",
    "process that is restarted": "arrange(kafka_process_broker); kafka_process_broker.restart()",
    "process that is closed": "arrange(kafka_process_broker); kafka_process_broker.close()",
    "cluster in a process": "arrange(kafka_process_broker.create_cluster(journal_mb=1))",
    "cluster in a process that is killed": (
        "arrange(kafka_process_broker.create_cluster(journal_mb=1)); kafka_process_broker.kill()"
    ),
    "fork of a process": "arrange(kafka_process_broker.fork())",
}


@each_case("body", LEFT.values(), LEFT)
def test_what_a_test_left_unmet_fails_it_whoever_closed_the_cluster(pytester, told, body):
    fixtures = [name for name in ("kafka_broker", "make_kafka_broker", "kafka_process_broker") if name in body]
    pytester.makepyfile(f"{ARRANGE}\ndef test_leaves({', '.join(fixtures)}):\n    {body}\n")
    done = pytester.runpytest_inprocess(*ALONE, "-rN")  # the summary repeats whole messages where CI is set
    done.assert_outcomes(passed=1, errors=1)
    text = done.stdout.str()
    assert text.count("the fault idle never acted (no request matched it)") == 1
    assert text.count("api=OffsetCommit came 0 times, expected 1 or more\n") == 1


def test_error_is_of_the_test_that_closed_the_cluster_and_not_of_the_next(pytester, told):
    pytester.makepyfile(
        ARRANGE
        + """
@pytest.fixture
def ends_badly():
    yield
    raise ValueError("ended badly")

def test_arranges(make_kafka_broker):
    with make_kafka_broker() as broker:
        arrange(broker)
def test_is_well(make_kafka_broker):
    with make_kafka_broker() as broker:
        broker.journal.expect(api="OffsetCommit", times=0)
def test_ends_badly(make_kafka_broker, ends_badly):
    with make_kafka_broker() as broker:
        arrange(broker)
def test_is_well_again(make_kafka_broker, kafka_process_broker):
    kafka_process_broker.journal.expect(api="OffsetCommit", times=0)
    with kafka_process_broker.fork() as fork:
        fork.journal.expect(api="OffsetCommit", times=0)
"""
    )
    done = pytester.runpytest_inprocess(*ALONE)
    done.assert_outcomes(passed=4, errors=2)
    done.stdout.fnmatch_lines(["*ValueError: ended badly", "*the fault idle never acted*"])
    done.stdout.fnmatch_lines(["ERROR *::test_arranges*", "ERROR *::test_ends_badly*"])
