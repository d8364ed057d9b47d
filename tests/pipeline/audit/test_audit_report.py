"""The report of logs that hold groups of all kinds and faults: what it makes of them, and the records that prove it."""

from __future__ import annotations

import json
import shutil
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from job_kit import run
from made_logs import OFFSETS, STATES, Logs

from broker.coordinator.offsets.commit_batch import offset_key_prefix
from broker.coordinator.offsets.provenance import provenance
from broker.coordinator.share.combine import StateBatch
from broker.coordinator.share.state import Key, ShareState, snapshot_record, update_key, update_value
from broker.coordinator.transactions.transaction import State
from pipeline.jobs import archive
from pipeline.report.figures import Figures, figures
from pipeline.report.limits import limits
from pipeline.report.page import page
from pipeline.report.proof_records import share_record
from protocol.codegen import codec
from protocol.messages.coordinator_records import OffsetCommitValue, encode_record
from protocol.messages.share_group_records import (
    ShareGroupMemberMetadataKey,
    ShareGroupMemberMetadataValue,
    ShareGroupMetadataKey,
    ShareGroupMetadataValue,
)
from protocol.messages.streams_group_records import StreamsGroupMetadataKey, StreamsGroupMetadataValue
from protocol.record_batch import build_batch

KAFKA_SHARE = Path(__file__).parent / "kafka_share"
LOG = f"{OFFSETS}-0"


def written(logs: Logs, key: Any, value: Any) -> None:
    raw = key.API_KEY.to_bytes(2, "big") + codec(type(key), 0).encode(key)
    told = None if value is None else encode_record(value, 0)
    logs.append(LOG, build_batch([(raw, told)], timestamp_ms=logs.tick()), 1)


def by_operator(logs: Logs, group: str) -> None:
    """A commit from outside of the group."""
    key = offset_key_prefix(group, "t") + bytes(4)
    value = encode_record(OffsetCommitValue(offset=1, commit_timestamp=logs.now_ms, metadata=""), 3)
    record = (key, value, provenance("", None, -1, "admin"))
    logs.append(LOG, build_batch([record], timestamp_ms=logs.tick()), 1)


def kip_890(logs: Logs, name: str, pid: int, log: str) -> None:
    """A committed transaction of version 2: it ends in the next epoch."""
    partitions = {log.rpartition("-")[0]: [0]}
    logs.state(f"{STATES}-0", name, State.ONGOING, pid, 0, partitions)
    logs.data(log, 2, pid, 0, 0, txn=True)
    logs.state(f"{STATES}-0", name, State.PREPARE_COMMIT, pid, 1, partitions)
    logs.marker(log, pid, 1)
    logs.state(f"{STATES}-0", name, State.COMPLETE_COMMIT, pid, 1)


@pytest.fixture(scope="module")
def directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Groups of five kinds, transactions of both versions, one that is open, and three faults."""
    logs = Logs(tmp_path_factory.mktemp("faulty") / "data")
    logs.data("t-0", 100)
    logs.classic_group(LOG, "classic", 1)
    for offset in (20, 60, 40):  # the last one is a fault
        logs.commit(LOG, "classic", {0: offset}, member="m", generation=1)
    logs.classic_group(LOG, "classic", 2)
    logs.consumer_group(LOG, "consumer", 3)
    logs.consumer_group(LOG, "consumer", 3)  # says nothing new
    written(logs, StreamsGroupMetadataKey(group_id="streams"), StreamsGroupMetadataValue(epoch=4, metadata_hash=0))
    for epoch in (5, 6, 7):
        written(logs, ShareGroupMetadataKey(group_id="share"), ShareGroupMetadataValue(epoch=epoch, metadata_hash=0))
    for member in ("one", "two"):
        value = ShareGroupMemberMetadataValue(client_id="c", client_host="h", subscribed_topic_names=[])
        written(logs, ShareGroupMemberMetadataKey(group_id="share", member_id=member), value)
    written(logs, ShareGroupMemberMetadataKey(group_id="share", member_id="two"), None)
    logs.commit(LOG, "simple", {0: 7})
    by_operator(logs, "operated")
    logs.commit(LOG, "elsewhere", {0: 7}, topic="absent")
    for sequence in (0, 5, 0):  # the last one is a fault
        logs.data("dup-0", 5, pid=4, epoch=0, sequence=sequence)
    logs.transaction("old", 9, 0, "txn-0")
    logs.transaction("new", 10, 0, "txn-0", markers=[(1, 0)], sequence=0)
    kip_890(logs, "version-2", 12, "txn-0")
    logs.state(f"{STATES}-0", "late", State.ONGOING, 11, 0, {"txn": [0]})
    return logs.directory


@pytest.fixture(scope="module")
def found(spark: Any, directory: Path) -> Figures:
    return figures(spark, str(directory))


def test_groups_of_all_kinds_are_there_with_their_epochs_and_members(found):
    rows = {row["group"]: tuple(row[name] for name in ("kind", "changes", "epoch", "members")) for row in found.groups}
    assert rows == {
        "classic": ("classic", 2, 2, 0),
        "consumer": ("consumer", 1, 3, 0),
        "streams": ("streams", 1, 4, 0),
        "share": ("share", 3, 7, 1),
        "simple": ("simple", 0, None, None),
        "elsewhere": ("simple", 0, None, None),
        "operated": ("simple", 0, None, None),
    }
    assert found.kinds == {"classic": 1, "consumer": 1, "share": 1, "simple": 3, "streams": 1}
    assert [(group, epoch) for _, group, epoch in found.rebalances if group == "share"] == [
        ("share", 5), ("share", 6), ("share", 7),
    ]  # fmt: skip  # several to a line
    assert {row["group"]: row["commits"] for row in found.groups if row["commits"]} == {
        "classic": 3, "simple": 1, "elsewhere": 1, "operated": 1,
    }  # fmt: skip  # several to a line
    assert found.lag["simple"].values[-1] == 93
    assert found.lag["classic"].values[-1] == 60
    assert "elsewhere" not in found.lag
    assert found.without_lag == 1
    assert found.commits_total == 6


def test_each_finding_has_its_record_and_the_one_that_it_contradicts_decoded(found):
    records = {(row["log"], row["offset"]): row["fields"] for row in found.records_named}
    named = {row["kind"]: row for row in found.findings}
    went_back, again = named["offset-regression"], named["duplicate-sequence"]

    said = records[went_back["log"], went_back["offset"]]
    assert said["record"] == "OffsetCommit"
    assert json.loads(said["key"]) == {"group": "classic", "topic": "t", "partition": 0}
    assert json.loads(said["value"])["offset"] == 40
    assert json.loads(said["committed by"]) == {"member_id": "m", "generation": 1}
    before = records[went_back["proof_log"], went_back["proof_offset"]]
    assert json.loads(before["value"])["offset"] == 60
    repeated = records[again["log"], again["offset"]]
    assert (repeated["key"], repeated["value"]) == ("k0", "v0")
    assert repeated["producer"] == "id 4, epoch 0, sequence 0"
    first = records[again["proof_log"], again["proof_offset"]]
    assert first["producer"].startswith("id 4, epoch 0, sequence")
    markers = [fields for fields in records.values() if fields.get("marker") == "ABORT"]
    assert markers
    states = [fields for (log, _), fields in records.items() if log.startswith(STATES)]
    assert states
    assert all(json.loads(fields["key"])["transactionalId"] == "new" for fields in states)
    text = page(found)
    for row in found.findings:
        assert f">{row['log']} @ {row['offset']}</a>" in text
    assert text.count('<article class="record"') == len(records)


def test_limits_are_those_of_the_logs(found):
    said = limits(found)
    assert found.outcomes == {"committed": 3, "open": 1}
    assert found.old_transactions == 2
    assert not found.was_clean
    assert sorted(row["group"] for row in found.unnamed) == ["elsewhere", "simple"]
    assert found.unnamed_groups == 2
    assert found.unnamed_commits == sum(row["commits"] for row in found.unnamed) > 0
    for words in (
        "2 committed transactions of version 1",
        "How 1 transaction will end",
        "DeleteRecords",
        "1 share group ",
        "1 streams group ",
        "The lag of 1 group:",
    ):
        assert [each for each in said if words in each], words


@pytest.mark.long
def test_records_behind_findings_come_from_an_archive_as_well(spark, directory, found, tmp_path):
    assert run(archive, spark, directory, tmp_path / "archive", "--topics", "*") == 0
    again = figures(spark, str(tmp_path / "archive"))
    assert again.records_named == found.records_named
    assert again.groups == found.groups
    assert again.lag == found.lag


def test_share_groups_of_apache_kafka_have_their_lag(spark, tmp_path):
    """By the golden logs: set back to 25 and 0 of 30, done; five more in each partition, done in one, then in both."""
    folder = tmp_path / "data"
    shutil.copytree(KAFKA_SHARE, folder)
    (folder / ".kafka_cleanshutdown").touch()
    made = figures(spark, str(folder))
    assert made.kinds == {"share": 2}
    assert made.was_clean
    assert {row["group"]: row["epoch"] for row in made.groups} == {"work": 12, "committed": 4}
    values = made.lag["work"].values
    steps = [value for before, value in pairwise([None, *values]) if value != before]
    assert steps[-5:] == [35, 0, 10, 5, 0]


def test_share_record_is_shown_by_its_fields_and_no_other_is():
    key = Key("g", bytes(16), 2)
    update = share_record(update_key(key), update_value(1, 0, 40, -1, [StateBatch(40, 44, 2, 1)]))
    snapshot = share_record(*snapshot_record(key, ShareState(3, 1, 0, 7, 0, 1, 1)))
    assert update is not None
    assert snapshot is not None
    assert (update["record"], snapshot["record"]) == ("ShareUpdate", "ShareSnapshot")
    assert json.loads(update["key"])["groupId"] == json.loads(snapshot["key"])["groupId"] == "g"
    assert json.loads(update["value"])["stateBatches"][0]["lastOffset"] == 44
    assert json.loads(snapshot["value"])["startOffset"] == 7
    assert (share_record(update_key(key), None) or {})["value"] == "none (deleted)"
    assert share_record(b"\0\7abc", b"") is None
    assert share_record(update_key(key), b"\0\0") is None
    assert share_record(None, b"x") is None
