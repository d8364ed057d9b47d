"""Transactions as a partition sees them: the gate, markers, the last stable offset, readers of committed records."""

from __future__ import annotations

from typing import Any

import pytest
from data_path import NOW_MS, DataPath, batch, values_of

from broker.coordinator.result import PARKED
from broker.handlers.describe_producers import describe_producers
from protocol.errors import ErrorCode, KafkaError
from protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from protocol.messages.transaction_admin import DescribeProducersRequest, DescribeProducersRequestTopicRequest
from protocol.record_batch import TRANSACTIONAL

V2, V1 = 12, 11  # versions of Produce that add partitions to transactions, and that do not
COMMITTED = {"isolation_level": 1}


@pytest.fixture
def path() -> DataPath:
    path = DataPath()
    path.topic()
    return path


def send(path: DataPath, *values: bytes, pid: int = 1, epoch: int = 0, seq: int = 0, **more: Any) -> Any:
    """One transactional batch; the partition's answer, or PARKED."""
    data = batch(*values, pid=pid, epoch=epoch, seq=seq, attributes=TRANSACTIONAL)
    return path.produce(data, version=more.pop("version", V2), transactional_id=f"tx-{pid}", **more)


def committed(path: DataPath, offset: int = 0, **more: Any) -> Any:
    return path.fetch(offset, request={**COMMITTED, **more})


def read_committed(path: DataPath) -> list[bytes | None]:
    """What a consumer of committed records gets, as Kafka's consumer filters it."""
    from protocol.record_batch import control_type, iter_batches, iter_records

    offset, values = 0, []
    while True:
        answer = committed(path, offset)
        if not len(answer.records):
            return values
        left = sorted((a.first_offset, a.producer_id) for a in answer.aborted_transactions)
        aborting: set[int] = set()
        data = answer.records.read()
        for position, header in iter_batches(data):
            while left and left[0][0] <= header.last_offset:
                aborting.add(left.pop(0)[1])
            offset = header.last_offset + 1
            for record in iter_records(data[position : position + header.size]):
                if header.is_control:
                    assert record.key is not None
                    if control_type(record.key) == 0:
                        aborting.discard(header.producer_id)
                elif not (header.is_transactional and header.producer_id in aborting):
                    values.append(record.value)


def stable(path: DataPath) -> int:
    return path.fetch().last_stable_offset


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
    assert committed(path, max_wait_ms=500, min_bytes=min_bytes) is PARKED
    send(path, b"a")
    assert path.answers == []
    path.mark(1, 1, commit=True)
    ((_, response),) = path.answers
    assert values_of(response.responses[0].partitions[0].records)[0] == b"a"


def test_parked_reader_of_all_records_does_not_wait_for_the_marker(path: DataPath) -> None:
    assert path.fetch(request={"max_wait_ms": 500}) is PARKED
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


# ---------------------------------------------------------------- the gate


def test_gate_is_asked_once_for_a_transaction(path: DataPath) -> None:
    send(path, b"a")
    send(path, b"b", seq=1)
    assert path.transactions.asked == [("tx-1", 1, 0, [("t", 0)])]
    path.mark(1, 1, commit=True)
    send(path, b"c", epoch=1)
    assert len(path.transactions.asked) == 2


def test_refused_at_the_gate_is_not_written_and_holds_back_what_follows(path: DataPath) -> None:
    path.transactions.code = ErrorCode.CONCURRENT_TRANSACTIONS
    answer = send(path, b"a", version=V1)
    assert (answer.error_code, answer.base_offset) == (ErrorCode.CONCURRENT_TRANSACTIONS, -1)
    path.transactions.code = ErrorCode.NONE
    assert send(path, b"b", seq=1, version=V1).error_code == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert [send(path, b"a", seq=seq, version=V1).base_offset for seq in (0, 1)] == [0, 1]


def test_parked_at_the_gate_is_appended_when_it_opens(path: DataPath) -> None:
    path.transactions.holds = True
    assert send(path, b"a") is PARKED
    assert send(path, b"b", seq=1) is PARKED
    assert path.fetch().high_watermark == 0
    path.transactions.open()
    path.end_turn()
    assert [r.responses[0].partition_responses[0].base_offset for _, r in path.answers] == [0, 1]
    assert values_of(path.fetch().records) == [b"a", b"b"]


def two_partitions(path: DataPath, *, version: int = V2) -> Any:
    """A request whose first partition has to pass the gate, and whose second one need not."""
    path.topic("u", partitions=2)
    send(path, b"open", name="u", index=1)
    path.transactions.holds = True
    parts = [
        PartitionProduceData(index=0, records=batch(b"a", pid=1, epoch=0, seq=0, attributes=TRANSACTIONAL)),
        PartitionProduceData(index=1, records=batch(b"b", pid=1, epoch=0, seq=1, attributes=TRANSACTIONAL)),
    ]
    data = TopicProduceData(name="u", topic_id=path.metadata.topics["u"].topic_id, partition_data=parts)
    request = ProduceRequest(acks=-1, transactional_id="tx-1", topic_data=[data])
    return path.produce_request(request, path.context(version))


def test_partitions_that_are_open_do_not_wait_for_those_at_the_gate(path: DataPath) -> None:
    assert two_partitions(path) is PARKED
    assert send(path, b"c", seq=2, name="u", index=1).base_offset == 2
    path.transactions.open()
    path.end_turn()
    ((_, response),) = path.answers
    assert [(p.index, p.error_code, p.base_offset) for p in response.responses[0].partition_responses] == [
        (0, 0, 0),
        (1, 0, 1),
    ]


def test_what_was_lost_while_others_were_at_the_gate_is_an_error(path: DataPath) -> None:
    assert two_partitions(path) is PARKED
    path.env.files.inject(1)
    path.end_turn()
    path.env.files.heal()
    path.transactions.open()
    path.end_turn()
    ((_, response),) = path.answers
    codes = [p.error_code for p in response.responses[0].partition_responses]
    assert codes[0] == 0
    assert ErrorCode(codes[1]).retriable
    assert path.fetch(name="u", index=1).high_watermark == 1


def test_topic_that_goes_while_its_records_are_at_the_gate(path: DataPath) -> None:
    path.transactions.holds = True
    assert send(path, b"a") is PARKED
    path.delete_topic(path.metadata.topics["t"])
    path.transactions.open()
    ((_, response),) = path.answers
    assert response.responses[0].partition_responses[0].error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def test_client_that_goes_leaves_its_records_to_the_transaction(path: DataPath) -> None:
    path.transactions.holds = True
    assert send(path, b"a") is PARKED
    path.parked.clear()
    path.transactions.open()
    path.end_turn()
    assert path.answers == []
    assert path.fetch().high_watermark == 1


def test_records_of_two_producers_refuse_the_request(path: DataPath) -> None:
    parts = [
        PartitionProduceData(index=0, records=batch(b"a", pid=pid, epoch=0, seq=0, attributes=TRANSACTIONAL))
        for pid in (1, 2)
    ]
    request = ProduceRequest(
        acks=-1, transactional_id="tx", topic_data=[TopicProduceData(name="t", partition_data=parts)]
    )
    with pytest.raises(KafkaError) as refused:
        path.produce_request(request, path.context(V1))
    assert refused.value.code == ErrorCode.INVALID_PRODUCER_ID_MAPPING


@pytest.mark.parametrize("code", [ErrorCode.NONE, ErrorCode.INVALID_TXN_STATE])
def test_without_acks_the_gate_closes_the_connection_or_says_nothing(path: DataPath, code: ErrorCode) -> None:
    path.transactions.holds = True
    assert send(path, b"a", acks=0) is PARKED
    path.transactions.held.pop()({("t", 0): code})
    path.end_turn()
    if code:
        assert len(path.connection.refusals) == 1
    else:
        assert path.connection.filled == [(0, b"")]
        assert path.parked == {}


# ---------------------------------------------------------------- restarts


@pytest.mark.parametrize("clean", [True, False])
def test_transactions_survive_a_restart(path: DataPath, clean: bool) -> None:
    for number in range(3):
        send(path, b"%d" % number, epoch=number)
        path.mark(1, number + 1, commit=number == 1)
    send(path, b"open", pid=2)
    path.produce(batch(b"later"))
    path = path.reopened(clean=clean)
    assert stable(path) == 6
    assert read_committed(path) == [b"1"]
    assert path.partition(path.metadata.topics["t"], 0).has_open_transaction(2, 0)
    path.mark(2, 1, commit=True)
    assert read_committed(path) == [b"1", b"open", b"later"]
    names = [n for n in path.env.files.listdir("data/t-0") if n.endswith(".txnindex")]
    assert names == ([f"{0:020d}.txnindex"] if clean else [])


def test_index_lies_with_the_segments_of_the_markers() -> None:
    path = DataPath()
    topic = path.topic(segment_bytes=str(1 << 20))
    partition = path.partition(topic, 0)
    for number in range(4):
        send(path, b"x" * 600_000, epoch=number)
        path.mark(1, number + 1, commit=False)
        if number == 1:
            assert partition.take_snapshot()
    path = path.reopened()
    partition = path.partition(path.metadata.topics["t"], 0)
    files = path.env.files
    sizes = {int(n[:20]): len(files.read_file(f"data/t-0/{n}")) for n in files.listdir("data/t-0") if "txnindex" in n}
    bases = [segment.base_offset for segment in partition.log.segments]
    assert sizes == dict.fromkeys(bases, 34)
    assert partition.aborted_transactions(0, 8) == []
    assert read_committed(path) == []
    assert partition.aborted_transactions(0, 8) == [(1, 0), (1, 2), (1, 4), (1, 6)]


def test_lines_of_lost_markers_are_not_believed() -> None:
    """A marker whose index line was synced, and which a power cut took from the log."""
    path = DataPath()
    topic = path.topic()
    send(path, b"a")
    path.partition(topic, 0).log.sync()
    path.mark(1, 1, commit=False)
    path.partition(topic, 0).take_snapshot()
    path = path.reopened(clean=False, files=path.env.files.crash(lose_unsynced=True))
    assert stable(path) == 0
    path.mark(1, 1, commit=True)
    for _ in range(3):
        path.produce(batch(b"x"))
    path = path.reopened()
    assert read_committed(path) == [b"a", b"x", b"x", b"x"]
    assert not any("txnindex" in name for name in path.env.files.listdir("data/t-0"))


def test_lost_index_is_made_again_from_the_log(path: DataPath) -> None:
    send(path, b"a")
    path.mark(1, 1, commit=False)
    path.produce(batch(b"x"))
    path = path.reopened()
    path.env.files.remove(f"data/t-0/{0:020d}.txnindex")
    assert read_committed(path) == [b"x"]


def test_retention_forgets_what_was_aborted_before_the_start(path: DataPath) -> None:
    for number in range(3):
        send(path, b"a", epoch=number)
        path.mark(1, number + 1, commit=False)
    partition = path.partition(path.metadata.topics["t"], 0)
    partition.delete_records(4)
    assert partition.aborted_transactions(0, 9) == [(1, 4)]


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
    response = describe_producers(path, path.context(0), DescribeProducersRequest(topics=topics))  # type: ignore[arg-type]
    known, beyond = response.topics[0].partitions
    assert [
        (p.producer_id, p.producer_epoch, p.last_sequence, p.coordinator_epoch, p.current_txn_start_offset)
        for p in known.active_producers
    ] == [(3, 1, 7, -1, -1), (9, 3, 0, 4, 4)]
    assert {p.last_timestamp for p in known.active_producers} == {NOW_MS}
    unknown = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert (beyond.error_code, response.topics[1].partitions[0].error_code) == (unknown, unknown)
