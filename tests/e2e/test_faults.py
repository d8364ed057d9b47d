"""Faults as a test sets them, seen by an unmodified client: from Python, a file, the command line."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition
from test_control import momus

from momus import Broker
from momus.control import ControlError
from momus.faults import FaultTimeoutError, every_time, on_call, once, times, with_probability


def consumer(broker: Broker, group: str, **settings: object) -> Consumer:
    return Consumer(
        {
            "bootstrap.servers": broker.bootstrap_servers,
            "group.id": group,
            "enable.auto.commit": False,
            "log_level": 0,
            **settings,
        }
    )


def commit(broker: Broker, group: str, offset: int) -> Any:
    client = consumer(broker, group)
    try:
        return client.commit(offsets=[TopicPartition("t", 0, offset)], asynchronous=False)
    finally:
        client.close()


def committed(broker: Broker, group: str) -> int:
    client = consumer(broker, group)
    try:
        return int(client.committed([TopicPartition("t", 0)], timeout=20)[0].offset)
    finally:
        client.close()


def make_topic(broker: Broker) -> None:
    producer = Producer({"bootstrap.servers": broker.bootstrap_servers})
    producer.produce("t", b"x")
    assert producer.flush(60) == 0


@pytest.fixture(scope="module")
def module_broker():
    with Broker() as broker:
        make_topic(broker)
        yield broker


@pytest.fixture
def broker(module_broker):
    with ThreadPoolExecutor(1) as pool:
        module_broker.pool = pool
        yield module_broker
        module_broker.faults.clear()


def test_inject_error_reaches_the_client_under_its_name(broker, name):
    fault = broker.faults.inject_error("OffsetCommit", "GROUP_AUTHORIZATION_FAILED", group=name, trigger=once)
    with pytest.raises(KafkaException, match="GROUP_AUTHORIZATION_FAILED"):
        commit(broker, name, 7)
    assert committed(broker, name) < 0
    commit(broker, name, 7)
    assert committed(broker, name) == 7
    assert (fault.calls, fault.hits) == (2, 1)


def test_retriable_error_is_retried_by_the_client(broker, name):
    fault = broker.faults.inject_error("OffsetCommit", "COORDINATOR_LOAD_IN_PROGRESS", group=name, trigger=times(2))
    commit(broker, name, 7)
    assert (fault.hits, fault.calls) == (2, 3)
    assert committed(broker, name) == 7


def test_commit_held_between_append_and_reply_survives_kill_9(name):
    with Broker() as broker, ThreadPoolExecutor(1) as pool:
        make_topic(broker)
        fault = broker.faults.hold("OffsetCommit", group=name)
        committing = pool.submit(commit, broker, name, 7)
        fault.wait_until_held()
        assert not committing.done()
        broker.kill()
        broker.start()
        assert committed(broker, name) == 7
        committing.result(60)  # the client sent it again


def test_commit_held_before_its_effect_is_lost_with_the_broker_and_sent_again(name):
    with Broker() as broker, ThreadPoolExecutor(1) as pool:
        make_topic(broker)
        fault = broker.faults.hold("OffsetCommit", when="before", group=name)
        committing = pool.submit(commit, broker, name, 7)
        fault.wait_until_held()
        assert committed(broker, name) < 0
        assert fault.release() == 1
        committing.result(60)
        assert committed(broker, name) == 7


def test_delay_ends_when_the_clock_has_moved_on(broker, name):
    fault = broker.faults.delay_on("OffsetCommit", ms=600_000, group=name, trigger=once)
    committing = broker.pool.submit(commit, broker, name, 7)
    fault.wait_until_held()
    broker.clock.advance(seconds=600)
    committing.result(60)


@pytest.mark.parametrize("when", ["before", "after", "middle"])
def test_disconnect_is_survived_by_the_client(broker, name, when):
    fault = broker.faults.disconnect_on("OffsetCommit", when=when, group=name, trigger=once)
    commit(broker, name, 7)
    assert fault.hits == 1
    assert committed(broker, name) == 7


def test_full_disk_refuses_produce_until_it_is_removed(broker, name):
    fault = broker.faults.full_disk(topic=name)
    producer = Producer({"bootstrap.servers": broker.bootstrap_servers, "log_level": 0, "message.timeout.ms": 60_000})
    reports: list[Any] = []
    producer.produce(name, b"x", on_delivery=lambda error, message: reports.append(error))
    producer.poll(0)
    fault.wait_until_hit()
    fault.remove()
    producer.flush(60)
    assert reports == [None]


def test_blackholed_client_gets_no_answer_while_others_do(broker, name):
    broker.faults.blackhole_client(f"{name}-*")
    lost = Producer({"bootstrap.servers": broker.bootstrap_servers, "client.id": f"{name}-1", "log_level": 0})
    with pytest.raises(KafkaException):
        lost.list_topics(timeout=0.5)
    other = Producer({"bootstrap.servers": broker.bootstrap_servers, "client.id": "other"})
    assert other.list_topics(timeout=20).topics


def test_wait_that_is_not_met_says_what_was(broker):
    fault = broker.faults.hold("EndTxn", name="never")
    with pytest.raises(FaultTimeoutError, match=r"never \(hold\).*held=1 within 0.* calls=0"):
        fault.wait_until_held(timeout=0.01)
    assert next(iter(broker.faults.unmet())).startswith("the fault never never acted (no request matched it)")


def test_faults_that_never_acted_are_listed_alone(broker):
    broker.faults.hold("EndTxn", name="unmet")
    met = broker.faults.delay_on("Metadata", ms=0, name="met")
    Producer({"bootstrap.servers": broker.bootstrap_servers}).list_topics(timeout=60)
    met.wait_until_hit(timeout=60)
    assert [each["name"] for each in broker.control.ask("GET", "/_admin/faults?unmet=true")] == ["unmet"]
    assert {each["name"] for each in broker.control.ask("GET", "/_admin/faults?unmet=false")} == {"unmet", "met"}
    with pytest.raises(ControlError, match='"unmet" is true or false, not 1'):
        broker.control.ask("GET", "/_admin/faults?unmet=1")


def test_fault_that_cannot_be_set_says_why(broker):
    with pytest.raises(ControlError, match="did you mean OffsetCommit"):
        broker.faults.hold("OfsetCommit")
    with pytest.raises(ControlError, match='"api" is an empty list: name one, or leave it out for all'):
        broker.faults.inject_error([], "NOT_COORDINATOR")  # it was for all
    with pytest.raises(ControlError, match="no such fault: nobody"):
        broker.control.ask("DELETE", "/_admin/faults/nobody")


def test_trigger_words_of_python_are_those_of_the_list(broker):
    broker.faults.hold("Fetch", trigger=on_call(3), topic="none", name="a")
    (shown,) = broker.faults.list()
    assert shown["trigger"] == {"on_call": 3}
    assert shown["api"] == ["Fetch"]


def test_commands_set_list_release_and_remove(broker, name):
    control = ("--control", broker.control.address)
    words = ("api=OffsetCommit", f"group={name}", "trigger=once", "name=held")
    assert momus("fault", "set", "hold", *words, *control).stdout == "held\n"
    committing = broker.pool.submit(commit, broker, name, 7)
    (listed,) = json.loads(momus("fault", "list", "--json", *control).stdout)
    assert listed["name"] == "held"
    broker.faults.add(fault="hold", api="EndTxn", name="other")
    broker.control.ask("POST", "/_admin/faults/held/wait", {"held": 1, "timeout_ms": 20_000})
    assert "held  hold" in momus("fault", "list", *control).stdout
    assert momus("fault", "release", "held", *control).stdout == "released 1\n"
    committing.result(60)
    assert momus("fault", "remove", "held", *control).stdout == "removed held\n"
    assert momus("fault", "clear", *control).returncode == 0
    assert broker.faults.list() == []
    refused = momus("fault", "set", "hold", "topik=t", *control)
    assert (refused.returncode, "did you mean topic" in refused.stderr) == (1, True)
    assert momus("fault", "set", "delay_on", "ms=soon", *control).returncode == 2


def test_file_of_faults_acts_from_the_start(tmp_path, serve_with):
    file = tmp_path / "faults.json"
    wanted = {"fault": "inject_error", "api": ["OffsetCommit"], "error": "NOT_COORDINATOR", "trigger": "once"}
    file.write_text(json.dumps([wanted]))
    address = serve_with("--control", "127.0.0.1:0", "--faults", str(file))
    (found,) = json.loads(momus("fault", "list", "--json", "--control", address).stdout)
    assert wanted.items() <= found.items()
    found = momus("fault", "load", str(file), "--control", address)
    assert found.stdout == "fault-2\n"


@pytest.mark.parametrize(
    ("text", "says"), [("{", "not JSON"), ("{}", "not a list"), ('[{"fault": "hld"}]', "did you mean hold")]
)
def test_file_of_faults_that_is_wrong_ends_the_start(tmp_path, text, says):
    file = tmp_path / "faults.json"
    file.write_text(text)
    done = momus("serve", "--listen", "127.0.0.1:0", "-d", str(tmp_path / "d"), "--faults", str(file))
    assert done.returncode == 2
    assert says in done.stderr


def test_every_method_sets_the_fault_of_its_name(broker):
    faults = broker.faults
    made = [
        faults.throttle(1000, client_id="none"),
        faults.corrupt_reply("Fetch", at=3, client_id="none"),
        faults.deliver_twice("Produce", client_id="none"),
        faults.slow_disk(5, topic="none"),
        faults.fail_write(topic="none", trigger=with_probability(0.5, seed=7)),
        faults.fail_fsync(topic="none", trigger=every_time),
    ]
    shown = {each["name"]: each for each in faults.list()}
    kinds = [shown[each.name]["fault"] for each in made]
    assert kinds == ["throttle", "corrupt_reply", "deliver_twice", "slow_disk", "fail_write", "fail_fsync"]
    assert shown[made[4].name]["trigger"] == {"with_probability": 0.5, "seed": 7}
    made[0].remove()
    assert len(faults.list()) == 5
