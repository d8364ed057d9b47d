"""Writes the samples of this version: a data directory with a snapshot, and a kept run, each with what it holds.

    PYTHONPATH=tests/e2e/samples python tests/e2e/samples/make_samples.py      into tests/e2e/samples/VERSION

`make release` runs it. The next version must open what this one wrote: test_samples.py.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, ScramCredentialInfo, ScramMechanism, UserScramCredentialUpsertion
from sample_state import SETTINGS, WAIT_S, state_of

from momus import Broker, __version__

HERE = Path(__file__).parent
SNAPSHOT = "before"  # the name of the one that the directory has
RUN = """
import pytest
from kafka import KafkaConsumer, KafkaProducer
from kafka.structs import OffsetAndMetadata, TopicPartition

@pytest.mark.momus(topics={"orders": 2}, seed=7)
def test_billing(kafka_broker):
    kafka_broker.produce("orders", "a", "b", "c", partition=0)
    words = kafka_broker.client_config("kafka-python")
    consumer = KafkaConsumer(
        "orders", group_id="billing", auto_offset_reset="earliest", enable_auto_commit=False, **words
    )
    producer = KafkaProducer(transactional_id="copier", **words)
    producer.init_transactions()
    for _ in range(3):
        record = next(consumer)
        producer.begin_transaction()
        producer.send("copies", record.value)
        offsets = {TopicPartition(record.topic, record.partition): OffsetAndMetadata(record.offset + 1, "", -1)}
        producer.send_offsets_to_transaction(offsets, consumer.group_metadata())
        producer.commit_transaction()
    consumer.close()
    producer.close()
    assert not kafka_broker.consume("copies", isolation="committed"), "a run is kept when its test fails"
"""


def main() -> None:
    """Replace the folder of this version."""
    folder = HERE / __version__
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    with tempfile.TemporaryDirectory() as scratch:
        expected = write_directory(Path(scratch) / "data")
        shutil.make_archive(str(folder / "data"), "zip", Path(scratch) / "data")
        keep_run(Path(scratch), folder / "run.momus")
    (folder / "expected.json").write_text(json.dumps(expected, indent=1) + "\n")
    sys.stderr.write(f"{folder}: {sum(each.stat().st_size for each in folder.iterdir()) / 1000:.0f} kB\n")


def write_directory(data_dir: Path) -> dict[str, Any]:
    """Fill a data directory, stop the broker, and return what it holds."""
    with Broker(data_dir=data_dir, config=SETTINGS) as broker:
        fill(broker)
        snapshot = state_of(broker)
        broker.snapshot(SNAPSHOT)
        add_later(broker)
        now = state_of(broker)
    return {"now": now, "snapshot": snapshot}


def fill(broker: Broker) -> None:
    """Topics of three kinds, two groups, a user, an ACL, committed and aborted transactions."""
    words = broker.client_config("confluent")
    broker.create_topic("orders", partitions=3)
    broker.create_topic("tables", config={"cleanup.policy": "compact", "compression.type": "zstd"})
    broker.create_topic("payments", config={"message.timestamp.type": "LogAppendTime"})
    for number in range(30):
        broker.produce("orders", f"order {number}", key=f"customer {number % 7}", partition=number % 3)
        broker.produce("tables", f"row {number}", key=f"table {number % 4}")
    producer = Producer({**words, "transactional.id": "biller", "compression.type": "lz4"})
    producer.init_transactions(WAIT_S)
    for number in range(6):
        producer.begin_transaction()
        producer.produce("payments", f"payment {number}")
        if number % 3:
            producer.commit_transaction(WAIT_S)
        else:
            producer.abort_transaction(WAIT_S)
    for group, protocol in (("classic", "classic"), ("modern", "consumer")):
        consume(broker, group, protocol)
    admin = AdminClient(words)
    credential = ScramCredentialInfo(ScramMechanism.SCRAM_SHA_256, 4096)
    user = UserScramCredentialUpsertion("alice", credential, b"pencil", b"salt of alice")
    for change in admin.alter_user_scram_credentials([user]).values():
        change.result()
    broker.acls.allow("alice", "read", topic="of alice alone")


def consume(broker: Broker, group: str, protocol: str) -> None:
    """Read ten orders and commit them, as a member."""
    words = {**broker.client_config("confluent"), "group.id": group, "group.protocol": protocol}
    consumer = Consumer({**words, "auto.offset.reset": "earliest", "enable.auto.commit": False})
    consumer.subscribe(["orders"])
    read = 0
    while read < 10:
        message = consumer.poll(1)
        if message is not None and message.error() is None:
            read += 1
            consumer.commit(message, asynchronous=False)
    consumer.close()


def add_later(broker: Broker) -> None:
    """What the snapshot has not: records, deleted ones, a commit by hand, a transaction that stays open."""
    broker.produce("orders", "after the snapshot", partition=0)
    words = broker.client_config("confluent")
    admin = AdminClient(words)
    for deleted in admin.delete_records([TopicPartition("orders", 1, 4)]).values():
        deleted.result()
    tool = Consumer({**words, "group.id": "by hand"})
    tool.commit(offsets=[TopicPartition("orders", 2, 5, metadata="by a tool")], asynchronous=False)
    tool.close()
    producer = Producer({**words, "transactional.id": "left open"})
    producer.init_transactions(WAIT_S)
    producer.begin_transaction()
    producer.produce("payments", "neither committed nor aborted")
    assert producer.flush(WAIT_S) == 0


def keep_run(scratch: Path, target: Path) -> None:
    """The run of a test that fails."""
    (scratch / "test_run.py").write_text(RUN)
    words = ("-q", "-p", "no:cacheprovider", "-p", "no:xdist", "--momus-keep-failed", str(scratch / "runs"))
    subprocess.run([sys.executable, "-m", "pytest", *words, "test_run.py"], cwd=scratch, check=False)
    (made,) = (scratch / "runs").glob("*.momus")
    shutil.copyfile(made, target)


if __name__ == "__main__":
    main()
