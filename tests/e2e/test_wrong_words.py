"""What is asked for wrongly is refused with a sentence that has the right words."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest

from momus import Broker
from momus.cluster import Cluster
from momus.faults import on_call, times, with_probability

pytest_plugins = ["pytester"]


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    with Broker(journal_mb=4) as broker:
        yield broker


def test_time_is_told_with_its_unit_and_does_not_go_back(broker: Broker) -> None:
    advance: Any = broker.clock.advance
    before = broker.clock.now()
    for call, why in (
        (lambda: advance(46), r"advance\(46\): of which unit\? advance\(seconds=46\), or a timedelta"),
        (lambda: advance(seconds=-1), "advance by -1 s: a cluster's time does not go back"),
        (lambda: advance(timedelta(days=-1)), "does not go back"),
        (lambda: advance(second=1), "advance takes no unit 'second', did you mean 'seconds'.; there are weeks, days"),
    ):
        with pytest.raises(ValueError, match=why):
            call()
    assert broker.clock.now() - before < timedelta(hours=1)


def test_trigger_may_stand_beside_the_others_as_in_a_shell(broker: Broker) -> None:
    faults: Any = broker.faults
    for words, trigger in (
        ({"times": 2}, {"times": 2}),
        ({"on_call": 3}, {"on_call": 3}),
        ({"with_probability": 0.5, "seed": 7}, {"with_probability": 0.5, "seed": 7}),
        ({"trigger": times(2)}, {"times": 2}),
        ({"trigger": "once", "times": None}, "once"),
    ):
        fault = faults.hold("Fetch", **words)
        assert fault.state()["trigger"] == trigger
        fault.remove()


def test_trigger_that_is_none_is_explained(broker: Broker) -> None:
    faults: Any = broker.faults
    for words, why in (
        ({"trigger": times}, r"trigger=times is a function: call it, as trigger=times\(2\)"),
        ({"trigger": on_call}, r"trigger=on_call\(3\)"),
        ({"trigger": with_probability}, r"trigger=with_probability\(0.1\)"),
        ({"trigger": 2}, "trigger=2: a number of requests is times=2, one request is on_call=2"),
        ({"trigger": "once", "times": 2}, "give trigger='once' or times, not both"),
        ({"seed": 2}, "seed= goes with with_probability="),
    ):
        with pytest.raises(ValueError, match=why):
            faults.hold("Fetch", **words)
    assert faults.list() == []


def test_users_have_passwords(broker: Broker) -> None:
    given: Any = ["alice"]
    why = r"users=\['alice'\]: names with their passwords, as users={\"alice\": \"secret\"}"
    with pytest.raises(ValueError, match=why):
        Broker(security="sasl_ssl", users=given)
    with pytest.raises(ValueError, match=why):
        Cluster(broker.control, security="sasl_ssl", users=given)


def test_client_is_known_by_the_name_of_its_package(broker: Broker) -> None:
    assert broker.client_config("confluent-kafka") == broker.client_config("confluent")
    assert broker.client_config("kafka_python") == broker.client_config("kafka-python")
    with pytest.raises(ValueError, match="client_config knows no client 'aiokafk', did you mean 'aiokafka'"):
        broker.client_config("aiokafk")


def test_fault_that_never_acted_shows_what_came_near(broker: Broker) -> None:
    broker.faults.inject_error("Produce", "NOT_LEADER_OR_FOLLOWER", topic="order")
    broker.faults.hold("Fetch", group="none")
    _produce_with_a_client(broker)
    (first, second) = broker.faults.unmet()
    head, near = first.split("\n", 1)
    assert head.startswith("the fault fault-")
    assert "never acted (no request matched it)" in head
    assert "but for topic=order: " in near
    assert "topic=orders" in near
    assert "\n  there was: " in second
    broker.faults.clear()


def _produce_with_a_client(broker: Broker) -> None:
    from confluent_kafka import Producer

    producer = Producer(broker.client_config("confluent-kafka"))
    producer.produce("orders", b"x")
    assert producer.flush(60) == 0


def test_last_requests_name_topics_that_clients_name_by_id(broker: Broker) -> None:
    from confluent_kafka import Consumer

    broker.produce("named", "x")
    consumer = Consumer({**broker.client_config("confluent"), "group.id": "g", "auto.offset.reset": "earliest"})
    consumer.subscribe(["named"])
    while consumer.poll(1) is None:
        continue
    consumer.close()
    entries = [each for each in broker.journal.entries(api="Fetch") if each.get("topic_names")]
    assert {name for each in entries for name in each["topic_names"].values()} == {"named"}
    lines = [line for line in broker.journal.last(100).splitlines() if " Fetch v" in line]
    assert any("topic=named" in line for line in lines)


WRONG_WORDS = """
import pytest

@pytest.mark.momus(broker=3)
def test_marker(kafka_broker):
    pass

def test_maker(make_kafka_broker):
    make_kafka_broker(seeds=3)

@pytest.mark.momus(dat_dir="x")
def test_process(kafka_process_broker):
    pass

def test_sentence(kafka_broker):
    kafka_broker.wait_for_group("g", timeout=0)
"""


def test_wrong_words_of_fixtures_are_named_with_those_that_exist(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(WRONG_WORDS)
    done = pytester.runpytest_subprocess("-p", "no:cacheprovider", "-p", "no:asyncio", "-q")
    text = done.stdout.str()
    done.assert_outcomes(failed=2, errors=2)
    assert "the marker momus takes no word 'broker', did you mean 'brokers'?; there are as_version, at, brokers" in text
    assert "make_kafka_broker takes no word 'seeds', did you mean 'seed'?" in text
    assert "the marker momus takes no word 'dat_dir', did you mean 'data_dir'?" in text
    # the frames of the kit are left out: the last line of code is the test's own
    assert "momus/kit/" not in text
    assert "momus/handle.py" not in text


async def test_call_that_stopped_the_loop_says_so_and_names_its_twin(broker: Broker) -> None:
    fault = broker.faults.hold("Heartbeat")
    for call, twin in (
        (lambda: broker.wait_for_group("none", timeout=0), "broker.aio.wait_for_group"),
        (lambda: broker.wait_for_lag("none", timeout=0), "broker.aio.wait_for_lag"),
        (lambda: broker.wait_for_committed("none", {("t", 0): 1}, timeout=0), "broker.aio.wait_for_committed"),
        (lambda: broker.consume("absent", 1, timeout=0), "broker.aio.consume"),
        (lambda: fault.wait_until_held(timeout=0), "broker.aio.faults"),
    ):
        with pytest.raises(AssertionError, match=f"it stopped the event loop in which it was called.*: await .*{twin}"):
            call()
    with pytest.raises(AssertionError) as told:
        await broker.aio.wait_for_group("none", timeout=0)
    assert "event loop" not in str(told.value)
    fault.remove()
