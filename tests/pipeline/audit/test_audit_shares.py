"""Share groups: each fault, written into a log as no broker writes it, is found at its place; what is no fault is not.

`kafka_share` is what Apache Kafka wrote while consumers did all that they may do: nothing is found there, and in a copy
of it exactly what is planted; nor in `kafka_dead_letters`, with a dead-letter queue. tests/e2e/make_kafka_share_logs.py
makes both.
"""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest
from faults_of_shares import CASES
from pyspark.sql import functions as F
from share_logs_kit import METADATA, STATE, ShareLogs
from test_share_walk import ACKNOWLEDGED, ARCHIVED, AVAILABLE, snapshot, update

from broker.coordinator.share.state import Key
from pipeline.audit.directory import audit_of
from pipeline.audit.share_states import SKIPPED
from pipeline.audit.shares import ShareInput, _still_there, share_findings
from protocol.record_batch import build_batch
from storage.files.checkpoints import uuid_from_text, uuid_text

GOLDEN = Path(__file__).parent / "kafka_share"


def found_in(made: Any) -> list[tuple[Any, ...]]:
    return sorted(
        (row["kind"], row["log"], row["offset"], row["group"], row["proof_offset"]) for row in made.findings.collect()
    )


def test_every_fault_is_found_at_its_place_and_nothing_else(spark, tmp_path):
    logs = ShareLogs(tmp_path / "data")
    logs.directory.mkdir()
    promised = {case.__name__: case(logs) for case in CASES}
    (logs.directory / ".kafka_cleanshutdown").touch()
    made = audit_of(spark, str(logs.directory))
    rows = [(row, 0) for row in made.findings.collect()]
    rows += [(row, row["lost"]) for row in made.undecided.collect()]
    assert sorted((row["log"], row["offset"], row["kind"], lost) for row, lost in rows) == sorted(
        (STATE, fault.offset, fault.kind, fault.lost) for fault in promised.values() if fault.kind
    )
    found = {row["offset"]: row for row, _ in rows}
    for fault in promised.values():
        if fault.kind:
            row = found[fault.offset]
            assert row["detail"] == fault.says
            assert (row["proof_log"], row["proof_offset"]) == (None if fault.proof is None else STATE, fault.proof)
            assert (row["segment"], round(row["timestamp"].timestamp() * 1000)) == logs.written[fault.offset]


def test_where_records_may_have_been_deleted_nothing_is_said(spark, tmp_path):
    """The broker was not stopped; and the directory is that of another topic of the name.

    In the first one, older settings of the group may be gone too.
    """
    for clean, other_id in ((False, None), (True, b"x" * 16)):
        logs = ShareLogs(tmp_path / f"data{clean}")
        logs.directory.mkdir()
        key = logs.topic("passed", other_id)
        logs.data("passed-0", 10)
        logs.skip(METADATA, 0 if clean else 1)
        logs.limit("passed", "25" if clean else "3")
        logs.write(snapshot(key=key))
        place = logs.write(update(7, (8, 8, ARCHIVED, 11), key=key))
        if clean:
            (logs.directory / ".kafka_cleanshutdown").touch()
        made = audit_of(spark, str(logs.directory))
        assert made.findings.collect() == []
        assert [tuple(row) for row in made.doubts.collect()] == [("share-unread", STATE, None, 1, place)]


def test_a_limit_can_be_given(spark, tmp_path):
    logs = ShareLogs(tmp_path)
    logs.write(snapshot())
    place = logs.write(update(0, (0, 4, ARCHIVED, 6)))
    assert found_in(audit_of(spark, str(tmp_path))) == []
    assert found_in(audit_of(spark, str(tmp_path), 5)) == [("share-delivery-limit", STATE, place, "g", None)]


def test_records_are_walked_in_the_order_of_their_offsets(spark):
    """Spark may bring them in any."""
    written = (snapshot(), update(0, (0, 4, ACKNOWLEDGED, 1)), update(0, (2, 2, ACKNOWLEDGED, 2)))
    rows = [(STATE, 0, at, None, None, *record, 0) for at, record in enumerate(written)]
    columns = "segment bigint, offset bigint, timestamp timestamp, control string, key binary, value binary"
    records = spark.createDataFrame(rows[::-1], f"log string, {columns}, lost_before bigint").coalesce(1)
    found = share_findings(ShareInput(records, {}, 5, {}.get, is_whole=False), records, records, records)
    assert [(row["offset"], row["proof_offset"]) for row in found.collect()] == [(2, 1)]


def test_of_several_ranges_that_a_start_offset_passed_the_first_is_told(spark):
    """Spark may bring them in any order."""
    key = Key("g", b"t".ljust(16, b"\0"), 0)
    of_key = (1, None, "g", uuid_text(key.topic_id), 0)  # segment, timestamp, group, topic id, partition
    passed = [(STATE, SKIPPED, 7, 3, 0, first, first + 1, f"from {first}", *of_key) for first in (10, 20, 30)]
    columns = "segment bigint, timestamp timestamp, group string, topic_id string, partition int"
    batches = spark.createDataFrame(
        [("t-0", first, first + 1, 2, None, False) for first in (30, 20, 10)],
        "log string, offset bigint, last_offset bigint, read_records int, control string, transactional boolean",
    )
    named = f'{{"topicId": "{uuid_text(key.topic_id)}", "topicName": "t"}}'
    offsets = spark.createDataFrame(
        [("ShareGroupStatePartitionMetadata", False, f'{{"initializingTopics": [], "initializedTopics": [{named}]}}')],
        "kind string, tombstone boolean, value_json string",
    )
    shares = ShareInput(batches, {}, 5, {"t-0": uuid_text(key.topic_id)}.get, is_whole=True)
    for rows in (passed, passed[::-1]):
        skipped = spark.createDataFrame(
            rows,
            "log string, what string, offset bigint, proof_offset bigint, lost bigint, first bigint, last bigint, "
            f"detail string, {columns}",
        ).coalesce(1)
        found = _still_there(skipped, batches, batches.withColumn("ended_as", F.lit(None)).limit(0), offsets, shares)
        assert [(row["detail"], row["lost"], row["data_log"]) for row in found.collect()] == [("from 10", 0, "t-0")]


# -- Apache Kafka's own


def golden(folder: Path, made: Path = GOLDEN) -> Path:
    """A copy, as of a broker that was stopped."""
    shutil.copytree(made, folder)
    (folder / ".kafka_cleanshutdown").touch()
    return folder


@pytest.mark.parametrize("name", ["kafka_share", "kafka_dead_letters"])
def test_nothing_is_found_in_the_logs_of_apache_kafka(spark, tmp_path, name):
    made = audit_of(spark, str(golden(tmp_path / "logs", GOLDEN.with_name(name))))
    assert found_in(made) == []
    assert made.doubts.where("kind like 'share%'").collect() == []  # the coordinator's log of transactions is not kept


def plant(path: Path, at: int, record: Any) -> None:
    """Write a record into a log instead of the batch at an offset, or behind its end."""
    data, position, parts = path.read_bytes(), 0, list[bytes]()
    while position < len(data):
        size = 12 + int.from_bytes(data[position + 8 : position + 12], "big")
        parts.append(data[position : position + size])
        position += size
    mine = at.to_bytes(8, "big") + build_batch([record], timestamp_ms=2_000_000_000_000)[8:]
    mine = mine[:12] + parts[-1][12:16] + mine[16:]  # the leader epoch, which the CRC does not cover
    bases = [int.from_bytes(part[:8], "big") for part in parts]
    if at in bases:
        parts[bases.index(at)] = mine
    else:
        assert at > bases[-1]
        parts.append(mine)
    path.write_bytes(b"".join(parts))


def test_what_is_planted_into_the_logs_of_apache_kafka_is_found_and_nothing_else(spark, tmp_path):
    """In the end of group `work`, whose limit is 3: snapshot 2, 25-29 acknowledged, 30-34 released, acknowledged."""
    folder = golden(tmp_path / "logs")
    log = "__share_group_state-1"
    path = folder / log / f"{0:020d}.log"
    text = (folder / "shared-0" / "partition.metadata").read_text()
    key = Key("work", uuid_from_text(text.rpartition(":")[2].strip()), 0)
    plant(path, 28, update(25, (25, 26, ACKNOWLEDGED, 1), (28, 29, ACKNOWLEDGED, 1), epoch=2, key=key))  # not 27
    plant(path, 31, update(30, (31, 31, AVAILABLE, 3), epoch=2, key=key))
    plant(path, 32, update(30, (32, 32, ACKNOWLEDGED, 3), (33, 33, ARCHIVED, 4), epoch=2, key=key))
    plant(path, 33, update(30, (36, 36, ARCHIVED, 0), epoch=2, key=key))
    assert found_in(audit_of(spark, str(folder))) == [
        ("share-delivered-again", log, 31, "work", 30),
        ("share-delivered-again", log, 32, "work", 30),
        ("share-delivered-again", log, 32, "work", 30),
        ("share-delivery-limit", log, 32, "work", None),
        ("share-unread", log, 29, "work", 28),
        ("share-unread", log, 33, "work", None),
    ]
