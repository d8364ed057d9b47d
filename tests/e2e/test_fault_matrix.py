"""Every fault in every family of requests at every flush level, met by an unmodified client (librdkafka)."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack, suppress
from typing import Any

import pytest
from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic
from fault_cells import FAMILIES, FLUSHES, PAGE, cells, page

from momus import Broker

pytestmark = pytest.mark.timeout(120)
LIMIT_S = 60
REFUSALS = {
    "produce": "TOPIC_AUTHORIZATION_FAILED",
    "fetch": "TOPIC_AUTHORIZATION_FAILED",
    "commit": "GROUP_AUTHORIZATION_FAILED",
    "committed": "GROUP_AUTHORIZATION_FAILED",
    "join": "GROUP_AUTHORIZATION_FAILED",
    "transaction": "TRANSACTIONAL_ID_AUTHORIZATION_FAILED",
    "metadata": "TOPIC_AUTHORIZATION_FAILED",
    "create topic": "POLICY_VIOLATION",
}
ASK_AGAIN = ("fetch", "metadata")  # what clients ask again when they are refused
GIVES_UP = ("create topic", "metadata")  # what they may not try again when the connection is closed, or a write failed


@pytest.fixture(scope="module")
def clusters() -> Iterator[dict[str, Any]]:
    with ExitStack() as ends:
        config = {"group.initial.rebalance.delay.ms": 0}
        broker = ends.enter_context(Broker(config=config))
        yield {flush: ends.enter_context(broker.create_cluster(flush=flush)) for flush in FLUSHES}


class Log(logging.Handler):
    """What a client logs."""

    def __init__(self) -> None:
        super().__init__()
        self.lines: list[str] = []
        self.logger = logging.Logger("client")
        self.logger.addHandler(self)

    def emit(self, record: logging.LogRecord) -> None:
        self.lines.append(record.getMessage())


class Client:
    """One client of a cell, and what it does in each family."""

    def __init__(self, cluster: Any, name: str) -> None:
        self.cluster = cluster
        self.name = name
        self.log = Log()
        self.records: list[bytes] = []

    def settings(self, **more: object) -> dict[str, object]:
        return {
            "bootstrap.servers": self.cluster.bootstrap_servers,
            "client.id": self.name,
            "reconnect.backoff.ms": 1,
            "reconnect.backoff.max.ms": 50,
            "retry.backoff.ms": 10,
            "topic.metadata.refresh.interval.ms": -1,
            **more,
        }

    def consumer(self, **more: object) -> Consumer:
        settings = self.settings(**{"group.id": self.name, "enable.auto.commit": False, **more})
        return Consumer(settings, logger=self.log.logger)

    def produce(self) -> None:
        producer = Producer(self.settings(), logger=self.log.logger)
        errors: list[Any] = []
        producer.produce(self.name, b"x", on_delivery=lambda error, message: errors.append(error))
        assert producer.flush(LIMIT_S) == 0
        if errors[0] is not None:
            raise KafkaException(errors[0])

    def fetch(self) -> None:
        consumer = self.consumer(**{"auto.offset.reset": "earliest"})
        consumer.assign([TopicPartition(self.name, 0, 0)])
        try:
            message = None
            while message is None:
                message = consumer.poll(1)
            if message.error():
                raise KafkaException(message.error())
        finally:
            consumer.close()

    def commit(self) -> None:
        consumer = self.consumer()
        try:
            consumer.commit(offsets=[TopicPartition(self.name, 0, 1)], asynchronous=False)
        finally:
            consumer.close()

    def committed(self) -> None:
        consumer = self.consumer()
        try:
            found = consumer.committed([TopicPartition(self.name, 0)], timeout=LIMIT_S)
            if found[0].error:
                raise KafkaException(found[0].error)
        finally:
            consumer.close()

    def join(self) -> None:
        consumer = self.consumer()
        consumer.subscribe([self.name])
        try:
            while not consumer.assignment():
                message = consumer.poll(0.1)
                if message is not None and message.error():
                    raise KafkaException(message.error())
        finally:
            consumer.close()

    def transaction(self) -> None:
        settings = self.settings(**{"transactional.id": self.name, "transaction.timeout.ms": 900_000})
        producer = Producer(settings, logger=self.log.logger)
        producer.init_transactions(LIMIT_S)
        producer.begin_transaction()
        producer.produce(self.name, b"x")
        producer.commit_transaction(LIMIT_S)

    def metadata(self) -> None:
        found = AdminClient(self.settings(), logger=self.log.logger).list_topics(self.name, LIMIT_S)
        error = found.topics[self.name].error
        if error is not None:
            raise KafkaException(error)

    def create_topic(self) -> None:
        client = AdminClient(self.settings(), logger=self.log.logger)
        made = client.create_topics([NewTopic(f"{self.name}-new", 1)], request_timeout=LIMIT_S)
        made[f"{self.name}-new"].result(LIMIT_S)


@pytest.fixture
def client(clusters, name, request) -> Iterator[Client]:
    cluster = clusters[request.getfixturevalue("flush")]
    name = f"c{abs(hash(name)) % 10**12}"
    cluster.create_topic(name)
    cluster.produce(name, "first")
    yield Client(cluster, name)
    cluster.faults.clear()


def set_fault(client: Client, fault: str, family: str) -> Any:
    kind, _, when = fault.partition(" ")
    words: dict[str, Any] = {"api": FAMILIES[family], "client_id": client.name, "trigger": "once"}
    if when:
        words["when"] = when
    match kind:
        case "inject_error":
            words["error"] = REFUSALS[family]
        case "delay_on":
            words["ms"] = 600_000
        case "throttle":
            words["bytes_per_second"] = 1
        case "corrupt_reply":
            words["at"] = {"transaction": 4, "create topic": 8}.get(family, 0)  # the time of throttling is ignored
        case "blackhole_client":
            words.pop("trigger")
        case "slow_disk" | "full_disk" | "fail_write" | "fail_fsync":
            words = {"ms": 20} if kind == "slow_disk" else {}
    return client.cluster.faults.add(fault=kind, **words)


def check(fault: Any, kind: str, when: str, family: str, client: Client, doing: Future[None]) -> None:
    """What the client sees of the fault, and that it goes on when the fault has ended."""
    if kind == "inject_error" and family not in ASK_AGAIN:
        with pytest.raises(KafkaException, match=REFUSALS[family]):
            doing.result(LIMIT_S)
    elif kind in ("delay_on", "throttle", "hold"):
        fault.wait_until_held(timeout=LIMIT_S)
        assert not doing.done()
        if kind == "hold":
            assert fault.release() == 1
        else:
            client.cluster.clock.advance(seconds=600)
        doing.result(LIMIT_S)
    elif kind in ("disconnect_on", "corrupt_reply", "inject_error"):
        error = doing.exception(LIMIT_S)
        assert error is None or isinstance(error, KafkaException)
        assert fault.hits == 1
        assert error is not None or fault.calls > 1, "the client has noticed nothing"
    elif kind in ("blackhole_client", "full_disk", "fail_write", "fail_fsync"):
        fault.wait_until_hit(timeout=LIMIT_S)
        assert not doing.done() or kind != "blackhole_client"
        fault.remove()
        if family in GIVES_UP:
            with suppress(KafkaException):
                doing.result(LIMIT_S)
            if family == "metadata":
                client.metadata()
        else:
            doing.result(LIMIT_S)
    else:
        if (kind, family) == ("deliver_twice", "create topic"):
            with pytest.raises(KafkaException, match="TOPIC_ALREADY_EXISTS"):
                doing.result(LIMIT_S)
        else:
            doing.result(LIMIT_S)
        assert fault.hits >= 1
        if kind == "deliver_twice" and family == "produce":
            assert [each.value for each in client.cluster.consume(client.name)] == [b"first", b"x", b"x"]


@pytest.mark.slow
@pytest.mark.parametrize(("fault", "family", "flush"), cells())
def test_fault(client: Client, fault: str, family: str, flush: str) -> None:
    kind, _, when = fault.partition(" ")
    act: Callable[[], None] = getattr(client, family.replace(" ", "_"))
    with ThreadPoolExecutor(1) as pool:
        made = set_fault(client, fault, family)
        check(made, kind, when, family, client, pool.submit(act))


def test_table_in_the_docs_is_that_of_the_tested_cells():
    text = PAGE.read_text(encoding="utf-8")
    assert text == page(text), "run python tests/e2e/fault_cells.py"
