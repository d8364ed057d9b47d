"""`momus serve --retain-for GROUP`: the cleaner waits for what a real client commits as that group."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka.admin import AdminClient, AlterConfigOpType, ConfigEntry, ConfigResource
from kafka import KafkaConsumer, TopicPartition
from kafka.structs import OffsetAndMetadata

COMMITS = 60
LOG = "__consumer_offsets-0"
SETTINGS = (
    "offsets.topic.num.partitions=1",
    "log.cleaner.backoff.ms=50",
    "log.cleaner.min.cleanable.ratio=0.01",
)


@pytest.fixture
def serving(tmp_path: Path) -> Iterator[tuple[str, Path]]:
    """A broker started by the command line: its address and its data directory."""
    words = [word for setting in SETTINGS for word in ("--set", setting)]
    words += ["--retain-for", "archive"]
    with subprocess.Popen(
        [sys.executable, "-m", "momus", "serve", "--listen", "127.0.0.1:0", "-d", str(tmp_path), *words],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        yield process.stdout.readline().removeprefix("momus ready ").strip(), tmp_path
        process.terminate()
        assert (process.wait(60), process.stderr.read()) == (0, "")


def commit(address: str, group: str, topic: str, offsets: list[int]) -> None:
    consumer = KafkaConsumer(bootstrap_servers=address, group_id=group, enable_auto_commit=False)
    for offset in offsets:
        consumer.commit({TopicPartition(topic, 0): OffsetAndMetadata(offset, "", -1)})
    consumer.close(autocommit=False)


def sizes(data: Path) -> list[int]:
    """Bytes of each segment but the one that is written to."""
    return [path.stat().st_size for path in sorted((data / LOG).glob("*.log"))[:-1]]


def test_serve_retain_for_a_group_keeps_commits_until_that_group_has_them(serving):
    address, data = serving
    subprocess.run([sys.executable, "-m", "momus", "topic", "create", "t", "-b", address], check=True, timeout=60)
    commit(address, "g", "t", [0])
    small = ConfigEntry("internal.segment.bytes", "1000", incremental_operation=AlterConfigOpType.SET)
    admin = AdminClient({"bootstrap.servers": address})
    changed = admin.incremental_alter_configs(
        [ConfigResource(ConfigResource.Type.TOPIC, "__consumer_offsets", incremental_configs=[small])]
    )
    for future in changed.values():
        future.result()
    commit(address, "g", "t", list(range(1, COMMITS)))
    before = sizes(data)
    assert len(before) > 3
    time.sleep(1)  # twenty rounds of the cleaner
    assert sizes(data) == before
    commit(address, "archive", "__consumer_offsets", [COMMITS])
    limit_s = time.monotonic() + 120
    while sum(sizes(data)) > sum(before) / 2:
        assert time.monotonic() < limit_s, sizes(data)
        time.sleep(0.05)
