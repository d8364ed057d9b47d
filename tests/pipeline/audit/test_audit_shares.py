"""Share groups: each fault, written into a log as no broker writes it, is found at its place; what is no fault is not.

`kafka_share` is what Apache Kafka wrote while consumers did all that they may do: nothing is found there, and in a copy
of it exactly what is planted; nor in `kafka_dead_letters`, with a dead-letter queue. tests/e2e/make_kafka_share_logs.py
makes both.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from made_logs import ABORT, COMMIT, Logs
from pyspark.sql import functions as F
from test_share_walk import ACKNOWLEDGED, ARCHIVED, ARCHIVING, AVAILABLE, snapshot, update

from broker.coordinator.share.state import Key
from pipeline.audit.directory import audit_of
from pipeline.audit.share_states import SKIPPED
from pipeline.audit.shares import ShareInput, _still_there, share_findings
from protocol.codegen import codec
from protocol.messages.coordinator_records import encode_record
from protocol.messages.metadata_records import ConfigRecord
from protocol.messages.metadata_records import encode_record as metadata_value
from protocol.messages.share_group_records import (
    ShareGroupStatePartitionMetadataKey,
    ShareGroupStatePartitionMetadataValue,
)
from protocol.messages.share_group_records import (
    ShareGroupStatePartitionMetadataValueTopicPartitionsInfo as TopicPartitionsInfo,
)
from protocol.record import encode_records
from protocol.record_batch import assemble_batch, build_batch
from storage.files.checkpoints import uuid_from_text, uuid_text

GOLDEN = Path(__file__).parent / "kafka_share"
STATE = "__share_group_state-0"
METADATA = "__cluster_metadata-0"

# -- whole audits


class Fault(NamedTuple):
    """kind at offset of STATE (None: no finding), its sentence, its proof there, if it has one.

    lost: missing offsets between the two, which make a doubt of it.
    """

    kind: str | None
    offset: int = 0
    says: str = ""
    proof: int | None = None
    lost: int = 0


class ShareLogs(Logs):
    """With share groups and their topics, each with an id of its own."""

    def __init__(self, directory: Path) -> None:
        super().__init__(directory)
        self.written: dict[int, tuple[int, int]] = {}  # offset of STATE -> its segment and time

    def write(self, record: Any) -> int:
        at_ms = self.tick()
        place = self.append(STATE, build_batch([record], timestamp_ms=at_ms), 1)
        self.written[place] = max(int(path.stem) for path in (self.directory / STATE).glob("*.log")), at_ms
        return place

    def thinned(self, log: str, count: int) -> None:
        """A batch of which the cleaner has left the first record."""
        section, at_ms = encode_records([(b"k", b"v")], self.tick(), self.now_ms)
        batch = assemble_batch(
            section, base_offset=0, leader_epoch=0, attributes=0, last_offset_delta=count - 1, base_timestamp=at_ms,
            max_timestamp=at_ms, producer_id=-1, producer_epoch=-1, base_sequence=-1, record_count=1,
        )  # fmt: skip  # several to a line
        self.append(log, batch, count)

    def topic(self, name: str, other_id: bytes | None = None, *, partition: int = 0, initialized: bool = True) -> Key:
        """A topic that a group of the same name reads; its directory says other_id."""
        topic_id = name.encode().ljust(16, b"\0")
        key = ShareGroupStatePartitionMetadataKey(group_id=name)
        info = TopicPartitionsInfo(topic_id=topic_id, topic_name=name, partitions=[0, 1])
        value = ShareGroupStatePartitionMetadataValue(
            initializing_topics=[] if initialized else [info],
            initialized_topics=[info] if initialized else [],
            deleting_topics=[],
        )
        raw = key.API_KEY.to_bytes(2, "big") + codec(type(key), 0).encode(key)
        batch = build_batch([(raw, encode_record(value, 0))], timestamp_ms=self.tick())
        self.append("__consumer_offsets-0", batch, 1)
        folder = self.directory / f"{name}-{partition}"
        folder.mkdir()
        (folder / "partition.metadata").write_text(f"version: 0\ntopic_id: {uuid_text(other_id or topic_id)}\n")
        return Key(name, topic_id, partition)

    def limit(self, group: str, value: str | None) -> None:
        record = ConfigRecord(resource_type=32, resource_name=group, name="share.delivery.count.limit", value=value)
        self.append(METADATA, build_batch([(None, metadata_value(record, 0))], timestamp_ms=self.tick()), 1)


def again(logs: ShareLogs) -> Fault:
    key = logs.topic("again")
    logs.write(snapshot(key=key))
    logs.write((None, b"of no group"))
    before = logs.write(update(0, (0, 4, ACKNOWLEDGED, 1), key=key))
    logs.roll(STATE)
    place = logs.write(update(0, (2, 2, ACKNOWLEDGED, 2), key=key))
    logs.write(update(0, (5, 5, ACKNOWLEDGED, 2), key=key))
    says = "record 2 is acknowledged at delivery 2, but was acknowledged at delivery 1"
    return Fault("share-delivered-again", place, says, before)


def again_behind_a_gap(logs: ShareLogs) -> Fault:
    key = logs.topic("again2")
    logs.write(snapshot(key=key))
    before = logs.write(update(0, (0, 4, ACKNOWLEDGED, 1), key=key))
    logs.skip(STATE, 2)
    place = logs.write(update(0, (2, 2, ACKNOWLEDGED, 2), key=key))
    says = "record 2 is acknowledged at delivery 2, but was acknowledged at delivery 1"
    return Fault("share-delivered-again", place, says, before, lost=2)


def beyond_its_own_limit(logs: ShareLogs) -> Fault:
    key = logs.topic("limited")
    logs.limit("limited", "3")
    logs.write(snapshot(key=key))
    logs.write(update(0, (0, 4, AVAILABLE, 3), key=key))
    says = "records 0 to 1 came to delivery 4, the limit is 3"
    return Fault("share-delivery-limit", logs.write(update(0, (0, 1, ACKNOWLEDGED, 4), key=key)), says)


def within_a_limit_that_was_lowered(logs: ShareLogs) -> Fault:
    key = logs.topic("lowered")
    logs.limit("lowered", "8")
    logs.write(snapshot(key=key))
    logs.limit("lowered", "3")
    logs.write(update(0, (0, 4, AVAILABLE, 8), key=key))
    return Fault(None)


def within_the_limit_before_a_setting(logs: ShareLogs) -> Fault:
    """Of one partition; the group's other one is younger than the setting."""
    key = logs.topic("lateset")
    logs.write(snapshot(key=key))
    logs.limit("lateset", "3")
    logs.write(update(0, (0, 4, ARCHIVED, 10), key=key))
    logs.write(snapshot(key=key._replace(partition=1)))
    return Fault(None)


def within_the_limit_after_a_setting(logs: ShareLogs) -> Fault:
    key = logs.topic("unset")
    logs.limit("unset", "3")
    logs.write(snapshot(key=key))
    logs.limit("unset", None)
    logs.write(update(0, (0, 4, ARCHIVED, 10), key=key))
    return Fault(None)


def beyond_all_limits(logs: ShareLogs) -> Fault:
    key = logs.topic("default")
    logs.write(snapshot(key=key))
    says = "records 0 to 4 came to delivery 11, the limit is 10"
    return Fault("share-delivery-limit", logs.write(update(0, (0, 4, ARCHIVED, 11), key=key)), says)


def never_delivered(logs: ShareLogs) -> Fault:
    key = logs.topic("never")
    logs.write(snapshot(key=key))
    says = "records 7 to 8 are archived, but never came to a consumer"
    return Fault("share-unread", logs.write(update(0, (7, 8, ARCHIVED, 0), key=key)), says)


def dead_letters(logs: ShareLogs) -> Fault:
    """Rejected, written to the queue and archived; then some that Kafka could not archive. The start passes all."""
    key = logs.topic("letters")
    logs.data("letters-0", 10)
    logs.write(snapshot(key=key))
    logs.write(update(0, (0, 4, ARCHIVING, 1), (5, 9, ARCHIVING, 2), key=key))
    logs.write(update(5, (0, 4, ARCHIVED, 1), key=key))
    logs.write(update(10, key=key))
    return Fault(None)


def dead_letter_delivered_again(logs: ShareLogs) -> Fault:
    key = logs.topic("letters2")
    logs.write(snapshot(key=key))
    before = logs.write(update(0, (0, 4, ARCHIVING, 1), key=key))
    place = logs.write(update(0, (1, 2, ACKNOWLEDGED, 2), key=key))
    says = "records 1 to 2 are acknowledged at delivery 2, but were on the way to a dead-letter queue at delivery 1"
    return Fault("share-delivered-again", place, says, before)


def dead_letter_never_delivered(logs: ShareLogs) -> Fault:
    key = logs.topic("letters3")
    logs.write(snapshot(key=key))
    says = "record 7 is on the way to a dead-letter queue, but never came to a consumer"
    return Fault("share-unread", logs.write(update(0, (7, 7, ARCHIVING, 0), key=key)), says)


def dead_letter_beyond_the_limit(logs: ShareLogs) -> Fault:
    key = logs.topic("letters4")
    logs.limit("letters4", "2")
    logs.write(snapshot(key=key))
    logs.write(update(0, (0, 0, ARCHIVING, 2), key=key))
    says = "record 1 came to delivery 3, the limit is 2"
    return Fault("share-delivery-limit", logs.write(update(0, (1, 1, ARCHIVING, 3), key=key)), says)


def passed_by(records: str) -> str:
    return f"the start offset passed {records}, neither acknowledged nor archived, but still there"


def passed(logs: ShareLogs) -> Fault:
    """Records in two batches of a partition that is not the first."""
    key = logs.topic("passed", partition=1)
    logs.data("passed-1", 6)
    logs.data("passed-1", 4)
    logs.write(snapshot(key=key))
    before = logs.write(update(0, (0, 4, ACKNOWLEDGED, 1), (5, 6, AVAILABLE, 1), key=key))
    place = logs.write(update(7, key=key))
    logs.write(update(8, (7, 7, ACKNOWLEDGED, 1), key=key))
    return Fault("share-unread", place, passed_by("records 5 to 6"), before)


def passed_the_end_of_a_batch(logs: ShareLogs) -> Fault:
    """Of a topic whose share partitions are being made."""
    key = logs.topic("batchend", initialized=False)
    logs.data("batchend-0", 6)
    logs.write(snapshot(key=key))
    before = logs.write(update(0, (0, 4, ACKNOWLEDGED, 1), key=key))
    return Fault("share-unread", logs.write(update(9, key=key)), passed_by("records 5 to 8"), before)


def passed_the_begin_of_a_batch(logs: ShareLogs) -> Fault:
    key = logs.topic("batchbegin")
    logs.skip("batchbegin-0", 6)
    logs.data("batchbegin-0", 2)
    before = logs.write(snapshot(key=key))
    return Fault("share-unread", logs.write(update(7, key=key)), passed_by("records 0 to 6"), before)


def passed_behind_a_gap(logs: ShareLogs) -> Fault:
    key = logs.topic("passed2")
    logs.data("passed2-0", 10)
    before = logs.write(snapshot(key=key))
    logs.skip(STATE, 3)
    return Fault("share-unread", logs.write(update(7, key=key)), passed_by("records 0 to 6"), before, lost=3)


def passed_what_the_cleaner_removed(logs: ShareLogs) -> Fault:
    key = logs.topic("cleaned")
    logs.thinned("cleaned-0", 10)
    logs.write(snapshot(key=key))
    logs.write(update(0, (0, 0, ACKNOWLEDGED, 1), key=key))
    logs.write(update(10, key=key))
    return Fault(None)


def passed_what_is_deleted(logs: ShareLogs) -> Fault:
    key = logs.topic("deleted")
    logs.skip("deleted-0", 10)
    logs.data("deleted-0", 10)
    logs.write(snapshot(key=key))
    logs.write(update(10, key=key))
    return Fault(None)


def passed_what_is_no_record(logs: ShareLogs) -> Fault:
    """A marker, and an aborted transaction."""
    key = logs.topic("aborted")
    logs.transaction("aborted", 21, 0, "aborted-0", kind=ABORT)
    logs.transaction("aborted", 21, 0, "aborted-0", kind=COMMIT, sequence=2)
    logs.write(snapshot(key=key))
    logs.write(update(0, (3, 4, ACKNOWLEDGED, 1), key=key))
    logs.write(update(6, key=key))
    return Fault(None)


def passed_committed(logs: ShareLogs) -> Fault:
    key = logs.topic("committed")
    logs.transaction("committed", 22, 0, "committed-0", kind=COMMIT)
    before = logs.write(snapshot(key=key))
    return Fault("share-unread", logs.write(update(2, key=key)), passed_by("records 0 to 1"), before)


CASES: list[Callable[[ShareLogs], Fault]] = [
    again, again_behind_a_gap, beyond_its_own_limit, within_a_limit_that_was_lowered,
    within_the_limit_before_a_setting, within_the_limit_after_a_setting, beyond_all_limits, never_delivered,
    dead_letters, dead_letter_delivered_again, dead_letter_never_delivered, dead_letter_beyond_the_limit, passed,
    passed_the_end_of_a_batch, passed_the_begin_of_a_batch, passed_behind_a_gap, passed_what_is_deleted,
    passed_what_the_cleaner_removed, passed_what_is_no_record, passed_committed,
]  # fmt: skip  # several to a line


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
