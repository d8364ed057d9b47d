"""The way out: topics and groups of momus, in Apache Kafka."""

from __future__ import annotations

import time
from typing import Any

import pytest
from apache_kafka import apache_kafka
from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient
from source_broker import committed, config, read, settings
from test_migrate import GROUPS, PARTITIONS, Source, migrated

pytestmark = pytest.mark.timeout(900)


def wait_for(address: str) -> None:
    deadline = time.monotonic() + 120
    while not answers(address):
        assert time.monotonic() < deadline


def answers(address: str) -> bool:
    try:
        return bool(AdminClient(settings(address)).list_topics(timeout=2).brokers)
    except KafkaException:
        return False


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Source:
    return Source(tmp_path_factory.mktemp("source"))


def test_migrate_into_apache_kafka_every_record_and_position_is_equal(spark: Any, kafka_libs, source, tmp_path):
    with apache_kafka(kafka_libs, tmp_path) as address:
        wait_for(address)
        code, proof = migrated(spark, source.directory, address, tmp_path / "proof.json", "--replication-factor", "1")

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
