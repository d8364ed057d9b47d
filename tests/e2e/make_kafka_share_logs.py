"""Makes tests/pipeline/audit/kafka_share: what Apache Kafka writes while share consumers do all that they may do.

    python tests/e2e/make_kafka_share_logs.py "LIBS/*"                  # Apache Kafka's jars; takes a minute
    python tests/e2e/make_kafka_share_logs.py "LIBS/*" dead-letters     # kafka_dead_letters, from 4.4 on

They accept, release and reject, let locks expire, reach the limit of deliveries, read transactions of both ends, are
set back, have records deleted below them, and go on after a restart of the broker. The other folder is of a group whose
rejected records, and those that came to its limit, go to a dead-letter queue.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from confluent_kafka import AcknowledgeType, Producer, ShareConsumer, TopicPartition
from confluent_kafka.admin import (
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    NewTopic,
    ResourceType,
)

TESTS = Path(__file__).parents[1]
AUDIT = TESTS / "pipeline" / "audit"
sys.path[:0] = [str(TESTS)]

from apache_kafka import apache_kafka  # noqa: E402  # needs the path set above

SETTINGS = """\
share.coordinator.state.topic.num.partitions=2
share.coordinator.state.topic.replication.factor=1
share.coordinator.state.topic.min.isr=1
share.coordinator.snapshot.update.records.per.snapshot=20
group.share.min.record.lock.duration.ms=1000
group.share.record.lock.duration.ms=1000
group.share.min.session.timeout.ms=3000
group.share.session.timeout.ms=3000
group.share.min.heartbeat.interval.ms=500
group.share.heartbeat.interval.ms=500
"""
LIMIT_S = 60
LATE = object()  # accepted when the lock has expired: the broker refuses it
ACCEPT, RELEASE, REJECT = AcknowledgeType.ACCEPT, AcknowledgeType.RELEASE, AcknowledgeType.REJECT


def settle(futures: dict[Any, Any]) -> None:
    for future in futures.values():
        future.result(LIMIT_S)


class Traffic:
    """Producers and share consumers of one broker."""

    def __init__(self, address: str, libs: str) -> None:
        self.address, self.libs = address, libs
        self.admin = AdminClient({"bootstrap.servers": address, "log_level": 0})
        self.admin.list_topics(timeout=LIMIT_S)  # it is up

    def prepare(self) -> None:
        settle(self.admin.create_topics([NewTopic("shared", 2, 1), NewTopic("txn", 1, 1)]))
        for group, limit in (("work", 3), ("committed", 5)):
            values = {"share.auto.offset.reset": "earliest", "share.delivery.count.limit": str(limit)}
            if group == "committed":
                values["share.isolation.level"] = "read_committed"
            entries = [ConfigEntry(k, v, incremental_operation=AlterConfigOpType.SET) for k, v in values.items()]
            resource = ConfigResource(ResourceType.GROUP, group, incremental_configs=entries)
            settle(self.admin.incremental_alter_configs([resource]))

    def produce(self, topic: str, count: int, partitions: int = 1, ends: Callable[[Any], None] | None = None) -> None:
        own = {"transactional.id": "maker"} if ends else {}
        producer = Producer({"bootstrap.servers": self.address, "linger.ms": 0, "log_level": 0, **own})
        if ends:
            producer.init_transactions(LIMIT_S)
            producer.begin_transaction()
        for number in range(count):
            producer.produce(topic, b"%d" % number, partition=number % partitions)
            if number % 4 == 0:
                producer.flush(LIMIT_S)
        producer.flush(LIMIT_S)
        if ends:
            ends(producer)

    def read(self, group: str, topic: str, decide: Callable[[Any], Any], quiet_s: float, **settings: Any) -> int:
        """Acknowledge as decided, until nothing has come for a time; the number of deliveries."""
        mode = {"share.acknowledgement.mode": "explicit"}
        consumer = ShareConsumer(
            {"bootstrap.servers": self.address, "group.id": group, "log_level": 0, **mode, **settings}
        )
        consumer.subscribe([topic])
        seen, until = 0, time.monotonic() + LIMIT_S
        last = time.monotonic() + 5
        while time.monotonic() < min(last + quiet_s, until):
            for message in consumer.poll(0.3):
                seen, last = seen + 1, time.monotonic()
                kind = decide(message)
                if kind is LATE:
                    time.sleep(1.5)  # its lock expires, and those of the records that came with it
                consumer.acknowledge(message, ACCEPT if kind is LATE else kind)
        consumer.commit_sync(LIMIT_S)
        consumer.close()
        return seen

    def tool(self, *words: str) -> None:
        main = "org.apache.kafka.tools.consumer.group.ShareGroupCommand"
        command = ["java", "-Xmx192m", "-cp", self.libs, main, "--bootstrap-server", self.address, *words]
        subprocess.run(command, capture_output=True, timeout=120, check=True)


def before_the_restart(traffic: Traffic) -> None:
    traffic.prepare()
    traffic.produce("shared", 40, 2)
    kinds = {0: RELEASE, 3: REJECT, 7: LATE}
    traffic.read("work", "shared", lambda m: kinds.get(m.offset() % 10, ACCEPT), 3)
    traffic.produce("txn", 6, ends=lambda p: p.commit_transaction(LIMIT_S))
    traffic.produce("txn", 6, ends=lambda p: p.abort_transaction(LIMIT_S))
    traffic.produce("txn", 6, ends=lambda p: p.commit_transaction(LIMIT_S))
    traffic.read("committed", "txn", lambda m: ACCEPT, 2)
    traffic.produce("shared", 20, 2)
    settle(traffic.admin.delete_records([TopicPartition("shared", 0, 25)]))
    traffic.read("work", "shared", lambda m: RELEASE if m.offset() % 4 == 0 else ACCEPT, 3)
    time.sleep(4)
    traffic.tool("--reset-offsets", "--group", "work", "--topic", "shared", "--to-earliest", "--execute")


def after_the_restart(traffic: Traffic) -> None:
    traffic.read("work", "shared", lambda m: ACCEPT, 3)
    traffic.produce("shared", 10, 2)
    left = ShareConsumer({"bootstrap.servers": traffic.address, "group.id": "work"})
    left.subscribe(["shared"])
    until = time.monotonic() + LIMIT_S
    while time.monotonic() < until and not left.poll(0.5):
        pass
    del left
    traffic.read("work", "shared", lambda m: ACCEPT, 4)
    time.sleep(4)
    traffic.tool("--delete-offsets", "--group", "committed", "--topic", "txn")


def letters_before_the_restart(traffic: Traffic) -> None:
    queue = NewTopic("dlq.shared", 2, 1, config={"errors.deadletterqueue.group.enable": "true"})
    settle(traffic.admin.create_topics([NewTopic("shared", 2, 1), queue]))
    values = {"share.auto.offset.reset": "earliest", "share.delivery.count.limit": "2"}
    values |= {"errors.deadletterqueue.topic.name": "dlq.shared", "errors.deadletterqueue.copy.record.enable": "true"}
    entries = [ConfigEntry(k, v, incremental_operation=AlterConfigOpType.SET) for k, v in values.items()]
    resource = ConfigResource(ResourceType.GROUP, "letters", incremental_configs=entries)
    settle(traffic.admin.incremental_alter_configs([resource]))
    traffic.produce("shared", 40, 2)
    traffic.read("letters", "shared", reject_or_release, 3)


def reject_or_release(message: Any) -> Any:
    """Every fifth record is rejected, every seventh released until it has come too often."""
    return REJECT if message.offset() % 5 == 0 else RELEASE if message.offset() % 7 == 0 else ACCEPT


def letters_after_the_restart(traffic: Traffic) -> None:
    traffic.produce("shared", 20, 2)
    traffic.read("letters", "shared", reject_or_release, 3)


PARTS = {
    "kafka_share": (before_the_restart, after_the_restart),
    "kafka_dead_letters": (letters_before_the_restart, letters_after_the_restart),
}


def keep(logs: Path, golden: Path) -> None:
    """The logs that have records, without indexes."""
    shutil.rmtree(golden, ignore_errors=True)
    for folder in sorted(logs.iterdir()):
        segments = [path for path in folder.glob("*.log") if path.stat().st_size] if folder.is_dir() else []
        if segments and not folder.name.startswith("__transaction_state"):
            (golden / folder.name).mkdir(parents=True)
            for path in (*segments, folder / "partition.metadata"):
                shutil.copy(path, golden / folder.name / path.name) if path.exists() else None
    shutil.copy(logs / "log-start-offset-checkpoint", golden)


def main() -> None:
    """Make it."""
    libs = sys.argv[1]
    name = "kafka_" + (sys.argv[2].replace("-", "_") if len(sys.argv) > 2 else "share")
    with tempfile.TemporaryDirectory() as folder:
        for part in PARTS[name]:
            with apache_kafka(libs, Path(folder), SETTINGS) as address:
                part(Traffic(address, libs))
        keep(Path(folder) / "logs", AUDIT / name)


if __name__ == "__main__":
    main()
