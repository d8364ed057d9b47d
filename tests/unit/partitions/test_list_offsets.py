"""ListOffsets, OffsetForLeaderEpoch and DeleteRecords."""

from __future__ import annotations

from typing import Any

import pytest
from unit.partitions.data_path import NOW_MS, DataPath, batch
from unit.partitions.data_path_parts import OTHER_NODE

from broker.handlers.list_offsets import list_offsets
from protocol.codegen import codec
from protocol.errors import ErrorCode
from protocol.messages.fetch import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopic,
    OffsetForLeaderEpochRequest,
    OffsetForLeaderPartition,
    OffsetForLeaderTopic,
)
from protocol.messages.topics import DeleteRecordsPartition, DeleteRecordsRequest, DeleteRecordsTopic

LATEST, EARLIEST, MAX_TIMESTAMP, EARLIEST_LOCAL, LATEST_TIERED, PENDING_UPLOAD = -1, -2, -3, -4, -5, -6


@pytest.fixture
def filled(path: DataPath) -> DataPath:
    """Offsets 0..4 at NOW_MS + 10, 20, 30, 25, 40."""
    path.topic()
    path.produce(batch((None, b"a", (), NOW_MS + 10), (None, b"b", (), NOW_MS + 20)))
    path.produce(batch((None, b"c", (), NOW_MS + 30), (None, b"d", (), NOW_MS + 25)))
    path.produce(batch((None, b"e", (), NOW_MS + 40)))
    return path


def place(answer: Any) -> tuple[int, int, int]:
    assert answer.error_code == 0
    return answer.offset, answer.timestamp, answer.leader_epoch


# ---------------------------------------------------------------- ListOffsets


def test_ends_of_the_log(filled: DataPath) -> None:
    assert place(filled.list_offset(LATEST)) == (5, -1, 0)
    assert place(filled.list_offset(EARLIEST)) == (0, -1, 0)
    assert place(filled.list_offset(EARLIEST_LOCAL)) == (0, -1, 0)


def test_ends_of_an_empty_log(path: DataPath) -> None:
    path.topic()
    assert place(path.list_offset(LATEST)) == (0, -1, 0)
    assert place(path.list_offset(EARLIEST)) == (0, -1, 0)
    assert place(path.list_offset(MAX_TIMESTAMP)) == (-1, -1, -1)
    assert place(path.list_offset(NOW_MS)) == (-1, -1, -1)


def test_nothing_is_tiered(filled: DataPath) -> None:
    assert place(filled.list_offset(LATEST_TIERED)) == (-1, -1, -1)
    assert place(filled.list_offset(PENDING_UPLOAD, version=11)) == (-1, -1, -1)


@pytest.mark.parametrize(
    ("timestamp", "offset", "at"),
    [(0, 0, 10), (NOW_MS + 10, 0, 10), (NOW_MS + 11, 1, 20), (NOW_MS + 21, 2, 30), (NOW_MS + 40, 4, 40)],
)
def test_time_finds_the_first_record_that_late(filled: DataPath, timestamp: int, offset: int, at: int) -> None:
    assert place(filled.list_offset(timestamp)) == (offset, NOW_MS + at, 0)


def test_time_after_the_last_record_finds_none(filled: DataPath) -> None:
    assert place(filled.list_offset(NOW_MS + 41)) == (-1, -1, -1)


def old_offsets(path: DataPath, timestamp: int, most: int) -> list[int]:
    partition = ListOffsetsPartition(partition_index=0, timestamp=timestamp, max_num_offsets=most)
    request = ListOffsetsRequest(replica_id=-1, topics=[ListOffsetsTopic(name="t", partitions=[partition])])
    [answer] = list_offsets(path, path.context(0), request).reply.topics[0].partitions
    assert answer.error_code == 0
    return list(answer.old_style_offsets)


def test_version_0_answers_a_list_of_the_ends_and_of_where_segments_begin() -> None:
    path = DataPath()
    path.topic(segment_bytes="1048576")
    assert old_offsets(path, LATEST, 9) == old_offsets(path, EARLIEST, 9) == [0]
    for at in range(3):
        path.produce(batch((None, bytes(700_000), (), NOW_MS + 10 * at)))
    assert len(path.partition(path.metadata.topics["t"], 0).log.segments) == 3
    assert old_offsets(path, LATEST, 9) == [3, 2, 1, 0]
    assert old_offsets(path, LATEST, 1) == [3]
    assert old_offsets(path, LATEST, 0) == old_offsets(path, LATEST, -1) == []
    assert old_offsets(path, EARLIEST, 9) == [0]
    assert old_offsets(path, NOW_MS - 1, 9) == []
    assert old_offsets(path, NOW_MS + 10, 9)[-2:] == [1, 0]
    assert old_offsets(path, NOW_MS + 10**9, 9) == [3, 2, 1, 0]


def test_version_0_answers_no_offset_above_the_high_watermark(path: DataPath) -> None:
    path.topic()
    partition = path.partition(path.metadata.topics["t"], 0)
    path.produce(batch(b"a"))
    path.produce(batch(b"b"), end_turn=False)
    if partition.high_watermark == partition.log.end_offset:
        pytest.fail("the second record is readable too early for this test")
    assert old_offsets(path, LATEST, 9) == [1, 0]


def test_version_0_has_its_errors_in_the_partition(path: DataPath) -> None:
    answer = path.list_offset(LATEST, "absent", version=0)
    assert (answer.error_code, answer.old_style_offsets) == (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, [])
    path.topic()
    assert path.list_offset(MAX_TIMESTAMP, version=0).error_code == ErrorCode.UNSUPPORTED_VERSION


def test_max_timestamp_is_the_latest_record_not_the_last(filled: DataPath) -> None:
    filled.produce(batch((None, b"f", (), NOW_MS + 5)))
    assert place(filled.list_offset(MAX_TIMESTAMP)) == (4, NOW_MS + 40, 0)


@pytest.mark.parametrize("isolation_level", [0, 1])
def test_what_is_not_durable_is_not_told(filled: DataPath, isolation_level: int) -> None:
    filled.produce(batch((None, b"new", (), NOW_MS + 99)), end_turn=False)
    assert place(filled.list_offset(LATEST, isolation_level=isolation_level)) == (5, -1, 0)
    assert place(filled.list_offset(NOW_MS + 99, isolation_level=isolation_level)) == (-1, -1, -1)
    filled.end_turn()
    assert place(filled.list_offset(NOW_MS + 99)) == (5, NOW_MS + 99, 0)


@pytest.mark.parametrize(
    ("timestamp", "since"), [(MAX_TIMESTAMP, 7), (EARLIEST_LOCAL, 8), (LATEST_TIERED, 9), (PENDING_UPLOAD, 11)]
)
def test_special_timestamp_of_a_later_version_is_unsupported(filled: DataPath, timestamp: int, since: int) -> None:
    assert filled.list_offset(timestamp, version=since - 1).error_code == ErrorCode.UNSUPPORTED_VERSION
    assert filled.list_offset(timestamp, version=since).error_code == 0


def test_other_negative_timestamps_are_unsupported(filled: DataPath) -> None:
    assert filled.list_offset(-7, version=11).error_code == ErrorCode.UNSUPPORTED_VERSION


def test_partition_named_twice_is_an_invalid_request(filled: DataPath) -> None:
    twice = [ListOffsetsPartition(partition_index=0, timestamp=LATEST) for _ in range(2)]
    request = ListOffsetsRequest(replica_id=-1, topics=[ListOffsetsTopic(name="t", partitions=twice)])
    from broker.handlers.list_offsets import list_offsets

    response = list_offsets(filled, filled.context(9), request).reply
    assert [p.error_code for p in response.topics[0].partitions] == [ErrorCode.INVALID_REQUEST]


def test_list_offsets_checks_partition_leader_and_epoch(filled: DataPath) -> None:
    assert filled.list_offset(LATEST, "nowhere").error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert filled.list_offset(LATEST, index=1).error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert filled.list_offset(LATEST, node_id=OTHER_NODE).error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert filled.list_offset(LATEST, node_id=OTHER_NODE, replica_id=-2).error_code == 0
    filled.move_leader(filled.metadata.topics["t"], 0, 0)
    assert filled.list_offset(LATEST, current_leader_epoch=0).error_code == ErrorCode.FENCED_LEADER_EPOCH
    assert filled.list_offset(LATEST, current_leader_epoch=2).error_code == ErrorCode.UNKNOWN_LEADER_EPOCH
    assert filled.list_offset(LATEST, current_leader_epoch=1).leader_epoch == 1


@pytest.mark.parametrize("version", range(1, 12))
def test_list_offsets_travels_in_every_version(filled: DataPath, version: int) -> None:
    answer = filled.list_offset(LATEST, version=version)
    response = ListOffsetsResponse(topics=[])
    topic = ListOffsetsTopic(name="t", partitions=[])
    assert topic.name == "t"
    from protocol.messages.fetch import ListOffsetsTopicResponse

    response.topics.append(ListOffsetsTopicResponse(name="t", partitions=[answer]))
    again, _ = codec(ListOffsetsResponse, version).decode(codec(ListOffsetsResponse, version).encode(response), 0)
    assert again.topics[0].partitions[0].offset == 5
    assert again.topics[0].partitions[0].leader_epoch == (0 if version >= 4 else -1)


# ---------------------------------------------------------------- OffsetForLeaderEpoch


def epoch_end(path: DataPath, leader_epoch: int, name: str = "t", index: int = 0, **more: Any) -> tuple[int, int, int]:
    current = more.pop("current_leader_epoch", -1)
    asked = OffsetForLeaderPartition(partition=index, current_leader_epoch=current, leader_epoch=leader_epoch)
    request = OffsetForLeaderEpochRequest(replica_id=-1, topics=[OffsetForLeaderTopic(topic=name, partitions=[asked])])
    answer = path.offset_for_leader_epoch(request, **more).topics[0].partitions[0]
    return answer.error_code, answer.leader_epoch, answer.end_offset


def test_end_of_each_leader_epoch(filled: DataPath) -> None:
    topic = filled.metadata.topics["t"]
    for _ in range(3):
        filled.move_leader(topic, 0, 0)
    filled.produce(batch(b"f"))
    assert epoch_end(filled, 3) == (0, 3, 6)
    assert epoch_end(filled, 0) == (0, 0, 5)
    assert epoch_end(filled, 2) == (0, 0, 5)
    assert epoch_end(filled, 4) == (0, -1, -1)
    assert epoch_end(filled, -1) == (0, -1, -1)


def test_end_of_an_epoch_is_not_beyond_what_is_durable(filled: DataPath) -> None:
    filled.produce(batch(b"f"), end_turn=False)
    assert epoch_end(filled, 0) == (0, 0, 5)


def test_end_of_the_first_epoch_of_an_empty_log_is_zero(path: DataPath) -> None:
    path.topic()
    assert epoch_end(path, 0) == (0, 0, 0)


def test_offset_for_leader_epoch_checks_partition_leader_and_epoch(filled: DataPath) -> None:
    assert epoch_end(filled, 0, "nowhere") == (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, -1, -1)
    assert epoch_end(filled, 0, index=3)[0] == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert epoch_end(filled, 0, node_id=OTHER_NODE)[0] == ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert epoch_end(filled, 0, current_leader_epoch=1)[0] == ErrorCode.UNKNOWN_LEADER_EPOCH


# ---------------------------------------------------------------- DeleteRecords


def delete(path: DataPath, offset: int, name: str = "t", index: int = 0, **ctx: Any) -> tuple[int, int]:
    asked = DeleteRecordsPartition(partition_index=index, offset=offset)
    request = DeleteRecordsRequest(topics=[DeleteRecordsTopic(name=name, partitions=[asked])])
    answer = path.delete_records(request, **ctx).topics[0].partitions[0]
    return answer.error_code, answer.low_watermark


def test_deleted_records_are_gone_for_every_reader(filled: DataPath) -> None:
    assert delete(filled, 3) == (0, 3)
    assert filled.log_starts == {("t", 0): 3}
    assert filled.list_offset(EARLIEST).offset == 3
    assert filled.fetch(2).error_code == ErrorCode.OFFSET_OUT_OF_RANGE
    assert filled.fetch(3).log_start_offset == 3
    assert filled.list_offset(NOW_MS).offset == 3
    assert filled.produce(batch(b"f")).log_start_offset == 3


def test_delete_up_to_the_high_watermark(filled: DataPath) -> None:
    filled.produce(batch(b"f"), end_turn=False)
    assert delete(filled, -1) == (0, 5)
    filled.end_turn()
    assert filled.list_offset(EARLIEST).offset == 5
    assert filled.list_offset(LATEST).offset == 6


def test_delete_below_the_start_changes_nothing(filled: DataPath) -> None:
    delete(filled, 3)
    assert delete(filled, 1) == (0, 3)
    assert filled.list_offset(EARLIEST).offset == 3


@pytest.mark.parametrize("offset", [-2, 6, 2**62])
def test_delete_outside_the_log_is_out_of_range(filled: DataPath, offset: int) -> None:
    assert delete(filled, offset) == (ErrorCode.OFFSET_OUT_OF_RANGE, -1)
    assert filled.list_offset(EARLIEST).offset == 0


def test_compacted_topic_keeps_its_records(path: DataPath) -> None:
    path.topic("compact", cleanup_policy="compact")
    path.topic("both", cleanup_policy="compact,delete")
    for name in ("compact", "both"):
        path.produce(batch((b"k", b"v")), name)
    assert delete(path, 1, "compact") == (ErrorCode.POLICY_VIOLATION, -1)
    assert delete(path, 1, "both") == (0, 1)


def test_delete_checks_topic_partition_and_leader(filled: DataPath) -> None:
    filled.topic("__consumer_offsets")
    assert delete(filled, 0, "nowhere")[0] == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert delete(filled, 0, index=1)[0] == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert delete(filled, 0, node_id=OTHER_NODE)[0] == ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert delete(filled, 0, "__consumer_offsets")[0] == ErrorCode.INVALID_TOPIC_EXCEPTION
