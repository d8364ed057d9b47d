"""The pytest fixtures: scopes, marker, options, forks, and what a failed test shows."""

from __future__ import annotations

from fixtures_kit import ALONE, TELL

from momus import Broker

pytest_plugins = ["pytester"]


def test_tests_have_fresh_clusters_in_one_process_and_wider_scopes_share_theirs(pytester, told):
    pytester.makepyfile(
        TELL
        + """
class TestBoth:
    def test_one(self, kafka_broker, kafka_broker_class, kafka_broker_module, kafka_broker_session):
        for broker in (kafka_broker, kafka_broker_class, kafka_broker_module, kafka_broker_session):
            tell(broker)
            broker.create_topic("t")
    def test_two(self, kafka_broker, kafka_broker_class, kafka_broker_module, kafka_broker_session):
        for broker in (kafka_broker, kafka_broker_class, kafka_broker_module, kafka_broker_session):
            tell(broker)
        kafka_broker.create_topic("t")
class TestOther:
    def test_three(self, make_kafka_broker, kafka_broker_class, kafka_broker_module):
        for broker in (make_kafka_broker(brokers=2), kafka_broker_class, kafka_broker_module):
            tell(broker)
"""
    )
    pytester.runpytest_inprocess(*ALONE).assert_outcomes(passed=3)
    found = told()
    assert len({each["control"] for each in found}) == 1
    assert {each["flush"] for each in found} == {"memory"}
    ids = [each["cluster_id"] for each in found]
    assert ids[5:8] == ids[1:4]
    assert ids[10] == ids[2]
    assert len(set(ids)) == 4 + 1 + 2
    assert found[8]["brokers"] == 2


def test_marker_says_how_the_cluster_of_a_test_is_made(pytester, told):
    pytester.makepyfile(
        TELL
        + """
@pytest.mark.momus(brokers=2, seed=1, topics={"t": 3})
class TestMarked:
    def test_class(self, kafka_broker):
        tell(kafka_broker, offsets=kafka_broker.produce("t", "x", partition=2))
    @pytest.mark.momus(seed=2)
    def test_both(self, kafka_broker):
        tell(kafka_broker, offsets=kafka_broker.produce("t", "x", partition=2))
@pytest.mark.momus(speed=9)
def test_wrong(kafka_broker):
    pass
"""
    )
    done = pytester.runpytest_inprocess(*ALONE, "--strict-markers")
    done.assert_outcomes(passed=2, errors=1)
    done.stdout.fnmatch_lines(["*the marker momus takes no word 'speed'*"])
    assert [(each["brokers"], each["seed"], each["offsets"]) for each in told()] == [(2, 1, [[2, 0]]), (2, 2, [[2, 0]])]


def test_command_line_wins_over_environment_and_environment_over_ini(pytester, told, monkeypatch):
    pytester.makepyfile(TELL + "def test_it_1(kafka_broker): tell(kafka_broker)")
    pytester.makeini("[pytest]\nmomus_flush = os\nmomus_seed = 1\n")
    pytester.runpytest_inprocess(*ALONE).assert_outcomes(passed=1)
    monkeypatch.setenv("MOMUS_SEED", "2")
    pytester.runpytest_inprocess(*ALONE).assert_outcomes(passed=1)
    pytester.runpytest_inprocess(*ALONE, "--momus-seed", "3").assert_outcomes(passed=1)
    assert [(each["flush"], each["seed"]) for each in told()] == [("os", 1), ("os", 2), ("os", 3)]


def test_release_of_option_and_marker_is_what_clients_are_offered(pytester):
    pytester.makepyfile(
        """
import pytest, socket, struct
def newest_fetch(broker):
    host, _, port = broker.bootstrap_servers.rpartition(":")
    with socket.create_connection((host, int(port))) as wire, wire.makefile("rb") as replies:
        wire.sendall(struct.pack(">ihhih", 10, 18, 0, 1, -1))  # ApiVersions v0
        reply = replies.read(int.from_bytes(replies.read(4), "big"))
    return {key: newest for key, _, newest in struct.iter_unpack(">hhh", reply[10:])}[1]
def test_option(kafka_broker, kafka_process_broker, kafka_broker_module):
    assert [newest_fetch(each) for each in (kafka_broker, kafka_process_broker, kafka_broker_module)] == [10] * 3
@pytest.mark.momus(as_version="3.9")
def test_marker(kafka_broker):
    assert newest_fetch(kafka_broker) == 17
@pytest.mark.momus(as_version=None)
def test_none(kafka_broker):
    assert newest_fetch(kafka_broker) > 17
"""
    )
    pytester.makeini("[pytest]\nmomus_as_version = 2.0\n")
    pytester.runpytest_inprocess(*ALONE, "--momus-as-version", "2.1").assert_outcomes(passed=3)


def test_process_that_runs_is_used_by_its_address_and_left_as_it_was(pytester, told):
    pytester.makepyfile(
        TELL + "def test_it_2(kafka_broker, make_kafka_broker): tell(kafka_broker); make_kafka_broker()"
    )
    with Broker() as broker:
        done = pytester.runpytest_inprocess(*ALONE, "--momus-address", broker.control.address)
        done.assert_outcomes(passed=1)
        assert [each["control"] for each in told()] == [broker.control.address]
        assert [each["name"] for each in broker.control.ask("GET", "/_admin/clusters")] == ["default"]


def test_settings_and_address_are_what_the_project_overrides(pytester, told):
    pytester.makeconftest(
        """
import pytest, socket
with socket.create_server(("127.0.0.1", 0)) as free:
    PORT = free.getsockname()[1]
@pytest.fixture(scope="session")
def kafka_broker_config():
    return {"num.partitions": 4, "auto.create.topics.enable": True}
@pytest.fixture(scope="session")
def kafka_listen_address():
    return ("127.0.0.1", PORT)
"""
    )
    pytester.makepyfile(
        TELL
        + """
from conftest import PORT
@pytest.mark.parametrize("time", [1, 2])
def test_it_3(kafka_broker, time):
    assert kafka_broker.bootstrap_servers == f"127.0.0.1:{PORT}"
    assert kafka_broker.produce("made", "x", partition=3) == [(3, 0)]
"""
    )
    pytester.runpytest_inprocess(*ALONE).assert_outcomes(passed=2)


def test_failed_test_shows_the_last_requests_of_its_process(pytester, told):
    pytester.makepyfile("def test_it(kafka_process_broker):\n    assert False\n")
    done = pytester.runpytest_inprocess(*ALONE)
    done.assert_outcomes(failed=1)
    done.stdout.fnmatch_lines(["the last requests:", "none"])


def test_process_of_one_test_may_be_killed(pytester, told):
    pytester.makepyfile(
        """
def test_it_5(kafka_process_broker, kafka_broker):
    kafka_broker.create_topic("t")
    kafka_process_broker.produce("t", "kept")
    kafka_process_broker.kill()
    kafka_process_broker.start()
    assert [r.value for r in kafka_process_broker.consume("t")] == [b"kept"]
    assert kafka_broker.consume("t") == []
"""
    )
    pytester.runpytest_inprocess(*ALONE).assert_outcomes(passed=1)


def test_failed_test_shows_its_last_requests_and_unmet_expectations_fail_one(pytester, told):
    pytester.makepyfile(
        """
from confluent_kafka import Producer

def ask(broker):
    Producer({"bootstrap.servers": broker.bootstrap_servers, "client.id": "asker"}).list_topics(timeout=60)

def test_fails(kafka_broker):
    ask(kafka_broker)
    assert False
def test_passes(kafka_broker):
    ask(kafka_broker)
    kafka_broker.journal.expect(api="Metadata", client_id="asker")
def test_expects_in_vain(kafka_broker):
    kafka_broker.journal.expect(api="OffsetCommit")
"""
    )
    result = pytester.runpytest_inprocess(*ALONE, "-rN")
    result.assert_outcomes(failed=1, passed=2, errors=1)
    text = result.stdout.str()
    assert text.count("the last requests:") == 1
    assert "Metadata v" in text
    assert "api=OffsetCommit came 0 times, expected 1 or more" in text


def test_journal_of_the_fixtures_can_be_turned_off(pytester, told):
    pytester.makepyfile(
        TELL
        + """
def test_one(kafka_broker):
    tell(kafka_broker, journal=kafka_broker.control.ask("GET", f"{kafka_broker.control.prefix}/journal")["bytes"])
"""
    )
    pytester.runpytest_inprocess(*ALONE).assert_outcomes(passed=1)
    pytester.runpytest_inprocess(*ALONE, "--momus-journal-mb", "0").assert_outcomes(passed=1)
    assert [each["journal"] for each in told()] == [4 << 20, 0]


def test_each_test_gets_a_fork_of_what_the_project_made_once(pytester, told):
    pytester.makeconftest(
        """
import pytest

@pytest.fixture(scope="session")
def kafka_broker_template(make_kafka_broker):
    broker = make_kafka_broker(seed=7)
    broker.create_topic("orders", 3)
    broker.produce("orders", "a", "b")
    return broker
"""
    )
    pytester.makepyfile(
        TELL
        + """
@pytest.mark.parametrize("number", range(3))
def test_it_9(kafka_broker_fork, number):
    tell(kafka_broker_fork, values=len(kafka_broker_fork.consume("orders")))
    kafka_broker_fork.produce("orders", "x")
    kafka_broker_fork.create_topic("mine")

@pytest.mark.momus(topics={"more": 2}, faults=[{"fault": "inject_error", "api": "Fetch", "error": "NOT_COORDINATOR"}])
def test_fault_is_never_hit(kafka_broker_fork):
    kafka_broker_fork.produce("more", "x", partition=1)

@pytest.mark.momus(brokers=3)
def test_fork_cannot_have_other_brokers(kafka_broker_fork):
    pass

def test_template_is_as_it_was(kafka_broker_template):
    tell(kafka_broker_template, values=len(kafka_broker_template.consume("orders")))
    kafka_broker_template.create_topic("mine")
"""
    )
    result = pytester.runpytest_inprocess(*ALONE)
    result.assert_outcomes(passed=5, errors=2)
    result.stdout.fnmatch_lines(["*a fork is as its template: its marker takes topics, load, faults alone*"])
    found = told()
    assert [each["values"] for each in found] == [2, 2, 2, 2]
    assert len({each["bootstrap_servers"] for each in found}) == 4
    assert len({each["cluster_id"] for each in found}) == 4


def test_fork_without_a_template_is_a_fresh_cluster(pytester, told):
    pytester.makepyfile(TELL + "def test_it(kafka_broker_fork):\n    kafka_broker_fork.create_topic('t')\n")
    pytester.runpytest_inprocess(*ALONE).assert_outcomes(passed=1)
