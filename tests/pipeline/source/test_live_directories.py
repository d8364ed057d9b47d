"""Directories that real brokers wrote: momus with groups of all three kinds, and Apache Kafka."""

from __future__ import annotations

import json
from collections import Counter

import pyarrow as pa
import pytest
from apache_kafka import apache_kafka
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic
from wire_peer import Peer, make_topic

from momus import Broker
from momus.optimistic import NONE, commit_if
from pipeline.decode.batches import Bounds, Source, chunks
from pipeline.decode.columnar import decode_columns
from pipeline.decode.plain import decode_plain
from pipeline.files import open_directory
from pipeline.schema import TOPICS, VIEWS
from pipeline.source.segment_files import list_segments
from pipeline.source.segment_ranges import scan
from protocol.messages.streams_group import (
    StreamsGroupHeartbeatRequest,
    StreamsGroupHeartbeatRequestSubtopology,
    StreamsGroupHeartbeatRequestTopology,
)

PARTITIONS = 40
CONFIG = {
    "group.initial.rebalance.delay.ms": 0,
    "message.max.bytes": 1000,
    "offsets.topic.num.partitions": 2,
    "transaction.state.log.num.partitions": 2,
}


def equal_to_the_reference(path) -> None:
    files, _ = open_directory(str(path))
    for view in VIEWS:
        for each in list_segments(str(path), TOPICS[view]):
            file = files.open_input_file(each.path)
            for chunk in chunks(file, Source(each.log, each.base_offset), Bounds()):
                columns = pa.Table.from_batches(list(decode_columns(chunk, view)), VIEWS[view])
                assert columns.to_pylist() == decode_plain(chunk, view).to_pylist()


def rows(path, view, topic=None) -> list[dict]:
    return pa.Table.from_batches(scan(str(path), view, topic), VIEWS[view]).to_pylist()


def write_and_read(address: str, group: str, protocol: str, rounds: int) -> None:
    """A transactional copy: every other transaction is aborted."""
    conf = {"bootstrap.servers": address, "log_level": 0}
    producer = Producer({**conf, "transactional.id": f"tx-{group}"})
    producer.init_transactions(60)
    consumer = Consumer(
        {
            **conf,
            "group.id": group,
            "group.protocol": protocol,
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
        }
    )
    consumer.subscribe(["orders"])
    for n in range(rounds):
        message = consumer.poll(60)
        assert message is not None
        producer.begin_transaction()
        producer.produce("copies", message.value())
        producer.flush(60)
        producer.send_offsets_to_transaction(
            consumer.position(consumer.assignment()), consumer.consumer_group_metadata()
        )
        (producer.abort_transaction if n % 2 else producer.commit_transaction)(60)
    consumer.commit(offsets=[TopicPartition("orders", 0, 7)], asynchronous=False)
    consumer.close()


def streams_member(peer: Peer) -> None:
    topology = StreamsGroupHeartbeatRequestTopology(
        epoch=1, subtopologies=[StreamsGroupHeartbeatRequestSubtopology(subtopology_id="0", source_topics=["orders"])]
    )
    join = StreamsGroupHeartbeatRequest(
        group_id="streams",
        member_id="m-1",
        rebalance_timeout_ms=60_000,
        topology=topology,
        active_tasks=[],
        standby_tasks=[],
        warmup_tasks=[],
        process_id="p-1",
        client_tags=[],
    )
    answer = peer.call(join, 0)
    assert answer.error_code == 0, answer.error_message


@pytest.mark.e2e
def test_directory_of_a_live_broker_equals_the_reference_and_tells_what_happened(tmp_path):
    with Broker(data_dir=tmp_path, config=CONFIG) as broker:
        at = broker.bootstrap_servers
        with Peer(broker) as peer:
            make_topic(peer, "orders", 1)
            make_topic(peer, "copies", 1)
            make_topic(peer, "wide", PARTITIONS)
            for codec in ("none", "gzip", "snappy", "lz4", "zstd"):
                plain = Producer({"bootstrap.servers": at, "compression.type": codec, "log_level": 0})
                for n in range(4):
                    plain.produce("orders", b"order %d" % n * 5, headers=[("n", b"%d" % n)])
                plain.flush(30)
            write_and_read(at, "classic", "classic", 4)
            write_and_read(at, "consumer", "consumer", 4)
            streams_member(peer)
            commit_if(at, "wide", {("wide", p): (p, NONE) for p in range(PARTITIONS)})
        equal_to_the_reference(tmp_path)  # while it runs
    equal_to_the_reference(tmp_path)

    assert {row["compression"] for row in rows(tmp_path, "raw", "orders")} == {"none", "gzip", "snappy", "lz4", "zstd"}
    markers = Counter(row["control"] for row in rows(tmp_path, "raw", "copies"))
    assert markers == {None: 8, "COMMIT": 4, "ABORT": 4}
    offsets = rows(tmp_path, "offsets")
    kinds = {row["kind"] for row in offsets}
    assert kinds >= {
        "OffsetCommit",
        "GroupMetadata",
        "ConsumerGroupCurrentMemberAssignment",
        "StreamsGroupTopology",
        None,
    }
    wide = [row for row in offsets if row["group"] == "wide" and row["kind"] == "OffsetCommit"]
    assert [row["commit_offset"] for row in wide] == list(range(PARTITIONS))
    assert len({row["batch_base_offset"] for row in wide}) > 1
    assert {(row["commit_id"], row["commit_size"]) for row in wide} == {(wide[0]["offset"], PARTITIONS)}
    own = [row for row in offsets if row["group"] == "consumer" and row["commit_offset"] == 7]
    assert len(own) == 1
    assert own[0]["member_id"]
    assert own[0]["generation"] >= 1
    assert own[0]["client_id"] == "rdkafka"
    assert not own[0]["transactional"]
    states = rows(tmp_path, "transactions")
    ended = Counter(row["txn_state"] for row in states if row["txn_state"] in ("CompleteCommit", "CompleteAbort"))
    assert ended == {"CompleteCommit": 4, "CompleteAbort": 4}
    assert {json.loads(row["key_json"])["transactionalId"] for row in states} == {"tx-classic", "tx-consumer"}


def test_directory_of_apache_kafka_equals_the_reference_and_what_was_committed(kafka_libs, tmp_path):
    with apache_kafka(kafka_libs, tmp_path) as address:
        admin = AdminClient({"bootstrap.servers": address, "log_level": 0})
        for made in admin.create_topics([NewTopic(name, 1, 1) for name in ("orders", "copies")]).values():
            made.result(60)
        plain = Producer({"bootstrap.servers": address, "compression.type": "lz4", "log_level": 0})
        for n in range(10):
            plain.produce("orders", b"order %d" % n * 5)
        assert plain.flush(60) == 0
        for protocol in ("classic", "consumer"):
            write_and_read(address, protocol, protocol, 4)
    logs = tmp_path / "logs"
    equal_to_the_reference(logs)
    offsets = rows(logs, "offsets")
    last = {row["group"]: row["commit_offset"] for row in offsets if row["kind"] == "OffsetCommit"}
    assert last == {"classic": 7, "consumer": 7}
    kinds = {row["kind"] for row in offsets}
    assert kinds >= {"GroupMetadata", "ConsumerGroupMetadata", "ConsumerGroupCurrentMemberAssignment"}
    assert not any(row["kind"] and row["kind"].startswith("unknown") for row in offsets)
    assert all(
        row["value_json"] for row in offsets if row["kind"] not in ("OffsetCommit", None) and not row["tombstone"]
    )
    assert Counter(row["control"] for row in rows(logs, "raw", "copies")) == {None: 8, "COMMIT": 4, "ABORT": 4}
    states = Counter(row["txn_state"] for row in rows(logs, "transactions"))
    assert states["CompleteCommit"] == states["CompleteAbort"] == 4
