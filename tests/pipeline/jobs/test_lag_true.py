"""What the lag job says of consumers that stopped, empty partitions, clients' clocks and open transactions."""

from __future__ import annotations

import argparse
import itertools
import json
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, TopicPartition
from confluent_kafka.admin import AdminClient
from made_logs import Logs

from momus import Broker
from pipeline.jobs import lag
from pipeline.jobs.registry import job_parser
from protocol.record_batch import build_batch

CO = "__consumer_offsets-0"
PAST_MS = 1_700_000_000_000
OFFSET, END, LAG, SECONDS = (
    "kafka_consumergroup_current_offset",
    "kafka_topic_partition_current_offset",
    "kafka_consumergroup_lag",
    "kafka_consumergroup_lag_seconds",
)


def ask(session: Any, capsys: pytest.CaptureFixture[str], directory: Path, *words: str) -> list[dict[str, Any]]:
    args: argparse.Namespace = job_parser("lag", lag).parse_args(["--input", str(directory), *words])
    assert lag.run(session, args) == 0
    return [json.loads(line) for line in capsys.readouterr().out.splitlines()]


def dated(logs: Logs, log: str, count: int, ahead_ms: int) -> None:
    """Records of a client whose clock is ahead."""
    batch = build_batch([(b"k", b"v")] * count, timestamp_ms=logs.tick() + ahead_ms)
    logs.append(log, batch, count)


@pytest.fixture(scope="module")
def directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made: Path = tmp_path_factory.mktemp("lag")
    logs = Logs(made)
    logs._clock = itertools.count(PAST_MS)  # what is dated after now does not say when the last record came
    logs.data("t-0", 10)
    logs.roll("t-1")  # a partition that is empty
    logs.data("ahead-0", 100)
    dated(logs, "ahead-0", 900, 10**12)
    logs.data("tail-0", 5)
    logs.skip("tail-0", 3)  # the cleaner has removed the last records of the segment
    logs.roll("tail-0")
    logs.data("open-0", 5)
    logs.commit(CO, "stopped", {0: 10, 1: 0}, member="m", generation=1)
    logs.commit(CO, "late", {0: 100}, topic="ahead", member="m", generation=1)
    logs.commit(CO, "late", {0: 1}, topic="tail", member="m", generation=1)
    logs.commit(CO, "careful", {0: 5}, topic="open", member="m", generation=1)
    logs.data("open-0", 3, pid=1, epoch=0, sequence=0, txn=True)
    logs.tick(60_000)
    for _ in range(50):  # the producer goes on when its consumer has stopped
        logs.data("t-0", 100)
    return made


def last(rows: list[dict[str, Any]]) -> dict[tuple[str, str, int], dict[str, Any]]:
    """The rows of the last moment."""
    newest = max(row["time"] for row in rows)
    return {(row["consumergroup"], row["topic"], row["partition"]): row for row in rows if row["time"] == newest}


def test_consumer_that_stopped_is_behind_by_all_that_came_after(engine, capsys, directory):
    found = last(ask(engine, capsys, directory, "--step", "10"))
    row = found["stopped", "t", 0]
    assert (row[OFFSET], row[END], row[LAG]) == (10, 5010, 5000)
    assert row[SECONDS] < 11  # the first unread record was written 60 s after the others


def test_empty_partition_has_no_lag(engine, capsys, directory):
    row = last(ask(engine, capsys, directory, "--last"))["stopped", "t", 1]
    assert (row[OFFSET], row[END], row[LAG], row[SECONDS]) == (0, 0, 0, 0.0)


def test_log_whose_last_records_were_removed_ends_where_the_next_one_will_be(engine, capsys, directory):
    row = last(ask(engine, capsys, directory, "--last"))["late", "tail", 0]
    assert (row[END], row[LAG]) == (8, 7)


def test_partitions_without_records_have_the_lag_that_kafkas_tool_tells(engine, capsys, tmp_path):
    """Never written, and all records deleted; with a topic its offsets are deleted."""
    with Broker(data_dir=tmp_path) as broker:
        for topic in ("never", "emptied", "gone"):
            broker.create_topic(topic)
            if topic != "never":
                for n in range(10):
                    broker.produce(topic, str(n))
        at = {"bootstrap.servers": broker.bootstrap_servers}
        member = Consumer({**at, "group.id": "g"})
        places = [TopicPartition(topic, 0, 0 if topic == "never" else 4) for topic in ("never", "emptied", "gone")]
        member.commit(offsets=places, asynchronous=False)
        member.close()
        admin = AdminClient(at)
        for done in admin.delete_records([TopicPartition("emptied", 0, 10)]).values():
            done.result(60)
        admin.delete_topics(["gone"])["gone"].result(60)
        found = last(ask(engine, capsys, tmp_path, "--last"))
        assert {key[1]: (row[OFFSET], row.get(END), row.get(LAG)) for key, row in found.items()} == {
            "never": (0, 0, 0), "emptied": (4, 10, 6),
        }  # fmt: skip  # in one line


def test_records_that_a_client_has_dated_ahead_are_counted(engine, capsys, directory):
    row = last(ask(engine, capsys, directory, "--last", "--topic", "ahead"))["late", "ahead", 0]
    assert (row[END], row[LAG]) == (1000, 900)
    [before] = ask(engine, capsys, directory, "--as-of", row["time"].replace("Z", "+00:00"), "--group", "late")
    assert before[LAG] == 0  # of an earlier time only records' own times tell


def test_end_is_the_last_stable_offset_on_demand(engine, capsys, directory):
    words = ("--last", "--group", "careful")
    [row] = ask(engine, capsys, directory, *words)
    assert (row[END], row[LAG]) == (8, 3)
    [row] = ask(engine, capsys, directory, *words, "--stable")
    assert (row[END], row[LAG], row[SECONDS]) == (5, 0, 0.0)


def test_stalled_partitions_have_records_and_do_not_move(engine, capsys, directory):
    rows = ask(engine, capsys, directory, "--stalled", "60")
    assert {(row["consumergroup"], row["topic"], row["partition"]) for row in rows} == {
        ("stopped", "t", 0), ("late", "ahead", 0), ("late", "tail", 0), ("careful", "open", 0),
    }  # fmt: skip  # in one line each
    assert all(row["moved_at"] < row["time"] for row in rows)
    assert ask(engine, capsys, directory, "--stalled", "90") == []
