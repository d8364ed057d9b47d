"""The way out: topics and groups of momus, in Apache Kafka."""

from __future__ import annotations

import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient
from source_broker import committed, config, read, settings
from test_migrate import GROUPS, PARTITIONS, Source, migrated

pytestmark = pytest.mark.timeout(900)

PROPERTIES = """\
process.roles=broker,controller
node.id=1
controller.quorum.voters=1@127.0.0.1:{controller}
listeners=PLAINTEXT://127.0.0.1:{port},CONTROLLER://127.0.0.1:{controller}
controller.listener.names=CONTROLLER
log.dirs={logs}
offsets.topic.num.partitions=3
offsets.topic.replication.factor=1
"""


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def answers(address: str) -> bool:
    try:
        return bool(AdminClient(settings(address)).list_topics(timeout=2).brokers)
    except KafkaException:
        return False


@contextmanager
def apache_kafka(libs: str, directory: Path) -> Iterator[str]:
    """One KRaft node on a directory of its own."""
    port = free_port()
    properties = directory / "server.properties"
    properties.write_text(PROPERTIES.format(port=port, controller=free_port(), logs=directory / "logs"))
    java = ["java", "-Xmx256m", "-cp", libs]
    tool = ["kafka.tools.StorageTool", "format", "-t", "momusmomusmomusmomusAA", "-c", str(properties)]
    subprocess.run([*java, *tool], check=True, capture_output=True, timeout=120)
    with open(directory / "broker.log", "wb") as log:
        process = subprocess.Popen([*java, "kafka.Kafka", str(properties)], stdout=log, stderr=log)
    try:
        deadline = time.monotonic() + 120
        while not answers(f"127.0.0.1:{port}"):
            assert process.poll() is None
            assert time.monotonic() < deadline
        yield f"127.0.0.1:{port}"
    finally:
        process.kill()
        process.wait()


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Source:
    return Source(tmp_path_factory.mktemp("source"))


def test_migrate_into_apache_kafka_every_record_and_position_is_equal(spark: Any, kafka_libs, source, tmp_path):
    with apache_kafka(kafka_libs, tmp_path) as address:
        code, proof = migrated(spark, source, address, tmp_path / "proof.json", "--replication-factor", "1")

        assert (code, proof["equal"]) == (0, True)
        assert all(each["source_sha256"] == each["target_sha256"] for each in proof["partitions"])
        for (topic, partition), records in source.records.items():
            assert read(address, topic, partition) == records
        for group, offsets in GROUPS.items():
            there = committed(address, group, [(topic, partition) for topic, partition, _, _ in offsets])
            for (topic, partition, offset, metadata), (found, text) in zip(offsets, there, strict=True):
                assert text == metadata
                assert read(address, topic, partition, found) == source.ahead[topic, partition, offset]
        assert config(address, "latest", "cleanup.policy", "retention.ms") == ["compact", "123456789"]
        assert config(address, "stamped", "message.timestamp.type") == ["LogAppendTime"]
        assert len(read(address, "orders", PARTITIONS - 1)) == len(source.records["orders", PARTITIONS - 1])
