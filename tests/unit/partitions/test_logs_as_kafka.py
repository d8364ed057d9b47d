"""How Apache Kafka 4.3.1 cuts, dates and reads logs, each found by comparing random requests with it."""

from __future__ import annotations

import pytest
from unit.partitions.data_path import NOW_MS, DataPath, append_batch, batch, values_of
from unit.partitions.data_path_parts import OTHER_NODE

from broker.partitions.record_rules import RecordsRefusedError
from broker.turn.decision import LATER
from protocol.errors import ErrorCode, KafkaError
from protocol.messages.fetch import FetchRequest, ReplicaState
from protocol.record_batch import LOG_APPEND_TIME, BatchHeader, iter_batches

MONTH_MS = 30 * 24 * 3_600_000  # longer than a segment takes batches
SIZE = len(batch(b"a"))  # of every batch here with one letter


# ---------------------------------------------------------------- segments


@pytest.mark.parametrize("seq", [7, 0])
def test_batch_that_its_producer_may_not_append_still_ends_an_old_segment(seq: int) -> None:
    """A gap in the sequence is refused, a repeated batch is answered; the batch behind it begins a segment."""
    path = DataPath(producer_state="batches")
    topic = path.topic()
    assert path.produce(batch(b"a", pid=3, epoch=0, seq=0, ts=NOW_MS - MONTH_MS)).base_offset == 0
    again = path.produce(batch(b"b", pid=3, epoch=0, seq=seq, ts=NOW_MS))
    assert again.error_code == (ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER if seq else 0)
    log = path.partition(topic, 0).log
    assert (log.end_offset, len(log.segments)) == (1, 1)
    log.config = log.config  # other settings do not take it back
    path.produce(batch(b"c", ts=NOW_MS - MONTH_MS))
    assert [segment.base_offset for segment in log.segments] == [0, 1]


def test_refused_batch_that_needs_no_new_segment_ends_none(path: DataPath) -> None:
    topic = path.topic()
    path.produce(batch(b"a", pid=3, epoch=0, seq=0))
    assert path.produce(batch(b"b", pid=3, epoch=0, seq=7)).error_code == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    path.produce(batch(b"c"))
    assert len(path.partition(topic, 0).log.segments) == 1


# ---------------------------------------------------------------- times


@pytest.mark.parametrize("count", [1, 2])
def test_batch_with_log_append_time_and_no_time_is_refused(path: DataPath, count: int) -> None:
    topic = path.topic()
    data = batch(*[b"a"] * count, ts=-1, attributes=LOG_APPEND_TIME)
    with pytest.raises(RecordsRefusedError) as refused:
        append_batch(path.partition(topic, 0), data, NOW_MS)
    assert refused.value.code == ErrorCode.INVALID_TIMESTAMP
    assert [index for index, _ in refused.value.errors] == list(range(count))


def test_time_below_none_is_stored_as_none(path: DataPath) -> None:
    topic = path.topic()
    append_batch(path.partition(topic, 0), batch(b"a", ts=-2, attributes=LOG_APPEND_TIME), NOW_MS)
    path.partition(topic, 0).log.flush()
    found = path.partition(topic, 0).log.read(0, 1 << 20, limit_offset=1)
    assert found is not None
    header = BatchHeader.from_buffer(found.read())
    assert (header.max_timestamp, header.attributes) == (-1, 0)


def test_latest_of_records_without_a_time_is_the_first(path: DataPath) -> None:
    path.topic()
    path.produce(batch(b"a", b"b", ts=-1))
    path.produce(batch(b"c", ts=-1))
    answer = path.list_offset(-3)
    assert (answer.offset, answer.timestamp, answer.leader_epoch) == (0, -1, 0)
    assert path.list_offset(0).offset == -1
    path.produce(batch(b"d", ts=0))
    assert path.list_offset(-3).offset == 3


def test_batch_of_records_before_all_time_has_no_latest(path: DataPath) -> None:
    path.topic()
    path.produce(batch((None, b"a", (), -3)))
    assert path.list_offset(-3).offset == -1


def test_time_is_found_behind_a_log_start_in_the_next_segment(path: DataPath) -> None:
    """Kafka answers -1: the first segment has a batch as late, though the log begins behind it."""
    topic = path.topic()
    path.produce(batch(b"a", ts=NOW_MS - MONTH_MS))
    partition = path.partition(topic, 0)
    partition.delete_records(1)
    path.produce(batch(b"b", ts=NOW_MS))
    assert [segment.base_offset for segment in partition.log.segments] == [0, 1]
    assert path.list_offset(NOW_MS - MONTH_MS).offset == 1


# ---------------------------------------------------------------- limits of a Fetch


def amounts(path: DataPath, max_bytes: int, *most: int) -> list[int]:
    """How many batches of each partition come, of (partition_max_bytes) each; three lie in every one."""
    topics = [path.wanted("t", (index, 0), partition_max_bytes=size) for index, size in enumerate(most)]
    response = path.fetch_request(FetchRequest(session_epoch=-1, max_bytes=max_bytes, topics=topics))
    return [
        sum(1 for _ in iter_batches(part.records.read() if part.records else b""))
        for topic in response.responses
        for part in topic.partitions
    ]


@pytest.mark.parametrize(
    ("max_bytes", "most", "expected"),
    [
        (10 * SIZE, (10 * SIZE, 10 * SIZE), [3, 3]),
        (4 * SIZE, (10 * SIZE, 10 * SIZE), [3, 1]),
        (2 * SIZE + 1, (10 * SIZE, 10 * SIZE), [2, 0]),  # what is left for a part of the third is used up
        (3 * SIZE, (2 * SIZE + 1, 10 * SIZE), [2, 0]),  # the same by the partition's own limit
        (3 * SIZE, (2 * SIZE, 10 * SIZE), [2, 1]),
        (2 * SIZE, (0, 10 * SIZE), [1, 1]),  # the first batch is larger than its partition's limit
        (1, (10 * SIZE, 10 * SIZE), [1, 0]),
    ],
)
def test_batch_that_a_limit_cuts_uses_the_limit_up(
    path: DataPath, max_bytes: int, most: tuple[int, ...], expected: list[int]
) -> None:
    path.topic(partitions=2)
    for index in (0, 1):
        for _ in range(3):
            path.produce(batch(b"a"), index=index)
    assert amounts(path, max_bytes, *most) == expected


def test_fetch_that_its_limit_cuts_does_not_wait_for_more(path: DataPath) -> None:
    path.topic()
    path.produce(batch(b"a"))
    path.produce(batch(b"b"))
    limits = {"max_wait_ms": 500, "min_bytes": SIZE + 1, "max_bytes": SIZE + 1}
    answer = path.fetch(0, request=limits)
    assert answer is not LATER
    assert values_of(answer.records) == [b"a"]
    assert path.fetch(1, request=limits) is LATER  # there is no more than that one


def test_fetch_counts_bytes_that_were_not_readable_when_it_came(path: DataPath) -> None:
    path.topic()
    path.produce(batch(b"a"), end_turn=False)
    assert path.fetch(0, request={"max_wait_ms": 500, "min_bytes": SIZE}) is LATER
    path.end_turn()
    ((_, response),) = path.answers
    assert values_of(response.responses[0].partitions[0].records) == [b"a"]


@pytest.mark.parametrize(("replica", "nodes"), [(-1, [OTHER_NODE]), (5, [])])
def test_follower_is_not_told_where_the_leader_is(path: DataPath, replica: int, nodes: list[int]) -> None:
    path.topic(leader=OTHER_NODE)
    state = None if replica < 0 else ReplicaState(replica_id=replica)
    response = path.fetch_request(
        FetchRequest(session_epoch=-1, replica_state=state, topics=[path.wanted("t", (0, 0))]), 16
    )
    part = response.responses[0].partitions[0]
    assert (part.error_code, part.current_leader.leader_id) == (ErrorCode.NOT_LEADER_OR_FOLLOWER, OTHER_NODE)
    assert [each.node_id for each in response.node_endpoints] == nodes


# ---------------------------------------------------------------- isolation levels


@pytest.mark.parametrize("level", [2, -1])
def test_unknown_isolation_level_is_refused(path: DataPath, level: int) -> None:
    path.topic()
    path.produce(batch(b"a"))
    with pytest.raises(KafkaError) as refused:
        path.fetch(0, request={"isolation_level": level})
    assert refused.value.code == ErrorCode.INVALID_REQUEST
    with pytest.raises(KafkaError) as refused:
        path.list_offset(-1, isolation_level=level)
    assert refused.value.code == ErrorCode.INVALID_REQUEST


def test_unknown_isolation_level_is_left_to_the_general_handler(path: DataPath) -> None:
    path.topic()
    for level, is_learnt in ((0, True), (1, True), (2, False)):
        request = FetchRequest(session_epoch=-1, isolation_level=level, topics=[path.wanted("t", (0, 0))])
        decision = path.fetches.message(path.context(12), request)
        assert (decision.repeats is not None) is is_learnt
