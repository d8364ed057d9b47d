"""Transactional records on their way through the gate: asked once, parked, refused, and never overtaken."""

from __future__ import annotations

from typing import Any

import pytest
from data_path import DataPath, batch, values_of
from txn_path import V1, V2, send

from broker.coordinator.result import PARKED
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
