"""Fetch without sessions: what is handed out, in which amounts, and every error a partition can have."""

from __future__ import annotations

import pytest
from fetch_kit import long_poll, only
from unit.partitions.data_path import DataPath, batch, values_of
from unit.partitions.data_path_parts import OTHER_NODE

from protocol.codegen import codec
from protocol.errors import ErrorCode
from protocol.messages.fetch import FetchRequest, FetchResponse, ReplicaState

VERSIONS = range(4, 19)


# ---------------------------------------------------------------- what is handed out


@pytest.mark.parametrize("version", VERSIONS)
def test_fetch_answers_records_and_offsets_in_every_version(path: DataPath, version: int) -> None:
    topic = path.topic()
    path.produce(batch(b"a", b"b"))
    path.produce(batch(b"c"))
    request = FetchRequest(session_epoch=-1, max_bytes=1 << 20, topics=[path.wanted("t", (0, 0))])
    raw = codec(FetchRequest, version).encode(request)
    request, _ = codec(FetchRequest, version).decode(raw, 0)
    response = path.fetch_request(request, version)
    parts = codec(FetchResponse, version).encode_parts(response)
    body = b"".join(part if isinstance(part, bytes) else part.read() for part in parts)
    again, _ = codec(FetchResponse, version).decode(memoryview(body), 0)
    answer = only(again)
    assert values_of(bytes(answer.records)) == [b"a", b"b", b"c"]
    assert (answer.error_code, answer.high_watermark, answer.last_stable_offset) == (0, 3, 3)
    assert answer.aborted_transactions is None
    if version >= 5:
        assert answer.log_start_offset == 0
    if version >= 13:
        assert again.responses[0].topic_id == topic.topic_id
    else:
        assert again.responses[0].topic == "t"


def test_fetch_inside_a_batch_answers_the_whole_batch(path: DataPath) -> None:
    path.topic()
    path.produce(batch(b"a", b"b", b"c"))
    path.produce(batch(b"d"))
    assert values_of(path.fetch(1).records) == [b"a", b"b", b"c", b"d"]
    assert values_of(path.fetch(3).records) == [b"d"]


def test_fetch_at_the_end_answers_nothing(path: DataPath) -> None:
    path.topic()
    path.produce(batch(b"a"))
    answer = path.fetch(1)
    assert (answer.error_code, len(answer.records), answer.high_watermark) == (0, 0, 1)


def test_read_committed_carries_the_stable_offset_and_a_list(path: DataPath) -> None:
    path.topic()
    path.produce(batch(b"a"))
    answer = path.fetch(0, request={"isolation_level": 1})
    assert (answer.last_stable_offset, answer.aborted_transactions) == (1, [])
    assert values_of(answer.records) == [b"a"]


def test_first_batch_is_whole_even_above_every_limit(path: DataPath) -> None:
    path.topic()
    for _ in range(2):
        path.produce(batch(b"x" * 1000))
    for limits in ({"partition_max_bytes": 1}, {"request": {"max_bytes": 1}}, {"partition_max_bytes": 0}):
        assert values_of(path.fetch(0, **limits).records) == [b"x" * 1000]


def test_partition_limit_holds_back_further_batches(path: DataPath) -> None:
    path.topic()
    size = len(batch(b"x" * 1000))
    for _ in range(5):
        path.produce(batch(b"x" * 1000))
    for limit, batches in ((size, 1), (2 * size - 1, 1), (2 * size, 2), (3 * size + 5, 3), (99 * size, 5)):
        assert len(path.fetch(0, partition_max_bytes=limit).records) == batches * size


def test_response_limit_is_shared_in_request_order(path: DataPath) -> None:
    path.topic(partitions=3)
    size = len(batch(b"x" * 1000))
    for index in range(3):
        for _ in range(3):
            path.produce(batch(b"x" * 1000), index=index)
    for limit, expected in (
        (1, [1, 0, 0]),
        (3 * size + 1, [3, 0, 0]),
        (4 * size, [3, 1, 0]),
        (8 * size, [3, 3, 2]),
    ):
        places = [("t", index, 0) for index in (2, 0, 1)]
        response = long_poll(path, *places, max_bytes=limit)
        found = [(p.partition_index, len(p.records) // size) for t in response.responses for p in t.partitions]
        assert found == list(zip((2, 0, 1), expected, strict=True))


def test_first_batch_exception_is_for_the_first_partition_with_records(path: DataPath) -> None:
    path.topic(partitions=3)
    for index in (1, 2):
        path.produce(batch(b"x" * 1000), index=index)
    response = long_poll(path, ("t", 0, 0), ("t", 1, 0), ("t", 2, 0), max_bytes=10)
    assert [len(p.records) > 0 for t in response.responses for p in t.partitions] == [False, True, False]


def test_broker_limit_caps_the_request(path: DataPath) -> None:
    path = DataPath(fetch_max_bytes="2048")
    path.topic()
    size = len(batch(b"x" * 900))
    for _ in range(5):
        path.produce(batch(b"x" * 900))
    assert len(path.fetch().records) == 2 * size


def test_same_topics_in_a_row_are_one_in_the_answer(path: DataPath) -> None:
    path.topic("a", partitions=2)
    path.topic("b")
    response = long_poll(path, ("a", 0, 0), ("a", 1, 0), ("b", 0, 0), max_wait_ms=0)
    assert [(t.topic, [p.partition_index for p in t.partitions]) for t in response.responses] == [
        ("a", [0, 1]),
        ("b", [0]),
    ]


def test_slice_outlives_its_segment(path: DataPath) -> None:
    topic = path.topic(segment_bytes=str(1 << 20), max_message_bytes=str(1 << 20))
    for _ in range(3):
        path.produce(batch(b"x" * 700_000))
    records = path.fetch(0).records
    partition = path.partition(topic, 0)
    partition.delete_records(2)
    for _ in partition.maintenance(path.now_ms):
        pass
    assert len(partition.log.segments) < 3
    assert values_of(records) == [b"x" * 700_000]


# ---------------------------------------------------------------- errors


def test_unknown_names_ids_and_partitions(path: DataPath) -> None:
    path.topic()
    assert path.fetch(name="nowhere").error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert path.fetch(name="nowhere", version=13).error_code == ErrorCode.UNKNOWN_TOPIC_ID
    for index in (-1, 1):
        assert path.fetch(index=index).error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        assert path.fetch(index=index, version=13).error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def test_refused_partition_has_no_offsets_and_empty_records(path: DataPath) -> None:
    answer = path.fetch(name="nowhere")
    assert (answer.high_watermark, answer.last_stable_offset, answer.log_start_offset) == (-1, -1, -1)
    assert answer.records == b""


def test_wrong_node_names_the_leader_from_version_16_on(path: DataPath) -> None:
    topic = path.topic(leader=OTHER_NODE)
    for version in VERSIONS:
        request = FetchRequest(session_epoch=-1, max_bytes=1 << 20, topics=[path.wanted("t", (0, 0))])
        response = path.fetch_request(request, version)
        answer = only(response)
        assert answer.error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER
        if version < 16:
            assert answer.current_leader is None
        else:
            assert answer.current_leader.leader_id == OTHER_NODE
            assert answer.current_leader.leader_epoch == topic.partitions[0].leader_epoch
            assert [(n.node_id, n.port) for n in response.node_endpoints] == [(OTHER_NODE, 9093)]
    assert path.fetch(node_id=OTHER_NODE).error_code == 0


def test_leader_epoch_of_the_client_is_checked(path: DataPath) -> None:
    topic = path.topic()
    path.move_leader(topic, 0, 0)
    epoch = topic.partitions[0].leader_epoch
    assert path.fetch(current_leader_epoch=epoch).error_code == 0
    assert path.fetch(current_leader_epoch=-1).error_code == 0
    assert path.fetch(current_leader_epoch=epoch - 1).error_code == ErrorCode.FENCED_LEADER_EPOCH
    assert path.fetch(current_leader_epoch=epoch + 1).error_code == ErrorCode.UNKNOWN_LEADER_EPOCH
    assert path.fetch(current_leader_epoch=epoch - 1, version=16).current_leader.leader_epoch == epoch


def test_offset_outside_the_log_is_out_of_range(path: DataPath) -> None:
    topic = path.topic()
    for _ in range(3):
        path.produce(batch(b"a"))
    for offset, code in ((-1, 1), (4, 1), (3, 0), (0, 0)):
        assert path.fetch(offset).error_code == code
    path.partition(topic, 0).delete_records(2)
    assert path.fetch(1).error_code == ErrorCode.OFFSET_OUT_OF_RANGE
    assert path.fetch(2).error_code == 0


def test_offset_that_is_not_durable_yet_is_in_range(path: DataPath) -> None:
    path.topic()
    path.produce(batch(b"a"), end_turn=False)
    assert path.fetch(1).error_code == 0
    assert path.fetch(2).error_code == ErrorCode.OFFSET_OUT_OF_RANGE


def test_diverging_epoch_is_named(path: DataPath) -> None:
    topic = path.topic()
    path.produce(batch(b"a"))
    for _ in range(3):
        path.move_leader(topic, 0, 0)
    path.produce(batch(b"b"))
    assert path.fetch(1, last_fetched_epoch=0).diverging_epoch is None
    answer = path.fetch(2, last_fetched_epoch=0)
    assert (answer.diverging_epoch.epoch, answer.diverging_epoch.end_offset) == (0, 1)
    assert len(answer.records) == 0
    assert path.fetch(1, last_fetched_epoch=2).diverging_epoch.epoch == 0
    assert path.fetch(1, last_fetched_epoch=9).error_code == ErrorCode.OFFSET_OUT_OF_RANGE


def test_follower_is_refused(path: DataPath) -> None:
    path.topic()
    assert path.fetch(request={"replica_id": 5}, version=14).error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER
    state = {"replica_state": ReplicaState(replica_id=5)}
    assert path.fetch(request=state, version=15).error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER
    answer = path.fetch(request=state, current_leader_epoch=0, version=15)
    assert answer.error_code == ErrorCode.UNKNOWN_LEADER_EPOCH


def test_broken_log_is_a_storage_error(path: DataPath) -> None:
    topic = path.topic()
    path.produce(batch(b"a"))
    path.partition(topic, 0).log.delete()
    for version, code in ((5, ErrorCode.NOT_LEADER_OR_FOLLOWER), (6, ErrorCode.KAFKA_STORAGE_ERROR)):
        assert path.fetch(version=version).error_code == code
