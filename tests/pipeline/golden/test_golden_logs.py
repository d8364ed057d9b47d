"""The golden logs: read the same as when they were made, and the same as Kafka's own tool reads them."""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path
from typing import Any

import make
import pyarrow as pa
import pytest

from pipeline.decode.batches import Bounds, Source, chunks
from pipeline.decode.plain import decode_plain
from pipeline.files import open_directory
from pipeline.schema import TOPICS
from pipeline.source.segment_files import list_segments
from pipeline.source.segment_ranges import scan

LOGS = str(make.LOGS)


@pytest.mark.parametrize("view", make.VIEWS)
def test_golden_logs_have_the_rows_they_were_made_for(view):
    assert make.rows_of(view) == (make.HERE / f"{view}.jsonl").read_text().splitlines()


@pytest.mark.parametrize("view", make.VIEWS)
def test_golden_logs_read_the_same_by_the_reference(view):
    columns = pa.Table.from_batches(scan(LOGS, view)).to_pylist()
    files, _ = open_directory(LOGS)
    plain = []
    for each in list_segments(LOGS, TOPICS[view]):
        file = files.open_input_file(each.path)
        for chunk in chunks(file, Source(each.log, each.base_offset), Bounds()):
            plain += decode_plain(chunk, view).to_pylist()
    assert columns == plain


def dumped(libs: str, log: str, *options: str) -> str:
    """What kafka-dump-log prints of a log."""
    main = ("java", "-Xmx192m", "-cp", libs, "org.apache.kafka.tools.DumpLogSegments")
    path = Path(LOGS) / log / f"{0:020d}.log"
    words = [*main, "--deep-iteration", "--print-data-log", *options, "--files", str(path)]
    done = subprocess.run(words, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def batches_and_records(printed: str) -> list[tuple[int, ...]]:
    """What is said of each batch and, behind it, (offset, sequence) of its records."""
    found: list[tuple[int, ...]] = []
    for line in printed.splitlines():
        if line.startswith("baseOffset: "):
            said = dict(re.findall(r"(\w+): (\S+)", line))
            names = (
                "baseOffset",
                "lastOffset",
                "position",
                "size",
                "producerId",
                "producerEpoch",
                "partitionLeaderEpoch",
            )
            flags = ("isTransactional", "isControl")
            found.append((*(int(said[name]) for name in names), *(said[name] == "true" for name in flags)))
        elif line.startswith("| offset: "):
            said = dict(re.findall(r"(\w+): (-?\d+)", line))
            found.append((int(said["offset"]), int(said["sequence"]) if "sequence" in said else -1))
    return found


def rows_as_printed(rows: list[dict[str, Any]]) -> list[tuple[int, ...]]:
    found: list[tuple[int, ...]] = []
    for row in rows:
        control = row["control"] is not None
        names = ("batch_base_offset", "batch_last_offset", "position", "batch_size")
        others = ("producer_id", "producer_epoch", "leader_epoch", "transactional")
        batch = (*(row[name] for name in (*names, *others)), control)
        if not found or batch not in found:
            found.append(batch)
        found.append((row["offset"], row["sequence"]))
    return found


def within(part: Any, whole: Any) -> bool:
    """Kafka leaves out what a version does not have and tagged fields at their default; the rest must be equal."""
    if isinstance(part, dict):
        return isinstance(whole, dict) and all(name in whole and within(part[name], whole[name]) for name in part)
    if isinstance(part, list):
        return isinstance(whole, list) and len(part) == len(whole) and all(map(within, part, whole))
    return bool(part == whole)


STATUSES = (
    *("Empty", "Ongoing", "PrepareCommit", "PrepareAbort"),
    *("CompleteCommit", "CompleteAbort", "Dead", "PrepareEpochFence"),
)


@pytest.mark.parametrize("log", ["codecs-0", "shapes-0", "transactions-0"])
def test_kafkas_tool_reads_golden_logs_alike(kafka_libs, log):
    printed = batches_and_records(dumped(kafka_libs, log))
    rows = pa.Table.from_batches(scan(LOGS, "raw", log.rpartition("-")[0])).to_pylist()
    emptied = [each for each in printed if len(each) > 2 and each[0] not in {row["batch_base_offset"] for row in rows}]
    assert len(emptied) == (log == "shapes-0")
    assert [each for each in printed if each not in emptied] == rows_as_printed(rows)


@pytest.mark.parametrize(
    ("view", "option", "log"),
    [
        ("offsets", "--offsets-decoder", "__consumer_offsets-0"),
        ("offsets", "--offsets-decoder", "__consumer_offsets-1"),
        ("offsets", "--offsets-decoder", "__consumer_offsets-2"),
        ("transactions", "--transaction-log-decoder", "__transaction_state-0"),
    ],
)
def test_kafkas_tool_decodes_golden_records_alike(kafka_libs, view, option, log):
    rows = {row["offset"]: row for row in pa.Table.from_batches(scan(LOGS, view)).to_pylist() if row["log"] == log}
    seen = 0
    for line in dumped(kafka_libs, log, option).splitlines():
        match = re.match(r"\| offset: (\d+) .*? key: (\{.*?\}) payload: (.*)$", line)
        if match is None:
            continue
        row, key = rows[int(match[1])], json.loads(match[2])
        value = None if match[3] == "<DELETE>" else json.loads(match[3])
        seen += 1
        assert int(key["type"]) == row["key_version"]
        if row["kind"] == "OffsetCommit":
            assert key["data"] == {
                "group": row["group"],
                "topic": row["commit_topic"],
                "partition": row["commit_partition"],
            }
            if value is not None:
                data = value["data"]
                assert (data["offset"], data["metadata"]) == (row["commit_offset"], row["commit_metadata"])
                assert data.get("leaderEpoch", -1) == row["commit_leader_epoch"]
                assert data.get("topicId") == row["commit_topic_id"]
        else:
            assert within(key["data"], json.loads(row["key_json"]))
            if value is not None:
                data, status = value["data"], value["data"].get("transactionStatus")
                if isinstance(status, str):  # since 4.4 the tool names it
                    data["transactionStatus"] = STATUSES.index(status)
                assert within(data, json.loads(row["value_json"]))
        if value is not None:
            assert int(value["version"]) == row["value_version"]
        assert (value is None) == row["tombstone"]
    own_or_markers = sum(row["kind"] is None or row["kind"] == "TransactionGroup" for row in rows.values())
    assert seen == len(rows) - own_or_markers
