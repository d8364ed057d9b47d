"""A data directory that Apache Kafka wrote is one that momus reads: topics, records, transactions, offsets."""

from __future__ import annotations

import shutil

import pytest
from apache_kafka import apache_kafka
from clientwork import until
from confluent_kafka import Consumer, KafkaException, Producer, TopicCollection, TopicPartition
from confluent_kafka.admin import AdminClient, ConfigResource, NewTopic, ResourceType

from momus.client.wire import Connection
from protocol.errors import ErrorCode
from protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from protocol.messages.transaction_admin import DescribeProducersRequest, DescribeProducersRequestTopicRequest
from protocol.messages.transactions import InitProducerIdRequest
from protocol.record_batch import build_batch

pytestmark = pytest.mark.xdist_group("java")

PARTITIONS = 3
PATIENT = {"transaction.timeout.ms": 600_000}  # what is open at the end stays open


def topic_is_made(admin: AdminClient) -> bool:
    try:
        config = {"retention.ms": "123456789"}
        admin.create_topics([NewTopic("orders", PARTITIONS, 1, config=config)], request_timeout=30)["orders"].result()
    except KafkaException as error:
        return "TOPIC_ALREADY_EXISTS" in str(error)
    return True


def is_committed(consumer: Consumer, offsets: list[TopicPartition]) -> bool:
    try:
        consumer.commit(offsets=offsets, asynchronous=False)
    except KafkaException:  # the coordinator is still being made
        return False
    return True


def fill(address: str) -> None:
    """What a small application leaves behind: a transaction is still open at the end."""
    admin = AdminClient({"bootstrap.servers": address, "log_level": 0})
    until(lambda: topic_is_made(admin), "Apache Kafka makes a topic")
    plain = Producer({"bootstrap.servers": address, "enable.idempotence": True, "log_level": 0})
    for n in range(30):
        plain.produce("orders", value=b"%d" % n, partition=n % PARTITIONS, headers=[("h", b"x")])
    assert plain.flush(60) == 0
    consumer = Consumer({"bootstrap.servers": address, "group.id": "g", "enable.auto.commit": False, "log_level": 0})
    offsets = [TopicPartition("orders", p, 5 + p, metadata=f"m{p}") for p in range(PARTITIONS)]
    until(lambda: is_committed(consumer, offsets), "Apache Kafka's coordinator takes offsets")
    consumer.close()
    writer = Producer({"bootstrap.servers": address, "transactional.id": "tx", "log_level": 0} | PATIENT)
    writer.init_transactions(60)
    for value, end in ((b"committed", writer.commit_transaction), (b"aborted", writer.abort_transaction)):
        writer.begin_transaction()
        writer.produce("orders", value, partition=0)
        writer.flush(60)
        end(60)
    writer.begin_transaction()
    writer.produce("orders", b"open", partition=1)
    writer.flush(60)


def connect(address: str) -> Connection:
    host, _, port = address.rpartition(":")
    return Connection(host, int(port), 60)


def producers(wire: Connection) -> list[list[tuple[int, ...]]]:
    """Of each partition: id, epoch, last sequence, and where the open transaction began."""
    asked = DescribeProducersRequestTopicRequest(name="orders", partition_indexes=list(range(PARTITIONS)))
    partitions = wire.call(DescribeProducersRequest(topics=[asked])).topics[0].partitions
    assert [each.error_code for each in partitions] == [0] * PARTITIONS
    return [
        sorted(
            (p.producer_id, p.producer_epoch, p.last_sequence, p.current_txn_start_offset)
            for p in each.active_producers
        )
        for each in sorted(partitions, key=lambda each: each.partition_index)
    ]


def produce(wire: Connection, producer_id: int, base_sequence: int) -> tuple[int, int]:
    """Two records of an idempotent producer to partition 2: error and base offset."""
    records = build_batch(
        [(None, b"raw")] * 2,
        timestamp_ms=1_700_000_000_000,
        producer_id=producer_id,
        producer_epoch=0,
        base_sequence=base_sequence,
    )
    data = TopicProduceData(name="orders", partition_data=[PartitionProduceData(index=2, records=records)])
    answer = wire.call(ProduceRequest(acks=-1, timeout_ms=10_000, topic_data=[data]), 9)
    told = answer.responses[0].partition_responses[0]
    return told.error_code, told.base_offset


def read(address: str, isolation: str, partition: int) -> list[bytes]:
    """All records of a partition from the first one on."""
    settings = {"bootstrap.servers": address, "group.id": "reader", "isolation.level": isolation, "log_level": 0}
    consumer = Consumer({**settings, "enable.partition.eof": True, "auto.offset.reset": "earliest"})
    consumer.assign([TopicPartition("orders", partition, 0)])
    values = []
    while True:
        message = consumer.poll(60)
        assert message is not None
        if message.error() is not None:
            assert message.error().name() == "_PARTITION_EOF"
            consumer.close()
            return values
        values.append(message.value())


def test_directory_of_apache_kafka_is_served(kafka_libs, broker_factory, tmp_path):
    with apache_kafka(kafka_libs, tmp_path) as address:
        fill(address)
        kafka = connect(address)
        raw = kafka.call(InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=60_000)).producer_id
        assert [produce(kafka, raw, sequence) for sequence in (0, 2)] == [(0, 10), (0, 12)]
        known = producers(kafka)
        kafka.close()
    data = tmp_path / "data"
    shutil.copytree(tmp_path / "logs", data)
    at = broker_factory(data_dir=data).bootstrap_servers
    admin = AdminClient({"bootstrap.servers": at, "log_level": 0})

    topic = admin.describe_topics(TopicCollection(["orders"]))["orders"].result()
    assert len(topic.partitions) == PARTITIONS
    written = (data / "orders-0" / "partition.metadata").read_text()
    topic_id = str(topic.topic_id).replace("+", "-").replace("/", "_")  # the client writes plain base64
    assert f"topic_id: {topic_id}" in written
    resource = ConfigResource(ResourceType.TOPIC, "orders")
    assert admin.describe_configs([resource])[resource].result()["retention.ms"].value == "123456789"

    consumer = Consumer({"bootstrap.servers": at, "group.id": "g", "log_level": 0})
    found = consumer.committed([TopicPartition("orders", p) for p in range(PARTITIONS)], timeout=60)
    assert [(each.offset, each.metadata) for each in found] == [(5 + p, f"m{p}") for p in range(PARTITIONS)]
    consumer.close()

    numbers = [[b"%d" % n for n in range(p, 30, PARTITIONS)] for p in range(PARTITIONS)]
    assert read(at, "read_uncommitted", 0) == [*numbers[0], b"committed", b"aborted"]
    assert read(at, "read_committed", 0) == [*numbers[0], b"committed"]
    assert read(at, "read_uncommitted", 1) == [*numbers[1], b"open"]
    assert read(at, "read_committed", 1) == numbers[1]
    assert read(at, "read_committed", 2) == [*numbers[2], *[b"raw"] * 4]

    momus = connect(at)
    assert producers(momus) == known
    assert [len(each) for each in known] == [2, 2, 2]
    assert known[1][-1][3] == 10  # the open transaction
    assert produce(momus, raw, 2)[0] in (ErrorCode.NONE, ErrorCode.DUPLICATE_SEQUENCE_NUMBER)  # its last batch again
    assert produce(momus, raw, 9)[0] == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert produce(momus, raw, 4) == (0, 14)
    momus.close()

    successor = Producer({"bootstrap.servers": at, "transactional.id": "tx", "log_level": 0})
    successor.init_transactions(60)  # ends what its predecessor had begun under Apache Kafka
    successor.begin_transaction()
    successor.produce("orders", b"after", partition=1)
    successor.commit_transaction(60)
    assert read(at, "read_committed", 1) == [*numbers[1], b"after"]
