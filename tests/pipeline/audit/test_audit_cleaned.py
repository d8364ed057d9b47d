"""Logs that the cleaner has been in: no finding, in the directory or in an archive that the broker did not wait for."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from archived import archived, rows_of
from audit_fault_kit import CO
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, AlterConfigOpType, ConfigEntry, ConfigResource, ResourceType

from momus import Broker
from pipeline import tables
from pipeline.audit.audit import Audit
from pipeline.audit.directory import audit_of
from pipeline.demo.traffic import ORDERS, SHIPMENTS, Traffic
from pipeline.jobs.audit import summary

pytestmark = pytest.mark.timeout(900)
STATES = "__transaction_state"
CONFIG = {
    "group.initial.rebalance.delay.ms": 0,
    "offsets.topic.num.partitions": 1,
    "transaction.state.log.num.partitions": 1,
    "log.cleaner.backoff.ms": 50,
    "archive.retain.group": "archive",
    "archive.retain.max.bytes": 1,
}
MOST_STEPS = 3000


def let_clean(address: str) -> None:
    """Small segments, and a cleaner that takes any."""
    wanted = {"internal.segment.bytes": "3000", "min.cleanable.dirty.ratio": "0.01", "cleanup.policy": "compact"}
    admin = AdminClient({"bootstrap.servers": address})
    resources = []
    for topic in (CO, STATES, SHIPMENTS):
        entries = [
            ConfigEntry(name, value, incremental_operation=AlterConfigOpType.SET) for name, value in wanted.items()
        ]
        resources.append(ConfigResource(ResourceType.TOPIC, topic, incremental_configs=entries))
    for done in admin.incremental_alter_configs(resources).values():
        done.result(30)


def transact(address: str) -> Iterator[None]:
    """Transactions over data and offsets, each fourth of them aborted, in turns of two producers."""
    group = Consumer({"bootstrap.servers": address, "group.id": "late"})
    producers = [Producer({"bootstrap.servers": address, "transactional.id": f"late-{n}"}) for n in range(2)]
    for producer in producers:
        producer.init_transactions(30)
    for step in range(MOST_STEPS):
        producer = producers[step % 2]
        producer.begin_transaction()
        for n in range(3):
            producer.produce(SHIPMENTS, b"late %d" % step, key=b"%d" % n, partition=n)
        producer.send_offsets_to_transaction([TopicPartition(ORDERS, 0, step)], group.consumer_group_metadata(), 30)
        if step % 4:
            producer.commit_transaction(30)
        else:
            producer.abort_transaction(30)
        yield
    raise AssertionError("nothing was cleaned")


def is_cleaned(spark: Any, data: Path, ends: dict[str, int]) -> bool:
    """Whether all three have lost offsets behind these ends."""
    lacking = tables.coverage(spark, str(data), "raw").where("missing").collect()
    cut = {row["topic"] for row in lacking if row["to_offset"] > ends.get(row["log"], 0) + 10}
    return {CO, STATES, SHIPMENTS} <= cut


@pytest.fixture(scope="module")
def outcome(spark: Any, tmp_path_factory: pytest.TempPathFactory) -> tuple[Audit, Audit, str]:
    """The audits of logs that were cleaned, and of an archive from before and after; the broker's log."""
    root = tmp_path_factory.mktemp("cleaned")
    data, output = root / "data", root / "archive"
    with Broker(data_dir=data, config=CONFIG) as broker:
        Traffic(broker.bootstrap_servers).run(3.0)
        broker.stop()
        archived(spark, data, output, "--topics", "*")
        ends = {
            log: end
            for view in ("raw", "offsets", "transactions")
            for log, end in tables.archive_start_offsets(str(output), view).items()
        }
        broker.start()
        let_clean(broker.bootstrap_servers)
        for step, _ in enumerate(transact(broker.bootstrap_servers)):
            if step % 100 == 99 and is_cleaned(spark, data, ends):
                break
        broker.stop()
        said = broker.log
    archived(spark, data, output, "--topics", "*")
    return audit_of(spark, str(data)), audit_of(spark, str(output)), said


@pytest.mark.long
def test_audit_of_logs_after_cleaning_has_no_finding(outcome):
    made, _, _ = outcome
    assert rows_of(made.findings) == []
    assert {row["reason"] for row in made.gaps.collect()} <= {"removed", "cleaned"}
    lacking = {row["topic"] for row in made.coverage.where("not complete").collect()}
    assert {CO, STATES, SHIPMENTS} <= lacking


@pytest.mark.long
def test_audit_of_an_archive_tells_what_the_broker_did_not_wait_for(outcome):
    _, made, said = outcome
    assert "are held back; the archive will have a gap" in said
    assert rows_of(made.findings) == []
    reasons = {(row["log"].rpartition("-")[0], row["reason"]) for row in made.gaps.collect()}
    assert reasons == {(topic, "unwaited") for topic in (CO, STATES, SHIPMENTS)}
    assert all(row["start_offset"] == 0 for row in made.coverage.collect())
    [line] = [line for line in summary(made, 0, archived=True) if line.startswith(f"coverage: {CO}-0 lacks ")]
    assert "more was held back than archive.retain.max.bytes allows" in line
