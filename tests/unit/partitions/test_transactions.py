"""Transactions as a partition sees them: the gate, markers, the last stable offset, readers of committed records."""

from __future__ import annotations

from typing import Any

import pytest
from unit.partitions.data_path import NOW_MS, DataPath, batch, values_of
from unit.partitions.txn_path import COMMITTED, V1, committed, read_committed, send, stable

from broker.handlers.describe_producers import describe_producers
from broker.turn.decision import LATER
from protocol.errors import ErrorCode, KafkaError
from protocol.messages.transaction_admin import DescribeProducersRequest, DescribeProducersRequestTopicRequest


@pytest.fixture
def path() -> DataPath:
    path = DataPath()
    path.topic()
    return path


# ---------------------------------------------------------------- last stable offset


def test_stable_offset_waits_for_the_oldest_open_transaction(path: DataPath) -> None:
    path.produce(batch(b"plain"))
    send(path, b"a", pid=1)
    send(path, b"b", pid=2)
    assert (stable(path), path.fetch().high_watermark) == (1, 3)
    path.mark(2, 1, commit=True)
    assert stable(path) == 1
    path.mark(1, 1, commit=True)
    assert stable(path) == 5
    assert read_committed(path) == [b"plain", b"a", b"b"]


def test_stable_offset_moves_only_when_the_marker_is_durable(path: DataPath) -> None:
    send(path, b"a")
    path.mark(1, 1, commit=True, end_turn=False)
    assert stable(path) == 0
    path.end_turn()
    assert stable(path) == 2


def test_marker_without_data_moves_nothing(path: DataPath) -> None:
    send(path, b"a", pid=1)
    path.mark(5, 0, commit=False)
    assert stable(path) == 0
    assert committed(path).aborted_transactions == []
    path.mark(1, 1, commit=False)
    assert [(a.producer_id, a.first_offset) for a in committed(path).aborted_transactions] == [(1, 0)]


def test_deleted_records_do_not_hold_the_stable_offset_below_the_start(path: DataPath) -> None:
    send(path, b"a", b"b")
    path.partition(path.metadata.topics["t"], 0).delete_records(1)
    assert path.fetch(1).last_stable_offset == 1


def test_failed_marker_leaves_the_transaction_open(path: DataPath) -> None:
    send(path, b"a")
    path.env.files.inject(1)
    path.mark(1, 1, commit=True)
    path.env.files.heal()
    assert (stable(path), path.fetch().high_watermark) == (0, 1)
    path.mark(1, 1, commit=True)
    assert stable(path) == 2


# ---------------------------------------------------------------- readers


def test_aborted_records_are_named_and_committed_ones_are_not(path: DataPath) -> None:
    for pid in (1, 2):
        send(path, b"%d" % pid, pid=pid)
    path.mark(1, 1, commit=False)
    path.mark(2, 1, commit=True)
    answer = committed(path)
    assert [(a.producer_id, a.first_offset) for a in answer.aborted_transactions] == [(1, 0)]
    assert read_committed(path) == [b"2"]
    assert path.fetch().aborted_transactions is None


def test_aborted_transactions_outside_the_answer_are_not_named(path: DataPath) -> None:
    for number in range(5):
        send(path, b"x" * 100, epoch=number)
        path.mark(1, number + 1, commit=False)
    first = path.fetch(0, partition_max_bytes=1, request=COMMITTED)
    assert [a.first_offset for a in first.aborted_transactions] == [0]
    assert [a.first_offset for a in committed(path, 4).aborted_transactions] == [4, 6, 8]
    assert [a.first_offset for a in committed(path, 5).aborted_transactions] == [4, 6, 8]  # 4 ends with the marker at 5


def test_reader_of_committed_records_stops_at_the_open_transaction(path: DataPath) -> None:
    path.produce(batch(b"plain"))
    send(path, b"a")
    path.produce(batch(b"later"))
    assert values_of(committed(path).records) == [b"plain"]
    assert values_of(path.fetch().records) == [b"plain", b"a", b"later"]
    at_end = committed(path, 1)
    assert (len(at_end.records), at_end.error_code, at_end.aborted_transactions) == (0, 0, [])


@pytest.mark.parametrize("min_bytes", [1, 70])
def test_parked_reader_of_committed_records_wakes_with_the_marker(path: DataPath, min_bytes: int) -> None:
    assert committed(path, max_wait_ms=500, min_bytes=min_bytes) is LATER
    send(path, b"a")
    assert path.answers == []
    path.mark(1, 1, commit=True)
    ((_, response),) = path.answers
    assert values_of(response.responses[0].partitions[0].records)[0] == b"a"


def test_parked_reader_of_all_records_does_not_wait_for_the_marker(path: DataPath) -> None:
    assert path.fetch(request={"max_wait_ms": 500}) is LATER
    send(path, b"a")
    assert len(path.answers) == 1


def test_list_offsets_knows_two_ends(path: DataPath) -> None:
    path.produce(batch(b"plain"))
    send(path, b"a")
    assert path.list_offset(-1).offset == 2
    assert path.list_offset(-1, isolation_level=1).offset == 1
    assert path.list_offset(NOW_MS, isolation_level=1).offset == 0
    path.mark(1, 1, commit=True)
    assert path.list_offset(-1, isolation_level=1).offset == 3


# ---------------------------------------------------------------- what may be written


def code_of(path: DataPath, *args: Any, **kwargs: Any) -> ErrorCode:
    with pytest.raises(KafkaError) as refused:
        path.mark(*args, **kwargs)
    return refused.value.code


def test_marker_of_an_older_epoch_is_refused(path: DataPath) -> None:
    send(path, b"a", epoch=3)
    assert code_of(path, 1, 2, commit=True, version=1) == ErrorCode.INVALID_PRODUCER_EPOCH
    path.mark(1, 3, commit=True, version=1)


def test_marker_of_version_2_needs_a_higher_epoch_while_a_transaction_is_open(path: DataPath) -> None:
    send(path, b"a", epoch=3)
    assert code_of(path, 1, 3, commit=True) == ErrorCode.INVALID_PRODUCER_EPOCH
    path.mark(1, 4, commit=True)
    path.mark(1, 4, commit=True)  # sent again: harmless
    assert stable(path) == 3
    assert read_committed(path) == [b"a"]


def test_marker_of_an_older_coordinator_is_fenced(path: DataPath) -> None:
    send(path, b"a")
    path.mark(1, 1, commit=True, coordinator=5)
    assert code_of(path, 1, 2, commit=True, coordinator=4) == ErrorCode.TRANSACTION_COORDINATOR_FENCED
    path.mark(1, 2, commit=True, coordinator=5)


def test_plain_records_of_a_producer_with_an_open_transaction_are_refused(path: DataPath) -> None:
    send(path, b"a")
    assert path.produce(batch(b"b", pid=1, epoch=0, seq=1)).error_code == ErrorCode.INVALID_TXN_STATE
    assert path.produce(batch(b"b", pid=2, epoch=0, seq=0)).error_code == 0


def test_fenced_producer_hears_invalid_epoch_whatever_the_gate_says(path: DataPath) -> None:
    send(path, b"a")
    path.mark(1, 1, commit=False)
    path.transactions.code = ErrorCode.INVALID_TXN_STATE
    path.transactions.asked.clear()
    assert send(path, b"b", seq=1).error_code == ErrorCode.INVALID_PRODUCER_EPOCH
    assert path.transactions.asked == []


def test_transaction_of_version_2_begins_at_sequence_zero(path: DataPath) -> None:
    assert send(path, b"a", seq=4).error_code == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert send(path, b"a", seq=4, version=V1).error_code == 0
    path.mark(1, 1, commit=True)
    assert send(path, b"a", seq=1, epoch=1).error_code == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert send(path, b"a", seq=0, epoch=1).error_code == 0


# ---------------------------------------------------------------- DescribeProducers


def test_producers_are_described(path: DataPath) -> None:
    send(path, b"a", b"b", pid=9, epoch=2)
    path.produce(batch(b"x", pid=3, epoch=1, seq=7))
    path.mark(9, 3, commit=True, coordinator=4)
    send(path, b"c", pid=9, epoch=3)
    topics = [
        DescribeProducersRequestTopicRequest(name="t", partition_indexes=[0, 1]),
        DescribeProducersRequestTopicRequest(name="nope", partition_indexes=[0]),
    ]
    response = describe_producers(path, path.context(0), DescribeProducersRequest(topics=topics)).reply
    known, beyond = response.topics[0].partitions
    assert [
        (p.producer_id, p.producer_epoch, p.last_sequence, p.coordinator_epoch, p.current_txn_start_offset)
        for p in known.active_producers
    ] == [(3, 1, 7, -1, -1), (9, 3, 0, 4, 4)]
    assert {p.last_timestamp for p in known.active_producers} == {NOW_MS}
    unknown = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert (beyond.error_code, response.topics[1].partitions[0].error_code) == (unknown, unknown)


def test_isolation_level_counts_for_consumers_alone(path: DataPath) -> None:
    """Kafka ignores that of a replica, a debugging one (-2) too."""
    send(path, b"open")
    assert path.list_offset(-1, isolation_level=1).offset == 0
    for replica_id in (-2, 0):
        assert path.list_offset(-1, isolation_level=1, replica_id=replica_id).offset == 1
