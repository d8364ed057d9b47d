"""Clients of before record batches: Produce 0-2 and Fetch 0-3 have message sets, where an older release is imitated."""

from __future__ import annotations

from typing import Any

import pytest
from core_broker import Client, World
from core_requests import fetch_request
from unit.partitions.data_path import NOW_MS, DataPath, batch

from broker.config.release_tables import RELEASES
from broker.turn.decision import LATER
from protocol.errors import ErrorCode
from protocol.message_set import build_message_set, read_message_set
from protocol.messages.fetch import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from protocol.messages.topics import CreatableTopic, CreateTopicsRequest
from protocol.record import Record
from protocol.record_batch import LOG_APPEND_TIME, MAGIC, TRANSACTIONAL, BatchHeader, iter_batches, iter_records

MANY = 1 << 20
NONE, GZIP, SNAPPY, LZ4, ZSTD = range(5)


@pytest.fixture
def path() -> DataPath:
    made = DataPath()
    made.topic()
    return made


def message_set(*values: bytes | None, magic: int = 1, codec: int = NONE, ts: int = NOW_MS, **more: Any) -> bytes:
    records = [Record(at, ts + at, b"k%d" % at, value) for at, value in enumerate(values)]
    return build_message_set(records, magic, codec=codec, **more)


def stored(path: DataPath) -> list[tuple[BatchHeader, list[Record]]]:
    """The batches in the log."""
    records = path.fetch(0).records
    data = records if isinstance(records, bytes) else records.read()
    return [(header, list(iter_records(data[at : at + header.size]))) for at, header in iter_batches(data)]


def messages(records: bytes) -> list[tuple[int, int, bytes | None, bytes | None]]:
    """Offset, timestamp, key and value of each message; offsets are those of the outer ones where there is no codec."""
    offsets, at = [], 0
    while at < len(records):
        offsets.append(int.from_bytes(records[at : at + 8], "big"))
        at += 12 + int.from_bytes(records[at + 8 : at + 12], "big")
    read = read_message_set(records, MANY).records
    if len(read) != len(offsets):
        offsets = [offsets[-1] - len(read) + 1 + each for each in range(len(read))]
    return [(offset, ms, key, value) for offset, (key, value, _, ms) in zip(offsets, read, strict=True)]


def topic_of(client: Client) -> None:
    """Topic t, by a version that every release has."""
    topic = CreatableTopic(name="t", num_partitions=1, replication_factor=1)
    assert client.call(CreateTopicsRequest(topics=[topic], timeout_ms=1000), 2).topics[0].error_code == 0


# ---------------------------------------------------------------- versions


@pytest.mark.parametrize("name", ["", *(name for name, _, _ in RELEASES)])
def test_old_versions_are_served_as_the_release_has_them(name: str) -> None:
    is_old = name != "" and name[0] < "4"
    partition = ListOffsetsPartition(partition_index=0, timestamp=-1, max_num_offsets=1)
    data = TopicProduceData(name="t", partition_data=[PartitionProduceData(index=0, records=message_set(b"a"))])
    for request, newest in (
        (ProduceRequest(acks=1, timeout_ms=1000, topic_data=[data]), 2),
        (fetch_request("t", 0, 0), 3),
        (ListOffsetsRequest(replica_id=-1, topics=[ListOffsetsTopic(name="t", partitions=[partition])]), 0),
    ):
        for version in range(newest + 1):
            world = World("os", as_version=name) if name else World("os")
            topic_of(Client(world))
            client = Client(world)
            client.send(request, version)
            world.run()
            assert client.closed is not is_old, f"{type(request).__name__} v{version}"
            assert bool(client.transport.received) is is_old


def test_frames_of_old_versions_carry_records_both_ways() -> None:
    """Through the codecs, and as often as repeats would begin."""
    world = World("os", as_version="2.1")
    topic_of(client := Client(world))
    for count in range(4):
        for version in range(3):
            data = message_set(b"v%d%d" % (count, version), magic=version // 2)
            part = TopicProduceData(name="t", partition_data=[PartitionProduceData(index=0, records=data)])
            answer = client.call(ProduceRequest(acks=1, timeout_ms=1000, topic_data=[part]), version)
            [answered] = answer.responses[0].partition_responses
            assert (answered.error_code, answered.base_offset) == (0, count * 3 + version)
    values = [b"v%d%d" % (count, version) for count in range(4) for version in range(3)]
    for _ in range(3):
        for version in range(4):
            [answered] = client.call(fetch_request("t", 0, 0), version).responses[0].partitions
            assert (answered.error_code, answered.high_watermark) == (0, 12)
            found = messages(answered.records)
            assert [value for *_, value in found] == values
            assert [offset for offset, *_ in found] == list(range(12))
            assert answered.records[16] == version // 2


# ---------------------------------------------------------------- Produce


@pytest.mark.parametrize("codec", [NONE, GZIP, SNAPPY, LZ4])
@pytest.mark.parametrize("magic", [0, 1])
def test_message_set_becomes_one_batch(path: DataPath, magic: int, codec: int) -> None:
    answer = path.produce(message_set(b"a", None, b"c", magic=magic, codec=codec), version=2)
    assert (answer.error_code, answer.base_offset, answer.log_append_time_ms) == (0, 0, -1)
    [(header, records)] = stored(path)
    assert (header.magic, header.codec, header.record_count, header.producer_id) == (MAGIC, codec, 3, -1)
    expected = [NOW_MS, NOW_MS + 1, NOW_MS + 2] if magic else [-1] * 3
    assert [(r.key, r.value, r.timestamp) for r in records] == list(
        zip((b"k0", b"k1", b"k2"), (b"a", None, b"c"), expected, strict=True)
    )


def test_several_wrappers_and_plain_messages_become_one_batch(path: DataPath) -> None:
    sent = message_set(b"a", b"b", codec=GZIP) + message_set(b"c") + message_set(b"d", codec=SNAPPY)
    assert path.produce(sent + message_set(b"cut off")[:-1], version=2).error_code == 0
    [(header, records)] = stored(path)
    assert (header.codec, [r.value for r in records]) == (SNAPPY, [b"a", b"b", b"c", b"d"])
    assert path.produce(message_set(b"e"), version=2).base_offset == 4


def test_batch_of_magic_2_is_taken_as_it_is(path: DataPath) -> None:
    assert path.produce(batch((b"k", b"v", [("h", b"1")])), version=2).error_code == 0
    assert stored(path)[0][1][0].headers == (("h", b"1"),)


def test_log_append_time_of_the_topic_is_set_and_answered() -> None:
    path = DataPath()
    path.topic(message_timestamp_type="LogAppendTime")
    answer = path.produce(message_set(b"a", magic=0), version=2)
    assert (answer.error_code, answer.log_append_time_ms) == (0, path.now_ms)
    assert stored(path)[0][1][0].timestamp == path.now_ms
    [found] = messages(path.fetch(0, version=2).records)
    assert found == (0, path.now_ms, b"k0", b"a")
    assert read_message_set(path.fetch(0, version=2).records, MANY).append_ms == path.now_ms


def test_producers_claim_of_append_time_becomes_a_create_time(path: DataPath) -> None:
    sent = message_set(b"a", is_append_time=True)
    assert sent[17] & LOG_APPEND_TIME
    assert path.produce(sent, version=2).error_code == 0
    [(header, [record])] = stored(path)
    assert (header.is_log_append_time, record.timestamp) == (False, NOW_MS)


def corrupt(data: bytes, at: int) -> bytes:
    return data[:at] + bytes((data[at] ^ 1,)) + data[at + 1 :]


def wrapped(inner: bytes, magic: int = 1) -> bytes:
    """Bytes as the value of a message that says that they are compressed by gzip."""
    import zlib

    deflate = zlib.compressobj(wbits=31)
    packed = deflate.compress(inner) + deflate.flush()
    body = bytes((magic, GZIP)) + (bytes(8) if magic else b"") + b"\xff\xff\xff\xff" + len(packed).to_bytes(4, "big")
    body += packed
    return bytes(8) + (len(body) + 4).to_bytes(4, "big") + zlib.crc32(body).to_bytes(4, "big") + body


@pytest.mark.parametrize(
    ("records", "code"),
    [
        (corrupt(message_set(b"a"), -1), ErrorCode.CORRUPT_MESSAGE),
        (corrupt(message_set(b"a", magic=0, codec=GZIP), -1), ErrorCode.CORRUPT_MESSAGE),
        (wrapped(corrupt(message_set(b"a"), -1)), ErrorCode.CORRUPT_MESSAGE),
        (wrapped(message_set(b"a", codec=GZIP)), ErrorCode.INVALID_RECORD),
        (wrapped(message_set(b"a", magic=0)), ErrorCode.INVALID_RECORD),
        (b"", ErrorCode.INVALID_RECORD),
        (message_set(b"a")[:-1], ErrorCode.INVALID_RECORD),
        (message_set(b"a" * 2000), ErrorCode.MESSAGE_TOO_LARGE),
    ],
)
def test_wrong_message_set_is_refused_and_the_next_one_is_not(records: bytes, code: ErrorCode) -> None:
    path = DataPath()
    path.topic(max_message_bytes="1000")
    answer = path.produce(records, version=2)
    assert (answer.error_code, answer.base_offset) == (code, -1)
    assert path.produce(message_set(b"b"), version=2).base_offset == 0


def test_wrappers_are_inflated_up_to_the_limit_together() -> None:
    path = DataPath()
    path.partition(path.topic(), 0).rules.max_inflated_bytes = 3000
    half = message_set(bytes(1600), codec=GZIP)
    assert path.produce(half, version=2).error_code == 0
    assert path.produce(half + half, version=2).error_code == ErrorCode.MESSAGE_TOO_LARGE


# ---------------------------------------------------------------- Fetch


@pytest.mark.parametrize("codec", [NONE, GZIP, SNAPPY, LZ4])
@pytest.mark.parametrize("version", range(4))
def test_batches_become_message_sets_without_headers(path: DataPath, version: int, codec: int) -> None:
    for first in (0, 3):
        values = [(b"k", b"v%d" % at, [("h", b"1")], NOW_MS + at) for at in range(first, first + 3)]
        path.produce(batch(*values, attributes=codec))
    records = path.fetch(0, version=version).records
    assert records[16] == version // 2
    assert [each[3] for each in messages(records)] == [b"v%d" % at for at in range(6)]
    assert [each[1] for each in messages(records)] == [NOW_MS + at if version > 1 else -1 for at in range(6)]
    # from the middle of a batch: a compressed message is whole, and its client drops what it has
    later = messages(path.fetch(4, version=version).records)
    begin = 3 if codec else 4
    assert [(offset, value) for offset, _, _, value in later] == [(at, b"v%d" % at) for at in range(begin, 6)]


def test_markers_are_left_out_and_aborted_records_are_data(path: DataPath) -> None:
    path.transactions.code = ErrorCode.NONE
    for seq, commit in ((0, True), (1, False)):
        sent = batch(b"%d" % seq, pid=7, epoch=0, seq=seq, attributes=TRANSACTIONAL)
        assert path.produce(sent, transactional_id="x").error_code == 0
        path.mark(7, 0, commit=commit, version=1)
    assert path.produce(batch(b"end")).base_offset == 4
    found = messages(path.fetch(0, version=1).records)
    assert [(offset, value) for offset, _, _, value in found] == [(0, b"0"), (2, b"1"), (4, b"end")]
    # a client that stands before a marker gets what comes after it, however little it asks for
    found = messages(path.fetch(1, version=1, partition_max_bytes=1).records)
    assert [(offset, value) for offset, _, _, value in found] == [(2, b"1")]


def test_fetch_that_finds_markers_alone_waits_for_records(path: DataPath) -> None:
    path.produce(batch(b"a", pid=7, epoch=0, seq=0, attributes=TRANSACTIONAL), transactional_id="x")
    path.mark(7, 0, commit=True, version=1)
    assert path.fetch(1, version=3, request={"max_wait_ms": 500}) is LATER
    path.produce(batch(b"b"))
    [(_, response)] = path.answers
    [answer] = response.responses[0].partitions
    assert [(offset, value) for offset, _, _, value in messages(answer.records)] == [(2, b"b")]


def test_zstd_ends_the_message_set_and_is_refused_where_it_begins(path: DataPath) -> None:
    path.produce(batch(b"a"))
    path.produce(batch(b"b", attributes=ZSTD))
    assert [value for *_, value in messages(path.fetch(0, version=3).records)] == [b"a"]
    assert path.fetch(1, version=3).error_code == ErrorCode.UNSUPPORTED_COMPRESSION_TYPE
    assert path.fetch(1, version=12).error_code == 0


def test_error_of_a_partition_is_answered_in_old_versions(path: DataPath) -> None:
    for version in range(4):
        assert path.fetch(5, version=version).error_code == ErrorCode.OFFSET_OUT_OF_RANGE
        assert path.fetch(0, "absent", version=version).error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
