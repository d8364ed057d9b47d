"""A proxy before three brokers: clients, faults, the journal, nodes that come and go, kills, what it cannot do."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable

import pytest
from cluster_kit import Wire
from confluent_kafka import Consumer, KafkaError, Producer
from kafka import KafkaConsumer, KafkaProducer
from kafka.errors import KafkaError as KafkaPythonError

from momus import Broker
from momus.control import ControlError
from momus.faults import once
from protocol.messages.cluster import FindCoordinatorRequest, MetadataRequest
from protocol.messages.quorum import DescribeQuorumRequest


def wait_until(is_so: Callable[[], bool], limit_s: float = 60.0) -> None:
    """Wait until it is."""
    tick = threading.Event()
    for _ in range(int(limit_s / 0.05)):
        if is_so():
            return
        tick.wait(0.05)
    raise AssertionError("it did not become so in a minute")


def ports(broker: Broker) -> set[int]:
    return {int(address.rpartition(":")[2]) for address in broker.bootstrap_servers.split(",")}


def test_addresses_of_answers_are_those_of_the_proxy(proxy, upstream):
    wire = Wire(proxy.bootstrap_servers.split(",")[0])
    nodes = wire.call(MetadataRequest(topics=None), 12).brokers
    assert {node.port for node in nodes} == ports(proxy)
    assert ports(proxy).isdisjoint(ports(upstream))
    found = wire.call(FindCoordinatorRequest(coordinator_keys=["g"], key_type=0), 4).coordinators[0]
    assert found.port in ports(proxy)
    quorum = wire.call(DescribeQuorumRequest(topics=[]), 2)
    assert all(each.port in ports(proxy) for node in quorum.nodes for each in node.listeners)
    wire.close()


def test_librdkafka_produces_idempotently_and_consumes_as_a_group(proxy, upstream):
    proxy.create_topic("rd", 3)
    producer = Producer({"bootstrap.servers": proxy.bootstrap_servers, "enable.idempotence": True})
    failed: list[KafkaError] = []
    for number in range(500):
        producer.produce("rd", str(number), key=str(number), on_delivery=lambda error, _: failed.append(error))
    assert producer.flush(60) == 0
    assert failed == [None] * 500
    assert len(upstream.consume("rd", 500)) == 500
    settings = {"bootstrap.servers": proxy.bootstrap_servers, "group.id": "rd", "auto.offset.reset": "earliest"}
    consumer = Consumer(settings)
    consumer.subscribe(["rd"])
    found = 0
    while found < 500:
        found += len(consumer.consume(500, 5))
    consumer.commit(asynchronous=False)
    consumer.close()
    assert sum(proxy.committed("rd").values()) == 500
    assert proxy.committed("rd") == upstream.committed("rd")


def test_kafka_python_produces_and_consumes_as_a_group(proxy):
    proxy.create_topic("kp", 2)
    producer = KafkaProducer(bootstrap_servers=proxy.bootstrap_servers)
    for number in range(100):
        producer.send("kp", str(number).encode())
    producer.close()
    consumer = KafkaConsumer(
        "kp", bootstrap_servers=proxy.bootstrap_servers, group_id="kp", auto_offset_reset="earliest"
    )
    found = {next(consumer).value for _ in range(100)}
    consumer.close()
    assert len(found) == 100


def test_a_large_fetch_passes_whole(proxy, upstream):
    upstream.create_topic("large", config={"max.message.bytes": 5_000_000})
    values = [bytes([number]) * 900_000 for number in range(6)]
    for value in values:
        upstream.produce("large", value)
    consumer = KafkaConsumer(bootstrap_servers=proxy.bootstrap_servers, auto_offset_reset="earliest")
    consumer.subscribe(["large"])
    found = [next(consumer).value for _ in values]
    consumer.close()
    assert found == values


def test_an_error_of_the_proxy_never_reaches_the_cluster(proxy, upstream):
    proxy.create_topic("refused")
    fault = proxy.faults.inject_error("Produce", "NOT_LEADER_OR_FOLLOWER", topic="refused", trigger=once)
    producer = KafkaProducer(bootstrap_servers=proxy.bootstrap_servers, retries=0, enable_idempotence=False)
    with pytest.raises(KafkaPythonError):
        producer.send("refused", b"x").get(60)
    producer.send("refused", b"y").get(60)
    producer.close()
    assert (fault.calls, fault.hits) == (2, 1)
    fault.remove()
    assert [each.value for each in upstream.consume("refused")] == [b"y"]


def test_a_held_reply_belongs_to_a_request_that_took_effect_and_a_held_request_does_not(proxy, upstream):
    proxy.create_topic("held")
    producer = KafkaProducer(bootstrap_servers=proxy.bootstrap_servers)
    for when, there in (("after", 1), ("before", 1)):
        fault = proxy.faults.hold("Produce", topic="held", when=when)
        sent = producer.send("held", b"x")
        fault.wait_until_held()
        assert len(upstream.consume("held")) == there
        fault.release()
        assert sent.get(60).offset == (0 if when == "after" else 1)
        fault.remove()
    producer.close()


def test_a_fault_by_topic_meets_the_fetches_of_a_session_that_began_before_it(proxy):
    proxy.create_topic("session")
    proxy.produce("session", "a")
    consumer = KafkaConsumer(
        "session",
        bootstrap_servers=proxy.bootstrap_servers,
        auto_offset_reset="earliest",
        fetch_max_wait_ms=100,
    )
    assert next(consumer).value == b"a"
    consumer.poll(300)
    fault = proxy.faults.delay_on("Fetch", ms=1, topic="session", when="before")
    wait_until(lambda: bool(consumer.poll(100)) or fault.hits > 3)  # in the session, where it is not named
    assert fault.hits > 3
    fault.remove()
    proxy.produce("session", "b")
    assert next(consumer).value == b"b"
    consumer.close()


def test_the_journal_has_what_passed_and_no_secret(proxy):
    proxy.create_topic("kept")
    producer = KafkaProducer(bootstrap_servers=proxy.bootstrap_servers, client_id="writer")
    producer.send("kept", b"x").get(60)
    producer.close()
    (entry,) = proxy.journal.verify(api="Produce", topic="kept", client_id="writer", times=1)
    assert entry["errors"] == []


def test_what_only_a_broker_can_do_is_answered_with_a_sentence(proxy):
    calls = [proxy.clock.freeze, lambda: proxy.clock.advance(days=8), proxy.snapshot, proxy.fork, proxy.reset]
    calls += [lambda: proxy.stop_broker(1), lambda: proxy.create_cluster(seed=7), lambda: proxy.faults.slow_disk(3)]
    for call in calls:
        with pytest.raises(ControlError, match=r"this is a proxy|acts inside a broker"):
            call()
    assert proxy.control.ask("GET", "/_admin/faults") == []


def test_the_page_shows_topics_and_groups_of_the_cluster(proxy, upstream):
    proxy.create_topic("shown", 2)
    proxy.produce("shown", "a", "b", "c")
    settings = {"bootstrap.servers": proxy.bootstrap_servers, "group.id": "shown", "group.protocol": "consumer"}
    consumer = Consumer({**settings, "auto.offset.reset": "earliest"})
    consumer.subscribe(["shown"])
    found = 0
    while found < 3:
        found += len(consumer.consume(3, 5))
    consumer.commit(asynchronous=False)
    assert proxy.wait_for_group("shown", "stable", members=1) == upstream.wait_for_group("shown", "stable")
    proxy.wait_for_lag("shown", 0)
    control = proxy.control
    (topic,) = control.ask("GET", "/_admin/topics?filter=shown")["topics"]
    assert (topic["partitions"], topic["records"]) == (2, 3)
    assert [row["end"] for row in control.ask("GET", "/_admin/topics/shown")["partitions"]] == [2, 1]
    (group,) = control.ask("GET", "/_admin/groups?filter=shown")["groups"]
    assert group == {"group": "shown", "type": "consumer", "state": "Stable", "members": 1, "partitions": 2, "lag": 0}
    details = control.ask("GET", "/_admin/groups/shown/details")
    assert {(row["partition"], row["committed"]) for row in details["offsets"]} == {(0, 2), (1, 1)}
    nodes = control.ask("GET", "/_admin/overview")["nodes"]
    assert [node["up"] for node in nodes] == [True] * 3
    consumer.close()


def test_faults_of_two_proxies_of_a_process_are_apart(proxy):
    with proxy.create_cluster() as other:
        fault = other.faults.inject_error("Metadata", "COORDINATOR_LOAD_IN_PROGRESS")
        wire = Wire(proxy.bootstrap_servers.split(",")[0])
        assert wire.call(MetadataRequest(topics=[]), 13).error_code == 0
        wire.close()
        wire = Wire(other.bootstrap_servers.split(",")[0])
        assert wire.call(MetadataRequest(topics=[]), 13).error_code == 14
        wire.close()
        fault.remove()


def test_nodes_that_come_and_go_are_followed(upstream, proxy):
    addresses = proxy.bootstrap_servers.split(",")
    upstream.stop_broker(3)

    def is_closed() -> bool:
        try:
            socket.create_connection(_place(addresses[2])).close()
        except ConnectionRefusedError:
            return True
        return False

    wait_until(is_closed)
    upstream.start_broker(3)
    wait_until(lambda: not is_closed())
    wire = Wire(addresses[2])
    assert {node.port for node in wire.call(MetadataRequest(topics=[]), 12).brokers} == ports(proxy)
    wire.close()


def _place(address: str) -> tuple[str, int]:
    host, _, port = address.rpartition(":")
    return host, int(port)


def test_nothing_acknowledged_is_lost_over_kills_of_the_proxy_and_of_the_cluster():
    with Broker() as upstream, Broker(upstream=upstream.bootstrap_servers) as proxy:
        proxy.create_topic("counted")
        acknowledged: list[str] = []
        failed: list[str] = []
        producer = Producer({"bootstrap.servers": proxy.bootstrap_servers, "enable.idempotence": True, "log_level": 0})

        def delivered(error: KafkaError | None, message: object) -> None:
            value = message.value().decode()  # type: ignore[attr-defined]  # the library has no types
            (failed if error is not None else acknowledged).append(value)

        for number in range(900):
            producer.produce("counted", str(number), on_delivery=delivered)
            producer.poll(0)
            if number == 300:
                proxy.kill()
                proxy.start()
            if number == 600:
                upstream.kill()
                upstream.start()
        assert producer.flush(120) == 0
        found = [each.value.decode() for each in upstream.consume("counted", 900)]
        assert failed == []
        assert len(acknowledged) == 900
        assert found == [str(number) for number in range(900)]


def test_a_slow_or_silent_node_costs_its_clients_their_time_alone(proxy, upstream):
    upstream.create_topic("slow", 3)
    upstream.pause_broker(1)
    try:
        silent = Wire(proxy.bootstrap_servers.split(",")[0])
        silent.send(MetadataRequest(topics=[]), 12)
        wire = Wire(proxy.bootstrap_servers.split(",")[1])
        assert wire.call(MetadataRequest(topics=[]), 12).brokers
        wire.close()
    finally:
        upstream.resume_broker(1)
    assert silent.receive(MetadataRequest(topics=[]), 12).brokers
    silent.close()


def test_a_node_that_answers_slowly_costs_no_reply(proxy, upstream):
    upstream.create_topic("drips")
    values = [bytes([number]) * 60_000 for number in range(4)]
    for value in values:
        upstream.produce("drips", value)
    fault = upstream.faults.throttle(bytes_per_second=400_000, api="Fetch", topic="drips")
    consumer = KafkaConsumer("drips", bootstrap_servers=proxy.bootstrap_servers, auto_offset_reset="earliest")
    found = [next(consumer).value for _ in values]
    consumer.close()
    assert fault.hits > 0
    fault.remove()
    assert found == values
