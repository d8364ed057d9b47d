"""Transactions of real clients against a real process that is killed -9 at moments nobody chose."""

from __future__ import annotations

import threading
import time

import pytest
from confluent_kafka import Consumer, ConsumerGroupTopicPartitions, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

PARTITIONS = 3
LIMIT_S = 120
PROMPT = {
    "reconnect.backoff.ms": 20,
    "reconnect.backoff.max.ms": 200,
    "retry.backoff.ms": 20,
    "log_level": 0,
    # librdkafka 2.16 may give up the broker for good when it bootstraps anew
    "metadata.recovery.strategy": "none",
}


class Writer(threading.Thread):
    """Transaction after transaction: its number to each partition, and as an offset of its group."""

    def __init__(self, broker, name: str) -> None:
        super().__init__(daemon=True)
        self.broker = broker
        self.name = name
        self.number = 0
        self.acknowledged: list[int] = []
        self.stopping = threading.Event()
        self.failure: BaseException | None = None

    def run(self) -> None:
        try:
            while not self.stopping.is_set():
                self._as_one_producer()
        except BaseException as failure:
            self.failure = failure

    def _as_one_producer(self) -> None:
        """Until it is told to stop, or has failed for good."""
        producer = Producer(
            {"bootstrap.servers": self.broker.bootstrap_servers, "transactional.id": self.name, "linger.ms": 0} | PROMPT
        )
        group = Consumer({"bootstrap.servers": self.broker.bootstrap_servers, "group.id": self.name} | PROMPT)
        try:
            producer.init_transactions(LIMIT_S)
            while not self.stopping.is_set():
                self._transaction(producer, group.consumer_group_metadata())
        except KafkaException as failure:
            error = failure.args[0]
            assert error.fatal() or error.retriable(), error
        finally:
            group.close()

    def _transaction(self, producer: Producer, group) -> None:
        self.number += 1
        producer.begin_transaction()
        try:
            for partition in range(PARTITIONS):
                producer.produce("t", f"{self.name}:{self.number}".encode(), partition=partition)
            producer.send_offsets_to_transaction([TopicPartition("t", 0, self.number)], group, LIMIT_S)
            self._commit(producer)
        except KafkaException as failure:
            if not failure.args[0].txn_requires_abort():
                raise
            producer.abort_transaction(LIMIT_S)
        else:
            self.acknowledged.append(self.number)

    def _commit(self, producer: Producer) -> None:
        for _ in range(5):
            try:
                producer.commit_transaction(LIMIT_S)
                return
            except KafkaException as failure:
                if not failure.args[0].retriable():
                    raise


def read_all(broker, isolation: str) -> list[list[str]]:
    """The values of each partition, up to the end there is now."""
    consumer = Consumer(
        {"bootstrap.servers": broker.bootstrap_servers, "group.id": "reader", "isolation.level": isolation} | PROMPT
    )
    found: list[list[str]] = [[] for _ in range(PARTITIONS)]
    try:
        ends = [consumer.get_watermark_offsets(TopicPartition("t", p), LIMIT_S)[1] for p in range(PARTITIONS)]
        consumer.assign([TopicPartition("t", partition, 0) for partition in range(PARTITIONS)])
        end_s = time.monotonic() + LIMIT_S
        while any(
            position.offset < ends[position.partition] for position in consumer.position(consumer.assignment())
        ) and any(ends):
            assert time.monotonic() < end_s, "a transaction hangs: its readers do not come to the end"
            message = consumer.poll(0.2)
            if message is not None and message.error() is None:
                found[message.partition()].append(message.value().decode())
    finally:
        consumer.close()
    return found


@pytest.mark.parametrize("flush", ["os", "fsync"])
def test_transactions_are_whole_after_kill_9(broker_factory, crash_rounds, flush):
    broker = broker_factory(flush=flush, config={"group.initial.rebalance.delay.ms": 0})
    admin = AdminClient({"bootstrap.servers": broker.bootstrap_servers, "log_level": 0})
    admin.create_topics([NewTopic("t", PARTITIONS, 1)])["t"].result(LIMIT_S)
    writers = [Writer(broker, f"w{number}") for number in range(2)]
    for writer in writers:
        writer.start()
    for round_ in range(crash_rounds):
        wave = round_ % 20  # moments differ, and no round is much longer than the others
        goals = [len(writer.acknowledged) + 5 + wave for writer in writers]
        end_s = time.monotonic() + LIMIT_S
        while any(len(writer.acknowledged) < goal for writer, goal in zip(writers, goals, strict=True)):
            told = [(len(writer.acknowledged), writer.failure) for writer in writers]
            assert time.monotonic() < end_s, f"round {round_}: {told} of {goals}\n{broker.log[-2000:]}"
            time.sleep(0.003 * (wave + 1))
        broker.kill()
        broker.start()
    for writer in writers:
        writer.stopping.set()
    for writer in writers:
        writer.join(2 * LIMIT_S)
        assert not writer.is_alive()
        assert writer.failure is None, writer.failure
        # what it may have left open is ended here
        last = Producer(
            {"bootstrap.servers": broker.bootstrap_servers, "transactional.id": writer.name, "log_level": 0}
        )
        last.init_transactions(LIMIT_S)
    seen = read_all(broker, "read_committed")
    for writer in writers:
        numbers = [[int(v.partition(":")[2]) for v in values if v.startswith(writer.name)] for values in seen]
        assert numbers[0] == numbers[1] == numbers[2], "a transaction is in one partition and not in another"
        assert numbers[0] == sorted(set(numbers[0])), "twice, or out of order"
        assert set(writer.acknowledged) <= set(numbers[0]), "an acknowledged transaction is lost"
        asked = admin.list_consumer_group_offsets([ConsumerGroupTopicPartitions(writer.name)])
        (offset,) = asked[writer.name].result(LIMIT_S).topic_partitions
        assert offset.offset == numbers[0][-1], "the offsets are not those of the last transaction"
