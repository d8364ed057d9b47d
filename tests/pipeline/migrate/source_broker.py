"""What a small application leaves behind in a broker: every shape of record, both ends of transactions, and groups."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, ConfigResource, NewTopic, ResourceType

T0 = 1_600_000_000_000  # older than any retention would keep
PARTITIONS = 3


def settings(address: str) -> dict[str, Any]:
    return {"bootstrap.servers": address, "log_level": 0}


def make_topics(address: str) -> None:
    """One topic of each kind, one of them without a record."""
    topics = [
        NewTopic("orders", PARTITIONS, 1, config={"retention.ms": "-1"}),  # its times are old
        NewTopic("latest", 1, 1, config={"cleanup.policy": "compact", "retention.ms": "123456789"}),
        NewTopic("stamped", 1, 1, config={"message.timestamp.type": "LogAppendTime"}),
        NewTopic("silent", 2, 1),
    ]
    admin = AdminClient(settings(address))
    for made in admin.create_topics(topics).values():
        made.result(20)


def config(address: str, topic: str, *names: str) -> list[str]:
    """What topic settings are."""
    admin, resource = AdminClient(settings(address)), ConfigResource(ResourceType.TOPIC, topic)
    found = admin.describe_configs([resource])[resource].result(20)
    return [found[name].value for name in names]


def fill(address: str, count: int) -> None:
    """`count` plain records over the partitions, between transactions; one is open at the end."""
    plain = Producer({**settings(address), "enable.idempotence": True, "compression.type": "zstd"})
    for n in range(count):
        plain.produce(
            "orders",
            value=None if n % 10 == 3 else b"value %d" % n,
            key=None if n % 7 == 0 else b"key %d" % (n % 50),
            partition=n % PARTITIONS,
            timestamp=-1 if n % 11 == 5 else T0 + n // 2,
            headers=[("n", b"%d" % n), ("none", None), ("n", b"")] if n % 5 == 0 else None,
        )
        if n % 100 == 99:
            plain.flush(30)
        if n in (count // 3, count // 2):
            plain.flush(30)
            transact(address, f"tx-{n}", abort=n == count // 3)
    for n in range(5):
        plain.produce("latest", key=b"k", value=b"%d" % n, timestamp=T0)
        plain.produce("stamped", value=b"%d" % n, timestamp=T0)
    assert plain.flush(30) == 0
    transact(address, "tx-open", end=False)


def transact(address: str, name: str, *, abort: bool = False, end: bool = True) -> None:
    """Records in every partition and an offset, committed, aborted or left open."""
    writer = Producer({**settings(address), "transactional.id": name})
    writer.init_transactions(30)
    writer.begin_transaction()
    for n in range(30):
        writer.produce("orders", value=f"{name} {n}".encode(), partition=n % PARTITIONS, timestamp=T0)
    assert writer.flush(30) == 0
    if not end:
        return
    if abort:
        writer.abort_transaction(30)
    else:
        writer.commit_transaction(30)


def delete_records(address: str, topic: str, partition: int, before: int) -> None:
    """Delete what lies below an offset; the file keeps it for now."""
    admin = AdminClient(settings(address))  # a future ends only while its client lives
    [done] = admin.delete_records([TopicPartition(topic, partition, before)]).values()
    assert done.result(20).low_watermark == before


def commit(address: str, group: str, offsets: Sequence[tuple[str, int, int, str]]) -> None:
    """Positions of a group: topic, partition, offset, metadata."""
    consumer = Consumer({**settings(address), "group.id": group, "enable.auto.commit": False})
    consumer.commit(offsets=[TopicPartition(t, p, o, metadata=m) for t, p, o, m in offsets], asynchronous=False)
    consumer.close()


def committed(address: str, group: str, places: Sequence[tuple[str, int]]) -> list[tuple[int, str]]:
    """Where a group stands: offset, metadata (less the null byte that this client adds when it commits)."""
    consumer = Consumer({**settings(address), "group.id": group, "enable.auto.commit": False})
    found = consumer.committed([TopicPartition(*place) for place in places], timeout=30)
    consumer.close()
    return [(each.offset, (each.metadata or "").rstrip("\0")) for each in found]


def read(address: str, topic: str, partition: int, begin: int = 0) -> list[tuple[Any, ...]]:
    """All committed records of a partition from an offset on: everything of them but offset and kind of time."""
    consumer = Consumer({
        **settings(address),
        "group.id": "reader",
        "enable.auto.commit": False,
        "isolation.level": "read_committed",
        "enable.partition.eof": True,
        "auto.offset.reset": "earliest",
    })  # fmt: skip  # one argument, no indent of its own
    consumer.assign([TopicPartition(topic, partition, begin)])
    found = []
    while True:
        message = consumer.poll(30)
        assert message is not None
        if message.error() is not None:
            if message.error().name() != "_PARTITION_EOF":
                raise KafkaException(message.error())
            consumer.close()
            return found
        found.append((message.timestamp()[1], message.key(), message.value(), message.headers()))
