"""Makes tests/pipeline/audit/kafka: what Apache Kafka writes, and the faults that it lets a raw client make.

    python tests/e2e/make_kafka_audit_logs.py "LIBS/*" [FOLDER...]   # Apache Kafka's jars; needs javac; three minutes

| folder       | what                                                                                              |
|--------------|---------------------------------------------------------------------------------------------------|
| modern       | classic, consumer and streams groups, transactions v2 (KIP-890) that commit, abort and move offsets |
| before       | the same by transactions v1                                                                       |
| compacted    | a compacted topic after the cleaner, by an idempotent and a transactional producer                |
| named        | v2: a transaction that names a partition and writes nothing there                                  |
| unverified   | v1, without verification: a hanging transaction, a commit behind its transaction, a fenced producer |
| recreated_1  | a topic,                                                                                          |
| recreated_2  | and the topic of the same name that came after it                                                 |
| renewed      | a topic deleted and made again under an idempotent producer that runs on                          |
| stopped_2    | a broker that was down for longer than a transaction's time-out, then up for a moment             |
| stopped_3    | the same one after it has run on: its coordinator has aborted the transaction                     |

(stopped_1, not kept, is that broker before. By Apache Kafka 4.4.0, the others by 4.3.1.)

tests/pipeline/audit/test_audit_kafka.py has what an audit finds in each.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

TESTS = Path(__file__).parents[1]
GOLDEN = TESTS / "pipeline" / "audit" / "kafka"
JAVA = Path(__file__).parent / "java" / "src" / "GoldenLogs.java"
sys.path[:0] = [str(TESTS), str(TESTS.parent)]

from apache_kafka import apache_kafka  # noqa: E402  # needs the path set above
from confluent_kafka import Consumer, Producer, TopicPartition  # noqa: E402  # as above
from confluent_kafka.admin import AdminClient, NewTopic  # noqa: E402  # as above

from momus.client.wire import Connection  # noqa: E402  # as above
from protocol.declare import Message  # noqa: E402  # as above
from protocol.messages.cluster import FindCoordinatorRequest  # noqa: E402  # as above
from protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData  # noqa: E402  # as above
from protocol.messages.transactions import (  # noqa: E402  # as above
    AddOffsetsToTxnRequest,
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnTopic,
    EndTxnRequest,
    InitProducerIdRequest,
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
)
from protocol.record_batch import TRANSACTIONAL, build_batch  # noqa: E402  # as above

SETTINGS = """\
offsets.topic.num.partitions=1
transaction.state.log.num.partitions=1
group.initial.rebalance.delay.ms=0
"""
V1 = ("--feature", "transaction.version=0")
LIMIT_S = 60
MARKER_S = 2  # until the marker of a transaction that was ended is written
OPEN_S = 15  # the time-out of a transaction
MARGIN_S = 12  # more than brokers' clocks may differ: pipeline/audit/transactions.py


class Kafka:
    """One Apache Kafka after the other, each with a directory that is kept."""

    def __init__(self, libs: str, folder: Path) -> None:
        self.libs, self.folder = libs, folder
        subprocess.run(["javac", "-nowarn", "-d", str(folder), "-cp", libs, str(JAVA)], check=True)

    @contextmanager
    def running(self, name: str, more: str = "", formatting: tuple[str, ...] = ()) -> Iterator[str]:
        directory = self.folder / name.partition("_")[0]
        directory.mkdir(exist_ok=True)
        with apache_kafka(self.libs, directory, SETTINGS + more, formatting=formatting) as address:
            AdminClient({"bootstrap.servers": address, "log_level": 0}).list_topics(timeout=LIMIT_S)
            yield address
        keep(directory / "logs", GOLDEN / name)

    def java(self, address: str, what: str) -> None:
        words = ["java", "-Xmx192m", "-cp", f"{self.folder}:{self.libs}", "GoldenLogs", address, what]
        subprocess.run(words, check=True, timeout=300)


def keep(logs: Path, golden: Path) -> None:
    """The logs that have records, without indexes and the metadata log."""
    for folder in sorted(logs.iterdir()):
        segments = [path for path in folder.glob("*.log") if path.stat().st_size] if folder.is_dir() else []
        if segments and not folder.name.startswith("__cluster_metadata") and not folder.name.endswith("-delete"):
            (golden / folder.name).mkdir(parents=True)
            for path in (*segments, folder / "partition.metadata"):
                shutil.copy(path, golden / folder.name / path.name)
    shutil.copy(logs / "log-start-offset-checkpoint", golden)


class Raw:
    """A client without any of the care that clients take."""

    def __init__(self, address: str, name: str) -> None:
        host, port = address.split(":")
        self.connection, self.name = Connection(host, int(port), LIMIT_S), name
        self.pid, self.epoch = -1, -1

    def call(self, request: Any, version: int | None = None) -> Any:
        """Until the coordinator is there."""
        until = time.monotonic() + LIMIT_S
        while True:
            answer = self.connection.call(request, version)
            code = next(iter(_codes(answer)), 0)
            if code not in (6, 14, 15, 16, 51) or time.monotonic() > until:  # no leader yet, loading, absent, elsewhere
                assert not code, (request, answer)
                return answer
            time.sleep(0.2)

    def find(self, key: str, kind: int) -> None:
        """Ask for a coordinator: Kafka makes its log then."""
        self.call(FindCoordinatorRequest(key=key, key_type=kind, coordinator_keys=[key]))

    def init(self) -> None:
        self.find(self.name, 1)
        answer = self.call(InitProducerIdRequest(transactional_id=self.name, transaction_timeout_ms=60_000), 4)
        self.pid, self.epoch = answer.producer_id, answer.producer_epoch

    def _said(self) -> dict[str, Any]:
        return {"transactional_id": self.name, "producer_id": self.pid, "producer_epoch": self.epoch}

    def name_partition(self, topic: str) -> None:
        self.call(
            AddPartitionsToTxnRequest(
                v3_and_below_transactional_id=self.name,
                v3_and_below_producer_id=self.pid,
                v3_and_below_producer_epoch=self.epoch,
                v3_and_below_topics=[AddPartitionsToTxnTopic(name=topic, partitions=[0])],
            ),
            3,
        )

    def name_group(self, group: str) -> None:
        self.find(group, 0)
        self.call(AddOffsetsToTxnRequest(**self._said(), group_id=group), 3)

    def produce(self, topic: str, sequence: int, version: int) -> None:
        batch = build_batch(
            [(b"k", b"v")],
            timestamp_ms=int(time.time() * 1000),
            producer_id=self.pid,
            producer_epoch=self.epoch,
            base_sequence=sequence,
            attributes=TRANSACTIONAL,
        )
        data = TopicProduceData(name=topic, partition_data=[PartitionProduceData(index=0, records=batch)])
        self.call(ProduceRequest(transactional_id=self.name, acks=-1, timeout_ms=5000, topic_data=[data]), version)

    def commit(self, group: str, topic: str, offset: int, epoch: int | None = None) -> None:
        partition = TxnOffsetCommitRequestPartition(partition_index=0, committed_offset=offset)
        request = TxnOffsetCommitRequest(
            transactional_id=self.name,
            group_id=group,
            producer_id=self.pid,
            producer_epoch=self.epoch if epoch is None else epoch,
            topics=[TxnOffsetCommitRequestTopic(name=topic, partitions=[partition])],
        )
        self.call(request, 3)

    def end(self, version: int) -> None:
        answer = self.call(EndTxnRequest(**self._said(), committed=True), version)
        if version >= 5:
            self.pid, self.epoch = answer.producer_id, answer.producer_epoch


def _codes(answer: Any) -> Iterator[int]:
    """All error codes of an answer."""
    for name in answer.__slots__:
        value = getattr(answer, name)
        if name in ("error_code", "partition_error_code") and value:
            yield value
        elif isinstance(value, list):
            for each in value:
                if isinstance(each, Message):
                    yield from _codes(each)


def topic(address: str, name: str) -> None:
    admin = AdminClient({"bootstrap.servers": address, "log_level": 0})
    admin.create_topics([NewTopic(name, 1, 1)])[name].result(LIMIT_S)


def named(address: str) -> None:
    topic(address, "written")
    topic(address, "named")
    raw = Raw(address, "names")
    raw.init()
    for sequence in range(2):
        raw.name_partition("written")
        if sequence:
            raw.name_partition("named")
        raw.produce("written", 0 if sequence else sequence, 12)
        raw.end(5)


def unverified(address: str) -> None:
    topic(address, "source")
    hangs = Raw(address, "hangs")
    hangs.init()
    hangs.produce("source", 0, 9)  # in no transaction that its coordinator knows of
    late = Raw(address, "late")
    late.init()
    late.name_group("group")
    late.commit("group", "source", 1)
    late.end(3)
    time.sleep(MARKER_S)
    late.commit("group", "source", 2)  # comes too late, and nobody notices
    fenced = Raw(address, "fenced")
    fenced.init()
    fenced.name_group("group")
    fenced.commit("group", "source", 3)
    fenced.end(3)
    before = fenced.epoch
    fenced.init()
    time.sleep(MARGIN_S)
    fenced.commit("group", "source", 4, epoch=before)  # the log has not seen the new epoch
    late.name_group("group")
    late.commit("group", "source", 5)
    late.end(3)


def recreated(address: str, count: int) -> None:
    admin = AdminClient({"bootstrap.servers": address, "log_level": 0})
    if "orders" in admin.list_topics(timeout=LIMIT_S).topics:
        admin.delete_topics(["orders"])["orders"].result(LIMIT_S)
        time.sleep(2)
    topic(address, "orders")
    producer = Producer({"bootstrap.servers": address, "log_level": 0, "linger.ms": 0})
    for n in range(count):
        producer.produce("orders", f"{count}: {n}", partition=0)
        producer.flush(LIMIT_S)


def renewed(address: str) -> None:
    """One idempotent producer, before and after its topic was made again: all of its records arrive."""
    topic(address, "orders")
    producer = Producer({"bootstrap.servers": address, "log_level": 0, "enable.idempotence": True, "linger.ms": 0})
    failed: list[str] = []

    def send(count: int) -> None:
        for n in range(count):
            producer.produce("orders", b"%d" % n, partition=0, on_delivery=lambda error, _: failed.append(str(error)))
            producer.flush(LIMIT_S)

    send(10)
    admin = AdminClient({"bootstrap.servers": address, "log_level": 0})
    admin.delete_topics(["orders"])["orders"].result(LIMIT_S)
    time.sleep(2)
    topic(address, "orders")
    send(10)
    assert set(failed) == {"None"}


def left_open(address: str) -> None:
    """A transaction that no client ends, and whose time-out is over while the broker is down."""
    topic(address, "orders")
    producer = Producer({
        "bootstrap.servers": address,
        "log_level": 0,
        "transactional.id": "left",
        "transaction.timeout.ms": 1000 * OPEN_S,
    })  # fmt: skip  # one argument, no indent of its own
    producer.init_transactions(LIMIT_S)
    producer.begin_transaction()
    producer.produce("orders", b"open", partition=0)
    producer.flush(LIMIT_S)


def committing(address: str, seconds: float) -> None:
    """Commits of a group, so that its log says when the broker ran."""
    consumer = Consumer({"bootstrap.servers": address, "log_level": 0, "group.id": "running"})
    until = time.monotonic() + seconds
    while True:
        consumer.commit(offsets=[TopicPartition("orders", 0, 0)], asynchronous=False)
        if time.monotonic() > until:
            break
        time.sleep(1)
    consumer.close()


def make_stopped(kafka: Kafka) -> None:
    """stopped_2 and stopped_3."""
    with kafka.running("stopped_1") as address:
        left_open(address)
    shutil.rmtree(GOLDEN / "stopped_1")
    time.sleep(OPEN_S + MARGIN_S)
    for name, seconds in (("stopped_2", 0), ("stopped_3", 3 * MARGIN_S)):
        with kafka.running(name) as address:
            committing(address, seconds)


def wait_for_cleaner(logs: Path) -> None:
    """Until only one segment and the active one are left, or it does not change any more."""
    until, before = time.monotonic() + LIMIT_S, -1
    while time.monotonic() < until:
        time.sleep(5)
        size = sum(path.stat().st_size for path in (logs / "latest-0").glob("*.log"))
        if size == before:
            return
        before = size


def main() -> None:
    """Make all, or those that are named."""
    wanted = sys.argv[2:]
    for name in wanted or [path.name for path in GOLDEN.glob("*")]:
        shutil.rmtree(GOLDEN / name, ignore_errors=True)
    with tempfile.TemporaryDirectory() as folder:
        kafka = Kafka(sys.argv[1], Path(folder))
        made: list[tuple[str, str, tuple[str, ...], Callable[[str], None]]] = [
            ("modern", "", (), lambda address: kafka.java(address, "modern")),
            ("before", "", V1, lambda address: kafka.java(address, "before")),
            ("named", "", (), named),
            ("unverified", "transaction.partition.verification.enable=false\n", V1, unverified),
            ("recreated_1", "", (), lambda address: recreated(address, 10)),
            ("recreated_2", "", (), lambda address: recreated(address, 25)),
            ("renewed", "", (), renewed),
        ]
        for name, more, formatting, make in made:
            if wanted and name not in wanted:
                continue
            sys.stdout.write(f"{name}\n")
            with kafka.running(name, more, formatting) as address:
                make(address)
        if not wanted or "stopped" in wanted:
            for name in ("stopped_2", "stopped_3"):
                shutil.rmtree(GOLDEN / name, ignore_errors=True)
            make_stopped(kafka)
        if wanted and "compacted" not in wanted:
            return
        sys.stdout.write("compacted\n")
        with kafka.running("compacted", "log.cleaner.backoff.ms=500\n") as address:
            kafka.java(address, "compacted")
            wait_for_cleaner(Path(folder) / "compacted" / "logs")


if __name__ == "__main__":
    main()
