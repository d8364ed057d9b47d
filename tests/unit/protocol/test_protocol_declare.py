"""What a declared message is to those who use it."""

from __future__ import annotations

import subprocess
import sys

import pytest

from protocol.codegen import codec
from protocol.errors import ErrorCode, KafkaError, MalformedError
from protocol.messages.coordinator_records import (
    OffsetCommitKey,
    OffsetCommitValue,
    TransactionLogKey,
    TransactionLogValue,
    decode_record,
    decode_transaction_record,
    encode_key,
    encode_record,
)
from protocol.messages.fetch import FetchableTopicResponse, FetchResponse, PartitionData
from protocol.messages.metadata_records import TopicRecord
from protocol.messages.metadata_records import decode_record as decode_metadata_record
from protocol.messages.metadata_records import encode_record as encode_metadata_record
from protocol.messages.offsets import OffsetCommitRequest, OffsetCommitRequestTopic
from protocol.messages.streams_group_records import StreamsGroupMetadataKey, StreamsGroupMetadataValue


def test_message_without_arguments_has_kafkas_defaults() -> None:
    request = OffsetCommitRequest()
    assert (request.group_id, request.generation_id_or_member_epoch, request.group_instance_id) == (
        "",
        -1,
        None,
    )
    assert request.topics == []


def test_message_defaults_are_not_shared() -> None:
    OffsetCommitRequest().topics.append(OffsetCommitRequestTopic(name="t"))
    assert OffsetCommitRequest().topics == []


def test_message_has_slots_and_refuses_what_is_not_declared() -> None:
    request = OffsetCommitRequest()
    with pytest.raises(AttributeError):
        request.consumer_id = "x"
    with pytest.raises(TypeError):
        OffsetCommitRequest(consumer_id="x")
    with pytest.raises(TypeError):
        OffsetCommitRequest("group")


def test_message_equals_by_value_and_shows_its_fields() -> None:
    topic = OffsetCommitRequestTopic(name="t")
    assert topic == OffsetCommitRequestTopic(name="t") != OffsetCommitRequestTopic(name="u")
    assert topic != "t"
    assert "OffsetCommitRequestTopic(name='t'" in repr(topic)
    topic.unknown_tags = {9: b"x"}
    assert topic != OffsetCommitRequestTopic(name="t")
    assert "unknown_tags={9: b'x'}" in repr(topic)


def test_unknown_tags_survive_at_every_level() -> None:
    topic = OffsetCommitRequestTopic(name="t")
    topic.unknown_tags = {7: b"seven"}
    request = OffsetCommitRequest(topics=[topic])
    request.unknown_tags = {300: b"", 1: b"one"}
    fast = codec(OffsetCommitRequest, 9)
    read, _ = fast.decode(fast.encode(request))
    assert read == request
    assert (read.unknown_tags, read.topics[0].unknown_tags) == ({1: b"one", 300: b""}, {7: b"seven"})


def test_encode_rejects_a_string_beyond_kafkas_limit() -> None:
    with pytest.raises(ValueError, match="32767"):
        codec(OffsetCommitRequest, 8).encode(OffsetCommitRequest(group_id="g" * 32768))


def test_decode_of_text_that_is_not_utf8_replaces_as_java_does() -> None:
    data = codec(OffsetCommitRequest, 8).encode(OffsetCommitRequest(group_id="ab"))
    read, _ = codec(OffsetCommitRequest, 8).decode(data.replace(b"ab", b"a\xff"))
    assert read.group_id == "a\ufffd"


class _Slice:
    """Stands for a slice of a file: it has a length and can be read."""

    def __init__(self, data: bytes) -> None:
        self.data = data

    def __len__(self) -> int:
        return len(self.data)

    def read(self) -> bytes:
        return self.data


def test_encode_parts_keeps_records_that_are_not_bytes() -> None:
    slices = [_Slice(b"one"), _Slice(b""), memoryview(b"three")]
    topic = FetchableTopicResponse(topic="t", partitions=[PartitionData(records=each) for each in slices])
    response = FetchResponse(responses=[topic])
    fast = codec(FetchResponse, 12)

    parts = fast.encode_parts(response)

    assert [each for each in parts if not isinstance(each, bytes)] == slices
    whole = b"".join([each.read() if isinstance(each, _Slice) else each for each in parts])
    assert fast.encode(response) == whole
    read, _ = fast.decode(whole)
    assert [each.records for each in read.responses[0].partitions] == [b"one", b"", b"three"]


def test_decode_of_a_memoryview_slices_records_without_a_copy() -> None:
    topic = FetchableTopicResponse(topic="t", partitions=[PartitionData(records=b"batch")])
    fast = codec(FetchResponse, 12)
    frame = memoryview(fast.encode(FetchResponse(responses=[topic])))
    read, _ = fast.decode(frame)
    records = read.responses[0].partitions[0].records
    assert isinstance(records, memoryview)
    assert records.obj is frame.obj
    assert read.responses[0].topic == "t"


def test_group_log_record_round_trips_and_a_tombstone_has_no_value() -> None:
    key = OffsetCommitKey(group="g", topic="t", partition=3)
    value = OffsetCommitValue(offset=42, metadata="m", commit_timestamp=5)
    assert encode_key(key).hex() == "0001" + "000167" + "000174" + "00000003"
    assert decode_record(encode_key(key), encode_record(value, 3)) == (key, value)
    assert decode_record(encode_key(key), None) == (key, None)
    streams = StreamsGroupMetadataKey(group_id="s"), StreamsGroupMetadataValue(epoch=2)
    assert decode_record(encode_key(streams[0]), encode_record(streams[1], 0)) == streams


def test_transaction_log_record_round_trips() -> None:
    key, value = (
        TransactionLogKey(transactional_id="x"),
        TransactionLogValue(producer_id=9, next_producer_id=10),
    )
    assert decode_transaction_record(encode_key(key), encode_record(value, 1)) == (key, value)


def test_metadata_record_round_trips_behind_its_frame() -> None:
    record = TopicRecord(name="t", topic_id=bytes(range(16)))
    assert encode_metadata_record(record, 0)[:3] == b"\x01\x02\x00"
    assert decode_metadata_record(encode_metadata_record(record, 0)) == record


@pytest.mark.parametrize("data", ["", "00", "0001", "00630000", "000100017a"])
def test_group_log_record_that_is_damaged_is_malformed(data: str) -> None:
    with pytest.raises(MalformedError):
        decode_record(bytes.fromhex(data), None)


@pytest.mark.parametrize("data", ["", "01", "020200", "01ff0100", "010263", "010200ff"])
def test_metadata_record_that_is_damaged_is_malformed(data: str) -> None:
    with pytest.raises(MalformedError):
        decode_metadata_record(bytes.fromhex(data))


def test_error_codes_know_which_to_retry() -> None:
    assert ErrorCode(16) is ErrorCode.NOT_COORDINATOR
    assert ErrorCode.NOT_COORDINATOR.retriable
    assert not ErrorCode.FENCED_MEMBER_EPOCH.retriable
    assert (ErrorCode.UNKNOWN_SERVER_ERROR, ErrorCode.NONE, len(ErrorCode)) == (-1, 0, 138)
    assert str(KafkaError(ErrorCode.INVALID_GROUP_ID, "empty")) == "INVALID_GROUP_ID: empty"


@pytest.mark.heavy
def test_codegen_prints_the_source_of_a_message() -> None:
    command = [sys.executable, "-m", "protocol.codegen", "OffsetCommitRequest", "8"]
    shown = subprocess.run(command, capture_output=True, text=True, check=True)
    assert "def decode(buf, pos=0):" in shown.stdout
    assert "iter_unpack_iqiBB" in shown.stdout


@pytest.mark.heavy
def test_registry_and_families_are_imported_only_when_asked_for() -> None:
    code = (
        "import sys, protocol.api, protocol.header, protocol.codegen, protocol.messages.offsets; "
        "print([m for m in sys.modules if m == 'construct' or m.startswith(('protocol.messages.', 'protocol.emit'))])"
    )
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert shown.stdout.strip() == "['protocol.messages.offsets']"


def test_many_messages_equal_those_made_one_by_one() -> None:
    codec(FetchResponse, 13)  # its nested classes are declared
    for cls in (OffsetCommitRequestTopic, FetchableTopicResponse, PartitionData, OffsetCommitRequest):
        for each in cls.FIELDS:
            made = cls.many(each.name, [1, 2])
            assert made == [cls(**{each.name: 1}), cls(**{each.name: 2})]
            assert all(item.unknown_tags is None for item in made)
    one, other = OffsetCommitRequest.many("group_id", ["a", "b"])
    one.topics.append(OffsetCommitRequestTopic(name="t"))
    assert other.topics == []
