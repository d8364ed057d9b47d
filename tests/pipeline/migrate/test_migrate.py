"""Topics and groups of one broker, in another: every record and every position equal, whatever stopped the job."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer
from job_kit import parsed
from source_broker import PARTITIONS, commit, committed, config, delete_records, fill, make_topics, read, settings

from momus import Broker
from momus.client.wire import Connection
from pipeline import tables
from pipeline.errors import PipelineError
from pipeline.jobs import archive
from pipeline.jobs import migrate as job
from pipeline.migrate import plan, worker
from pipeline.source.metadata_log import METADATA
from protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from protocol.record_batch import build_batch

pytestmark = pytest.mark.timeout(600)
COUNT = 1500
DELETED = 20  # records of orders-1, in the middle of a batch
GROUPS = {
    "early": [("orders", 0, 10, "a"), ("orders", 1, 0, "")],
    "behind-the-aborted": [("orders", p, 400, "m") for p in range(PARTITIONS)],
    "at-the-end": [("latest", 0, 5, ""), ("silent", 1, 0, "nothing yet"), ("orders", 2, 515, "near the end")],
}


class Source:
    """A broker's directory, and what its own readers saw before it was stopped."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        with Broker(data_dir=directory, config={"group.initial.rebalance.delay.ms": 0}) as broker:
            address = broker.bootstrap_servers
            make_topics(address)
            fill(address, COUNT)
            for group, offsets in GROUPS.items():
                commit(address, group, offsets)
            delete_records(address, "orders", 1, DELETED)
            self.ahead = {
                (topic, partition, offset): read(address, topic, partition, offset)
                for offsets in GROUPS.values()
                for topic, partition, offset, _ in offsets
            }
            self.records = {("orders", p): read(address, "orders", p) for p in range(PARTITIONS)}
            for topic in ("latest", "stamped"):
                self.records[topic, 0] = read(address, topic, 0)


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Source:
    return Source(tmp_path_factory.mktemp("source"))


@pytest.fixture
def target() -> Iterator[str]:
    with Broker() as broker:
        yield broker.bootstrap_servers
        assert broker.log == ""


def migrated(spark: Any, directory: Path, target: str, output: Path, *words: str) -> tuple[int, dict[str, Any]]:
    code = job.run(spark, parsed(job, directory, output, "-b", target, "-X", "log_level=0", *words))
    return code, json.loads(output.read_text())


def of_logs(proof: dict[str, Any]) -> tuple[Any, Any]:
    """What a proof says of records and groups, whatever the source and the target were called."""
    return proof["partitions"], proof["groups"]


def test_migrate_everything_is_equal_and_proven(spark, source, target, tmp_path):
    code, proof = migrated(spark, source.directory, target, tmp_path / "proof.json")

    assert (code, proof["equal"]) == (0, True)
    for (topic, partition), records in source.records.items():
        assert read(target, topic, partition) == records
    by_log = {each["log"]: each for each in proof["partitions"]}
    assert set(by_log) == {*(f"orders-{p}" for p in range(PARTITIONS)), "latest-0", "stamped-0", "silent-0", "silent-1"}
    for (topic, partition), records in source.records.items():
        entry = by_log[f"{topic}-{partition}"]
        assert entry["records"] == entry["target_end_offset"] == len(records)
    assert by_log["orders-1"]["source_first_offset"] == DELETED
    assert len(source.records["orders", 1]) == len(source.records["orders", 0]) - DELETED
    assert proof["source_starts"].startswith("known")
    assert all(by_log[f"orders-{p}"]["left_out"] == {"markers": 2, "uncommitted": 20} for p in range(PARTITIONS))

    for group, offsets in GROUPS.items():
        there = committed(target, group, [(topic, partition) for topic, partition, _, _ in offsets])
        for (topic, partition, offset, metadata), (found, text) in zip(offsets, there, strict=True):
            assert text == metadata
            assert read(target, topic, partition, found) == source.ahead[topic, partition, offset]
    assert len(proof["groups"]) == sum(map(len, GROUPS.values()))

    assert config(target, "latest", "cleanup.policy", "retention.ms") == ["compact", "123456789"]
    assert config(target, "stamped", "message.timestamp.type", "retention.ms") == ["LogAppendTime", "604800000"]


def test_migrate_groups_in_pieces_are_proven_as_in_one(spark, source, target, tmp_path, monkeypatch):
    with Broker() as other:
        _, wanted = migrated(spark, source.directory, other.bootstrap_servers, tmp_path / "wanted.json")
    set_at_once: list[int] = []
    set_all = job.Groups.set

    def counted(groups, group, positions):
        set_at_once.append(len(positions))
        set_all(groups, group, positions)

    monkeypatch.setattr(job, "MOST_POSITIONS", 2)
    monkeypatch.setattr(job.Groups, "set", counted)

    _, proof = migrated(spark, source.directory, target, tmp_path / "proof.json")

    assert of_logs(proof) == of_logs(wanted)
    assert max(set_at_once) == 2
    assert sum(set_at_once) == len(proof["groups"])


def test_migrate_sorts_the_records_once(spark, source, target, tmp_path, monkeypatch):
    sorts: list[int] = []
    in_order = plan.in_order

    def counted(records, logs):
        sorts.append(logs)
        return in_order(records, logs)

    monkeypatch.setattr(plan, "in_order", counted)

    migrated(spark, source.directory, target, tmp_path / "proof.json")

    assert len(sorts) == 1


def test_migrate_target_that_another_writes_to_is_not_equal(spark, source, target, tmp_path, monkeypatch):
    copy = job.record_copy.copied_records

    def copied(*words):
        done = copy(*words)
        producer = Producer(settings(target))
        producer.produce("latest", b"somebody else's", key=b"k", partition=0)
        producer.flush(20)
        return done

    monkeypatch.setattr(job.record_copy, "copied_records", copied)
    code, proof = migrated(spark, source.directory, target, tmp_path / "proof.json", "--topic", "latest")

    assert (code, proof["equal"], proof["groups"]) == (1, False, [])
    [entry] = proof["partitions"]
    assert entry["difference"] == f"the record at offset {entry['records']} is not the source's"
    assert entry["source_sha256"] != entry["target_sha256"]


def test_migrate_that_fails_leaves_no_part_of_a_proof_and_no_connection(spark, source, target, tmp_path, monkeypatch):
    def refused(*_):
        raise PipelineError("a group must have no members in the target")

    closed, close = [], job.Groups.close
    monkeypatch.setattr(job.Groups, "set", refused)
    monkeypatch.setattr(job.Groups, "close", lambda groups: closed.append(close(groups)))
    with pytest.raises(PipelineError, match="no members"):
        migrated(spark, source.directory, target, tmp_path / "proof.json")
    assert list(tmp_path.iterdir()) == []
    assert len(closed) == 1


def test_migrate_from_an_archive_says_and_copies_what_the_directory_does(spark, source, target, tmp_path):
    archived = tmp_path / "archive"
    assert archive.run(spark, parsed(archive, source.directory, archived, "--topics", "*")) == 0
    with Broker() as other:
        _, wanted = migrated(spark, source.directory, other.bootstrap_servers, tmp_path / "wanted.json")

    code, proof = migrated(spark, archived, target, tmp_path / "proof.json")

    assert (code, proof["equal"]) == (0, True)
    assert of_logs(proof) == of_logs(wanted)
    for (topic, partition), records in source.records.items():
        assert read(target, topic, partition) == records


def test_migrate_from_an_archive_without_its_topics_is_refused(spark, source, target, tmp_path):
    archived = tmp_path / "archive"
    assert archive.run(spark, parsed(archive, source.directory, archived, "--topics", "orders")) == 0

    with pytest.raises(PipelineError, match=r"lacks the metadata log: archive --topics '\*'"):
        migrated(spark, archived, target, tmp_path / "proof.json")


def test_migrate_task_killed_in_the_middle_is_resumed_without_a_double(spark, source, target, tmp_path):
    def dying(rows):
        from confluent_kafka import Consumer, TopicPartition  # they cannot be pickled

        for n, row in enumerate(rows):
            if n == 300:
                look = Consumer({"bootstrap.servers": target, "group.id": "look", "log_level": 0})
                place = TopicPartition(row.topic, row.partition)
                while not look.get_watermark_offsets(place, timeout=10)[1]:
                    pass
                os.kill(os.getpid(), signal.SIGKILL)
            yield row

    path, client = str(source.directory), {"bootstrap.servers": target, "log_level": "0"}
    topics = plan.matching_topics(
        plan.topics_of(plan.metadata_values(tables.raw(spark, path, METADATA), path)), ["orders"]
    )
    job.Target(client).open_topics(topics.values(), 1)
    raw = tables.raw(spark, path, "orders")
    records = plan.marked(raw, plan.uncommitted(raw))
    with pytest.raises(Exception, match=r"crashed|exited"):
        plan.in_order(records, 1).mapPartitions(dying).mapPartitions(worker.copier(client)).collect()
    left = sum(len(read(target, "orders", p)) for p in range(PARTITIONS))
    assert 0 < left < COUNT

    code, proof = migrated(spark, source.directory, target, tmp_path / "proof.json", "--topic", "orders")

    assert (code, proof["equal"]) == (0, True)
    for partition in range(PARTITIONS):
        assert read(target, "orders", partition) == source.records["orders", partition]
    nothing_left, _ = migrated(spark, source.directory, target, tmp_path / "proof.json", "--topic", "orders")
    assert nothing_left == 0
    assert len(read(target, "orders", 0)) == len(source.records["orders", 0])


def test_migrate_target_with_other_records_is_refused(spark, source, target, tmp_path):
    producer = Producer(settings(target))
    producer.produce("latest", b"somebody else's")
    producer.flush(20)

    with pytest.raises(PipelineError, match="latest-0 of the target holds something else: its record 0 is not"):
        migrated(spark, source.directory, target, tmp_path / "proof.json", "--topic", "latest")

    assert len(read(target, "latest", 0)) == 1


def test_migrate_target_with_another_partition_count_is_refused(spark, source, target, tmp_path):
    producer = Producer(settings(target))
    producer.produce("orders", b"made by itself")
    producer.flush(20)

    with pytest.raises(PipelineError, match="topic orders has 3 partitions, but 1 in the target"):
        migrated(spark, source.directory, target, tmp_path / "proof.json", "--topic", "orders")


def test_migrate_topic_that_is_not_there_is_refused(spark, source, target, tmp_path):
    with pytest.raises(PipelineError, match="has no topic nothing"):
        migrated(spark, source.directory, target, tmp_path / "proof.json", "--topic", "nothing")


def test_migrate_record_that_the_producer_would_give_another_time_is_refused(spark, target, tmp_path):
    with Broker(data_dir=tmp_path / "source") as broker:
        make_topics(broker.bootstrap_servers)
        host, _, port = broker.bootstrap_servers.rpartition(":")
        connection = Connection(host, int(port), 10)
        data = PartitionProduceData(index=0, records=build_batch([(b"k", b"v")], timestamp_ms=0))
        topics = [TopicProduceData(name="latest", partition_data=[data])]
        answer = connection.call(ProduceRequest(acks=-1, timeout_ms=5000, topic_data=topics), 9)
        assert not answer.responses[0].partition_responses[0].error_code
        connection.close()

    with pytest.raises(PipelineError, match="latest-0 has a record with the timestamp 0 at offset 0: "):
        migrated(spark, tmp_path / "source", target, tmp_path / "proof.json", "--topic", "latest")


def test_migrate_with_speculation_is_refused(spark, source, target, tmp_path, monkeypatch):
    conf = spark.sparkContext.getConf().set("spark.speculation", "true")
    monkeypatch.setattr(type(spark.sparkContext), "getConf", lambda _: conf)

    with pytest.raises(PipelineError, match=r"cannot run with spark\.speculation=true"):
        migrated(spark, source.directory, target, tmp_path / "proof.json", "--topic", "latest")
    assert not (tmp_path / "proof.json").exists()


def test_digest_every_part_of_a_record_counts():
    same = (1, b"k", b"v", [("h", b"x")])
    others = [
        (2, b"k", b"v", [("h", b"x")]), (1, b"kv", b"", [("h", b"x")]), (1, None, b"v", [("h", b"x")]),
        (1, b"", b"v", [("h", b"x")]), (1, b"k", None, [("h", b"x")]), (1, b"k", b"v", [("h", None)]),
        (1, b"k", b"v", []), (1, b"k", b"v", [("h", b"x"), ("h", b"x")]),
    ]  # fmt: skip  # several to a line
    digests = [worker.digest(*each) for each in (same, *others)]
    assert len(set(digests)) == len(digests)
    assert worker.digest(*same) == digests[0]
