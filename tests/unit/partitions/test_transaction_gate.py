"""Transactional records on their way through the gate: asked once, parked, refused, and never overtaken."""

from __future__ import annotations

from typing import Any

import pytest
from unit.partitions.data_path import DataPath, batch, values_of
from unit.partitions.txn_path import V1, V2, send

from broker.turn.decision import LATER
from protocol.errors import ErrorCode, KafkaError
from protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from protocol.record_batch import TRANSACTIONAL


@pytest.fixture
def path() -> DataPath:
    path = DataPath()
    path.topic()
    return path


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


NOT_A_BATCH = {
    "two batches": (ErrorCode.INVALID_RECORD, lambda data: data * 2),
    "half a batch": (ErrorCode.INVALID_RECORD, lambda data: data[:-1]),
    "zstd": (ErrorCode.UNSUPPORTED_COMPRESSION_TYPE, lambda data: data[:22] + bytes([data[22] | 4]) + data[23:]),
}


@pytest.mark.parametrize("what", NOT_A_BATCH)
def test_what_is_not_one_batch_does_not_join_the_transaction(path: DataPath, what: str) -> None:
    code, spoil = NOT_A_BATCH[what]
    data = spoil(batch(b"a", pid=1, epoch=0, seq=0, attributes=TRANSACTIONAL))
    path.transactions.code = ErrorCode.INVALID_TXN_STATE
    answer = path.produce(data, version=6 if what == "zstd" else V2, transactional_id="tx-1")
    assert (answer.error_code, answer.log_start_offset) == (code, -1)
    assert path.transactions.asked == []


@pytest.mark.parametrize("code", [ErrorCode.NONE, ErrorCode.INVALID_TXN_STATE])
def test_impossible_acks_are_found_behind_the_gate(path: DataPath, code: ErrorCode) -> None:
    path.transactions.code = code
    answer = send(path, b"a", acks=2)
    assert len(path.transactions.asked) == 1
    assert (answer.error_code, answer.log_start_offset) == (code or ErrorCode.INVALID_REQUIRED_ACKS, -1)
    assert path.fetch().high_watermark == 0


def test_internal_topic_is_found_behind_the_gate(path: DataPath) -> None:
    path.topic("__consumer_offsets")
    assert send(path, b"a", name="__consumer_offsets").error_code == ErrorCode.INVALID_TOPIC_EXCEPTION
    path.transactions.code = ErrorCode.INVALID_TXN_STATE
    assert send(path, b"a", name="__consumer_offsets").error_code == ErrorCode.INVALID_TXN_STATE


def test_old_epoch_is_refused_without_a_log_start_offset(path: DataPath) -> None:
    send(path, b"a", epoch=3)
    answer = send(path, b"b", epoch=2)
    assert (answer.error_code, answer.log_start_offset) == (ErrorCode.INVALID_PRODUCER_EPOCH, -1)


def test_parked_at_the_gate_is_appended_when_it_opens(path: DataPath) -> None:
    path.transactions.holds = True
    assert send(path, b"a") is LATER
    assert send(path, b"b", seq=1) is LATER
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
    assert two_partitions(path) is LATER
    assert send(path, b"c", seq=2, name="u", index=1).base_offset == 2
    path.transactions.open()
    path.end_turn()
    ((_, response),) = path.answers
    assert [(p.index, p.error_code, p.base_offset) for p in response.responses[0].partition_responses] == [
        (0, 0, 0),
        (1, 0, 1),
    ]


def test_what_was_lost_while_others_were_at_the_gate_is_an_error(path: DataPath) -> None:
    assert two_partitions(path) is LATER
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
    assert send(path, b"a") is LATER
    path.delete_topic(path.metadata.topics["t"])
    path.transactions.open()
    ((_, response),) = path.answers
    assert response.responses[0].partition_responses[0].error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def test_client_that_goes_leaves_its_records_to_the_transaction(path: DataPath) -> None:
    path.transactions.holds = True
    assert send(path, b"a") is LATER
    path.parked.clear()
    path.transactions.open()
    path.end_turn()
    assert path.answers == []
    assert path.fetch().high_watermark == 1


def test_records_of_two_producers_refuse_the_request(path: DataPath) -> None:
    path.topic("u", partitions=2)
    parts = [
        PartitionProduceData(index=pid, records=batch(b"a", pid=pid, epoch=0, seq=0, attributes=TRANSACTIONAL))
        for pid in (0, 1)
    ]
    request = ProduceRequest(
        acks=-1, transactional_id="tx", topic_data=[TopicProduceData(name="u", partition_data=parts)]
    )
    with pytest.raises(KafkaError) as refused:
        path.produce_request(request, path.context(V1))
    assert refused.value.code == ErrorCode.INVALID_PRODUCER_ID_MAPPING


@pytest.mark.parametrize("code", [ErrorCode.NONE, ErrorCode.INVALID_TXN_STATE])
def test_without_acks_the_gate_closes_the_connection_or_says_nothing(path: DataPath, code: ErrorCode) -> None:
    path.transactions.holds = True
    assert send(path, b"a", acks=0) is LATER
    path.transactions.held.pop()({("t", 0): code})
    path.end_turn()
    if code:
        assert len(path.connection.refusals) == 1
    else:
        assert path.connection.filled == [(0, b"")]
        assert path.parked == {}
