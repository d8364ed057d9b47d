"""Arranging and looking without a client: topics, records, groups, committed offsets, and the twins to await."""

from __future__ import annotations

import asyncio
import threading
from datetime import UTC, datetime, timedelta

import pytest
from clientwork import until
from confluent_kafka import Consumer, Producer, TopicPartition

from momus import Broker
from momus.cluster import Cluster, ClusterError
from momus.control import ControlError
from momus.handle import WaitTimeoutError

AT = datetime(2030, 1, 1, tzinfo=UTC)


@pytest.fixture(scope="module")
def process():
    with Broker(seed=5) as broker:
        yield broker
        assert broker.stop() == 0


@pytest.fixture
def cluster(process):
    with process.create_cluster(brokers=3, config={"group.min.session.timeout.ms": 1000}) as cluster:
        yield cluster
    assert cluster.log == ""


def consumer_of(cluster: Cluster, group: str, **settings: object) -> Consumer:
    return Consumer(
        {
            **cluster.client_config("confluent"),
            "group.id": group,
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
            **settings,
        }
    )


def test_records_that_are_produced_are_those_a_client_reads_and_the_other_way_round(cluster):
    cluster.create_topic("t", partitions=3, config={"retention.ms": 1000000, "message.timestamp.type": "CreateTime"})
    headers = [("h", b"\xff"), ("n", None), ("s", "text")]
    assert cluster.produce("t", "a", b"\x00\xff", None, key=b"\xfe", partition=2, headers=headers) == [0, 1, 2]
    assert cluster.produce("t", "d", partition=2, timestamp_ms=5) == [3]
    producer = Producer(cluster.client_config("confluent"))
    producer.produce("t", b"\xf0", key=b"k", partition=1, headers=[("x", b"y")], timestamp=1_700_000_000_123)
    producer.flush(60)
    consumer = consumer_of(cluster, "g")
    consumer.assign([TopicPartition("t", 2, 0)])
    seen: list[object] = []
    until(lambda: seen.extend(consumer.consume(10, 0.2)) or len(seen) == 4, "all records are read")
    consumer.close()
    assert [m.value() for m in seen] == [b"a", b"\x00\xff", None, b"d"]
    assert seen[0].key() == b"\xfe"
    assert seen[0].headers() == [("h", b"\xff"), ("n", None), ("s", b"text")]
    assert seen[3].timestamp()[1] == 5
    records = cluster.consume("t", 5)
    assert [(r.topic, r.partition, r.offset, r.value) for r in records] == [
        ("t", 1, 0, b"\xf0"),
        ("t", 2, 0, b"a"),
        ("t", 2, 1, b"\x00\xff"),
        ("t", 2, 2, None),
        ("t", 2, 3, b"d"),
    ]
    assert records[0][3:] == (1_700_000_000_123, b"k", b"\xf0", [("x", b"y")])
    assert [r.value for r in cluster.consume("t", partition=2, offset=3)] == [b"d"]


def test_records_of_an_aborted_transaction_are_left_out_where_that_is_wanted(cluster):
    cluster.create_topic("t")
    for number, end in enumerate(("commit_transaction", "abort_transaction", "commit_transaction")):
        producer = Producer({**cluster.client_config("confluent"), "transactional.id": "id"})
        producer.init_transactions(60)
        producer.begin_transaction()
        producer.produce("t", f"{number}".encode())
        producer.flush(60)
        getattr(producer, end)(60)
    until(lambda: len(cluster.consume("t", isolation="committed")) == 2, "the last marker is written")
    assert [r.value for r in cluster.consume("t", isolation="committed")] == [b"0", b"2"]
    assert [r.value for r in cluster.consume("t")] == [b"0", b"1", b"2"]


def test_consume_waits_for_records_that_come_later_and_no_longer_than_it_is_told(cluster):
    cluster.create_topic("t")
    with pytest.raises(WaitTimeoutError, match="0 records after 0"):
        cluster.consume("t", 1, timeout=0)
    timer = threading.Timer(0.1, lambda: cluster.produce("t", "late"))
    timer.start()
    assert [r.value for r in cluster.consume("t", 1, timeout=60)] == [b"late"]
    timer.join()
    assert cluster.consume("nowhere") == []


def test_what_cannot_be_done_is_refused_in_kafkas_words(cluster):
    cluster.create_topic("t")
    for call, why in (
        (lambda: cluster.create_topic("t"), "TOPIC_ALREADY_EXISTS"),
        (lambda: cluster.create_topic("a b"), "INVALID_TOPIC_EXCEPTION"),
        (lambda: cluster.create_topic("u", config={"retention.ms": "long"}), "INVALID_CONFIG"),
        (lambda: cluster.produce("t", "x", partition=7), "no partition 7"),
        (lambda: cluster.produce("t", "x" * 2_000_000), "RECORD_TOO_LARGE|MESSAGE_TOO_LARGE"),
        (lambda: cluster.wait_for_group("g", "happy"), '"state" takes one of'),
        (lambda: cluster.consume("t", isolation="none"), "isolation"),
    ):
        with pytest.raises(ControlError, match=why):
            call()


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_group_is_waited_for_and_its_offsets_are_told(cluster, protocol):
    cluster.create_topic("t", partitions=2)
    cluster.produce("t", "a", "b", partition=1)
    cluster.wait_for_group("g", "dead", members=0, timeout=0)
    consumer = consumer_of(cluster, "g", **{"group.protocol": protocol})
    consumer.subscribe(["t"])
    seen: list[object] = []
    until(lambda: seen.extend(consumer.consume(2, 0.2)) or len(seen) == 2, "the records are read")
    (member,) = cluster.wait_for_group("g", members=1)
    assert member == consumer.memberid()
    with pytest.raises(WaitTimeoutError, match="stable with 1 members after 0 s, not stable with 2 members"):
        cluster.wait_for_group("g", members=2, timeout=0)
    consumer.commit(seen[-1], asynchronous=False)
    assert cluster.committed("g") == {("t", 1): 2}
    consumer.close()
    assert cluster.wait_for_group("g", "empty", timeout=60) == []
    assert cluster.committed("nobody") == {}


def test_session_of_45_seconds_ends_when_the_clock_is_moved(cluster):
    cluster.create_topic("t")
    consumer = consumer_of(cluster, "g", **{"group.instance.id": "one", "session.timeout.ms": 45_000})
    consumer.subscribe(["t"])
    until(lambda: consumer.poll(0.1) or consumer.assignment(), "it has joined")
    consumer.close()  # a static member does not leave
    cluster.wait_for_group("g", members=1, timeout=0)
    cluster.clock.freeze()
    cluster.clock.advance(seconds=44)
    cluster.wait_for_group("g", members=1, timeout=0)
    cluster.clock.advance(seconds=46)
    cluster.wait_for_group("g", "empty", members=0, timeout=0)


async def test_twins_are_awaited_and_leave_the_loop_free(process):
    cluster = process.create_cluster(at=AT)
    twin = cluster.aio
    await twin.create_topic("t")
    assert await twin.clock.now() == AT
    await twin.clock.advance(hours=1)
    assert cluster.clock.now() == AT + timedelta(hours=1)
    waits = asyncio.create_task(twin.consume("t", 1, timeout=60))
    await asyncio.sleep(0)
    assert await twin.produce("t", b"x") == [0]
    assert [r.value for r in await waits] == [b"x"]
    assert twin.name == cluster.name
    fault = await twin.faults.inject_error("Heartbeat", "NOT_COORDINATOR")
    assert await twin.faults.list() == [fault.state()]
    await twin.close()
    with pytest.raises(ControlError, match="no such cluster"):
        cluster.produce("t", "x")


def test_calls_of_the_test_meet_no_fault_and_are_no_connections(cluster):
    cluster.create_topic("t")
    fault = cluster.faults.inject_error(["Produce", "Fetch", "Metadata"], "NOT_LEADER_OR_FOLLOWER")
    assert cluster.produce("t", "x") == [0]
    assert [r.value for r in cluster.consume("t", 1)] == [b"x"]
    assert fault.calls == 0
    assert cluster.control.ask("GET", cluster.control.prefix)["connections"] == 0


def test_waits_end_when_their_cluster_is_reset(cluster):
    cluster.create_topic("t")
    errors: list[Exception] = []

    def wait(call, *arguments):
        try:
            call(*arguments, timeout=60)
        except ControlError as error:
            errors.append(error)

    threads = [
        threading.Thread(target=wait, args=arguments)
        for arguments in ((cluster.consume, "t", 1), (cluster.wait_for_group, "g"))
    ]
    for thread in threads:
        thread.start()
    until(lambda: cluster.control.ask("GET", cluster.control.prefix)["waits"] == 2, "both wait in the broker")
    cluster.reset()
    for thread in threads:
        thread.join(60)
    assert [str(error) for error in errors] == ["the cluster was reset"] * 2


def test_cluster_refuses_what_would_end_its_neighbours(cluster, process):
    for call in (cluster.kill, cluster.stop, cluster.start, cluster.restart):
        with pytest.raises(ClusterError, match="kafka_process_broker"):
            call()
    assert process.running


def test_handle_of_a_process_does_the_same_for_its_first_cluster():
    with Broker(seed=3, brokers=2) as broker:
        first = broker.control.ask("GET", "/_admin/clusters/default")
        assert first["seed"] == 3
        broker.create_topic("t", 2)
        assert broker.produce("t", "x", partition=1) == [0]
        broker.reset()
        assert broker.consume("t") == []
        assert broker.control.ask("GET", "/_admin/clusters/default")["cluster_id"] == first["cluster_id"]
        assert broker.committed("g") == {}
