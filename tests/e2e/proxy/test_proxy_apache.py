"""A proxy before Apache Kafka, one node of each release and three nodes that are killed: `make test-proxy`."""

from __future__ import annotations

import shutil
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from apache_kafka import apache_kafka
from confluent_kafka import Consumer, ElectionType, KafkaError, Producer
from confluent_kafka.admin import AdminClient, NewTopic
from kafka import KafkaConsumer, KafkaProducer
from kafka_jars import fetch_jars
from kafka_trio import Trio, wait_for_nodes

from benchmarks.peers import running
from momus import Broker

sys.path.insert(0, str(Path(__file__).parents[1] / "exactly_once"))
from copy_run import PROMPT, copy, python_client  # of the folder beside

pytestmark = [pytest.mark.java, pytest.mark.proxy]
KFAKE = "kfake"  # franz-go's, of benchmarks/kfake
CLUSTERS = ("", "4.3.1", "3.9.1", KFAKE)  # releases of Apache Kafka; "": the one in tests/e2e/java/pom.xml
LIMIT_S = 240
# it is not back in sync, or leads already
NOT_YET = (
    KafkaError.PREFERRED_LEADER_NOT_AVAILABLE,
    KafkaError.ELECTION_NOT_NEEDED,
    KafkaError.ELIGIBLE_LEADERS_NOT_AVAILABLE,
)


@pytest.fixture(params=CLUSTERS, ids=lambda release: release or "current")
def before_one(request: pytest.FixtureRequest, kafka_libs: str, tmp_path: Path) -> Iterator[Broker]:
    """A proxy before one node."""
    if request.param == KFAKE:
        if shutil.which("go") is None:
            pytest.skip("go is not installed")
        with running(KFAKE) as peer, Broker(upstream=peer.address, journal_mb=4) as broker:
            yield broker
        return
    libs = f"{fetch_jars('current', request.param)}/*" if request.param else kafka_libs
    more = "group.initial.rebalance.delay.ms=0\n"
    with apache_kafka(libs, tmp_path, more) as address:
        answers(address)
        with Broker(upstream=address, journal_mb=4) as broker:
            yield broker


def test_clients_work_as_without_it(before_one):
    broker = before_one
    admin = AdminClient({"bootstrap.servers": broker.bootstrap_servers})
    admin.create_topics([NewTopic("orders", 3)])["orders"].result(LIMIT_S)
    producer = Producer({"bootstrap.servers": broker.bootstrap_servers, "enable.idempotence": True})
    failed: list[object] = []
    for number in range(1000):
        producer.produce("orders", str(number), key=str(number), on_delivery=lambda error, _: failed.append(error))
    assert producer.flush(LIMIT_S) == 0
    assert failed == [None] * 1000
    settings = {"bootstrap.servers": broker.bootstrap_servers, "group.id": "rd", "auto.offset.reset": "earliest"}
    consumer = Consumer(settings)
    consumer.subscribe(["orders"])
    found: set[bytes] = set()
    while len(found) < 1000:
        found |= {message.value() for message in consumer.consume(500, 5) if message.error() is None}
    consumer.commit(asynchronous=False)
    consumer.close()
    assert sum(broker.committed("rd").values()) == 1000
    python = KafkaProducer(bootstrap_servers=broker.bootstrap_servers)
    for _ in range(100):
        python.send("orders", b"x" * 10_000)
    python.close()
    reader = KafkaConsumer(
        "orders", bootstrap_servers=broker.bootstrap_servers, group_id="kp", auto_offset_reset="earliest"
    )
    assert len([next(reader) for _ in range(1100)]) == 1100
    reader.close()
    broker.journal.verify(api="OffsetCommit", group="rd")


def test_faults_meet_its_clients_and_errors_do_not_reach_it(before_one):
    broker = before_one
    broker.create_topic("orders")
    fault = broker.faults.inject_error("Produce", "NOT_LEADER_OR_FOLLOWER", topic="orders", trigger="once")
    hold = broker.faults.hold("Produce", topic="orders")
    producer = KafkaProducer(bootstrap_servers=broker.bootstrap_servers)
    sent = producer.send("orders", b"x")
    hold.wait_until_held(timeout=60)
    assert fault.hits == 1
    assert [each.value for each in broker.consume("orders", 1)] == [b"x"]
    hold.release()
    assert sent.get(60).offset == 0
    producer.close()


def test_the_exactly_once_copier_copies_over_kills_of_the_proxy(kafka_libs, tmp_path):
    settings = "".join(f"{key}={value}\n" for key, value in PROMPT.items())
    with apache_kafka(kafka_libs, tmp_path, settings) as address:
        answers(address)
        figures = copy(
            python_client("confluent"),
            protocol="classic",
            records=3000,
            kills=1,
            broker_kills=3,
            seed=5,
            zombies=1,
            upstream=address,
        )
    assert figures.broker_killed == 3


class Copy:
    """Records that a producer writes through a proxy to a topic of three partitions, and those acknowledged."""

    def __init__(self, servers: str, topic: str) -> None:
        self._servers, self._topic = servers, topic
        self.admin = AdminClient({"bootstrap.servers": servers, "log_level": 0})
        wait_for_nodes(self.admin, 3)
        made = NewTopic(topic, 3, 3, config={"min.insync.replicas": "2"})
        self.admin.create_topics([made])[topic].result(LIMIT_S)
        self.acknowledged: list[str] = []
        self._failed: list[object] = []
        settings = {"bootstrap.servers": servers, "enable.idempotence": True, "socket.timeout.ms": 15_000}
        self._producer = Producer({**settings, "log_level": 0})

    def _delivered(self, error: KafkaError | None, message: object) -> None:
        value = message.value().decode()  # type: ignore[attr-defined]  # the library has no types
        if error is None:
            self.acknowledged.append(value)
        else:
            self._failed.append((value, error))

    def write(self, *values: str) -> None:
        """Write records, and wait until all that were written are acknowledged."""
        for value in values:
            self._producer.produce(self._topic, value, key=value, on_delivery=self._delivered)
            self._producer.poll(0)
        assert self._producer.flush(LIMIT_S) == 0
        assert self._failed == []

    def leaders(self) -> list[int]:
        """Who leads each partition."""
        partitions = self.admin.list_topics(self._topic, timeout=LIMIT_S).topics[self._topic].partitions
        return [partitions[index].leader for index in range(3)]

    def lead_again(self, preferred: list[int]) -> bool:
        """Let the preferred nodes lead, once they have caught up. Returns whether they did not."""
        tick = threading.Event()
        for number in range(LIMIT_S * 4):
            if self.leaders() == preferred:
                return number > 0
            for refused in self.admin.elect_leaders(ElectionType.PREFERRED, None).result(LIMIT_S).values():
                assert refused is None or refused.code() in NOT_YET
            tick.wait(0.25)
        raise AssertionError(f"{self.leaders()} lead, not {preferred}")

    def check(self) -> None:
        """What was acknowledged is there, once."""
        settings = {"bootstrap.servers": self._servers, "group.id": self._topic, "auto.offset.reset": "earliest"}
        consumer = Consumer(settings)
        consumer.subscribe([self._topic])
        found: list[str] = []
        while len(found) < len(self.acknowledged):
            found += [each.value().decode() for each in consumer.consume(500, 5) if each.error() is None]
        consumer.close()
        assert sorted(found) == sorted(self.acknowledged)


@pytest.fixture(scope="module")
def trio(kafka_libs: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Trio]:
    """Three nodes, all of which run."""
    trio = Trio(kafka_libs, tmp_path_factory.mktemp("trio"))
    try:
        trio.start_all()
        answers(trio.servers)
        yield trio
    finally:
        trio.close()


def numbered(begin: int) -> list[str]:
    return [str(number) for number in range(begin, begin + 1000)]


def test_nothing_acknowledged_is_lost_while_nodes_are_killed_and_leaders_move(trio):
    with Broker(upstream=trio.servers) as proxy:
        copied = Copy(proxy.bootstrap_servers, "killed")
        preferred, moved = copied.leaders(), 0
        for node in (1, 2, 3):
            copied.write(*numbered(1000 * node))
            trio.kill(node)
            wait_for_nodes(copied.admin, 2)
            copied.write(f"without {node}")
            trio.start(node)
            wait_for_nodes(copied.admin, 3)
            moved += copied.lead_again(preferred)
            copied.write(f"with {node}")
        copied.check()
    assert moved
    assert len(copied.acknowledged) == 3006


def test_nothing_acknowledged_is_lost_while_a_node_falls_silent(trio):
    with Broker(upstream=trio.servers) as proxy:
        copied = Copy(proxy.bootstrap_servers, "silent")
        copied.write(*numbered(0))
        node = copied.leaders()[0]
        trio.pause(node)
        try:
            copied.write(*numbered(1000))  # the connections to it are open, and say nothing, until others lead
            assert node not in copied.leaders()
        finally:
            trio.resume(node)
        copied.write(*numbered(2000))
        copied.check()
    assert len(copied.acknowledged) == 3000


def answers(servers: str) -> None:
    """Wait until a cluster answers."""
    admin = AdminClient({"bootstrap.servers": servers, "log_level": 0})
    assert admin.list_topics(timeout=LIMIT_S).brokers
