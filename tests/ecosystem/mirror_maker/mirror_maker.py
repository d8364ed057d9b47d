"""MirrorMaker 2 between two clusters, both ways: topics arrive under new names, and a group that moves to the other
cluster goes on where it stopped. Once with momus on both sides, once with Apache Kafka on one."""

from __future__ import annotations

import contextlib
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parents[2]), str(HERE.parents[1]), str(HERE.parent)]

import kit  # noqa: E402 - found by the line above
from apache_kafka import apache_kafka  # noqa: E402 - found by the line above
from confluent_kafka import Consumer, KafkaError, KafkaException, TopicPartition  # noqa: E402 - as kit
from kafka_jars import fetch_jars  # noqa: E402 - found by the line above

from momus import Broker  # noqa: E402 - found by the line above

PARTITIONS = 3
RECORDS = 3000  # in each direction, before the group moves; then LATER more
LATER = 300
SETTINGS = """\
clusters=east,west
east.bootstrap.servers={east}
west.bootstrap.servers={west}
east->west.enabled=true
west->east.enabled=true
topics=orders,bills
groups=readers-.*
replication.factor=1
checkpoints.topic.replication.factor=1
heartbeats.topic.replication.factor=1
offset-syncs.topic.replication.factor=1
config.storage.replication.factor=1
offset.storage.replication.factor=1
status.storage.replication.factor=1
refresh.topics.interval.seconds=1
refresh.groups.interval.seconds=1
sync.group.offsets.enabled=true
sync.group.offsets.interval.seconds=1
emit.checkpoints.interval.seconds=1
offset.lag.max=0
"""


def consume(bootstrap: str, group: str, topic: str, count: int) -> list[str]:
    """What a group reads of a topic until it has so many records and is at every partition's end; commits them."""
    settings = {
        "bootstrap.servers": bootstrap,
        "group.id": group,
        "auto.offset.reset": "earliest",
        "enable.auto.commit": False,
        "enable.partition.eof": True,
    }
    consumer = Consumer(settings)
    consumer.subscribe([topic])
    found: list[str] = []
    ended: set[int] = set()

    def done() -> bool:
        for message in consumer.consume(1000, 1):
            if message.error() is None:
                found.append(message.value().decode())
            else:
                assert message.error().code() == KafkaError._PARTITION_EOF, message.error()
                ended.add(message.partition())
        return len(found) >= count and len(ended) == PARTITIONS

    kit.until(done, f"{group} reads {count} records of {topic}")
    consumer.commit(asynchronous=False)
    consumer.close()
    return found


def committed(bootstrap: str, group: str, topic: str) -> list[int]:
    """A group's offsets, negative where it has none; none while Apache Kafka's new coordinator has not loaded."""
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": group})
    partitions = [TopicPartition(topic, partition) for partition in range(PARTITIONS)]
    try:
        return [each.offset for each in consumer.committed(partitions, 30)]
    except KafkaException as error:
        if error.args[0].code() not in (KafkaError.COORDINATOR_LOAD_IN_PROGRESS, KafkaError.NOT_COORDINATOR):
            raise
        return []
    finally:
        consumer.close()


def mirror(east: str, west: str, folder: Path) -> None:
    """One run between two clusters, both ways at once."""
    ways = (("east", east, "west", west, "orders"), ("west", west, "east", east, "bills"))
    settings = folder / "mirror.properties"
    settings.write_text(SETTINGS.format(east=east, west=west))
    for name, source, _, _, topic in ways:
        kit.make_topic(source, topic, PARTITIONS)
        kit.write(source, topic, [f"{name} {number}" for number in range(RECORDS)], PARTITIONS)
    command = (*kit.JVM, "-cp", f"{kit.jars(HERE)}/*", "org.apache.kafka.connect.mirror.MirrorMaker", settings)
    with kit.Program(command, folder / "mirror.log"):
        for name, source, _, target, topic in ways:
            copy, group = f"{name}.{topic}", f"readers-{topic}"
            ends = [RECORDS // PARTITIONS] * PARTITIONS
            assert len(consume(source, group, topic, RECORDS)) == RECORDS
            kit.until(lambda: committed(target, group, copy) == ends, f"offsets of {group} are synced")  # noqa: B023 - called in this round
        for name, source, _, target, topic in ways:
            copy, group = f"{name}.{topic}", f"readers-{topic}"
            later = [f"{name} later {number}" for number in range(LATER)]
            kit.write(source, topic, later, PARTITIONS)
            # The group has left the source: it goes on in the other cluster, after the last record that it read.
            assert sorted(consume(target, group, copy, LATER)) == sorted(later)
            assert kit.read(target, copy, PARTITIONS) == kit.read(source, topic, PARTITIONS)


def prove() -> str:
    for peer in ("momus", "Apache Kafka"):
        with contextlib.ExitStack() as stack:
            folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
            east = stack.enter_context(Broker()).bootstrap_servers
            if peer == "momus":
                west = stack.enter_context(Broker()).bootstrap_servers
            else:
                west = stack.enter_context(apache_kafka(f"{fetch_jars('current')}/*", folder))
            mirror(east, west, folder)
    return (
        f"momus <-> momus and momus <-> Apache Kafka, each way: {RECORDS + LATER:,} records in {PARTITIONS} partitions "
        "arrive as east.orders and west.bills, each once and in order; a group's offsets are synced, "
        f"and in the other cluster it reads exactly the {LATER} records that follow"
    )


if __name__ == "__main__":
    kit.run("MirrorMaker 2", kit.version_in(HERE, "kafka.version"), prove)
