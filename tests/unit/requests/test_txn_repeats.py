"""Transactional requests that are served from their bytes, where what they write is lost, or has to wait."""

from __future__ import annotations

from typing import Any

import pytest
from core_broker import Client, World, count_repeats, make_topic
from txn_kit import Producer, committed, state_of, states_in_log

from broker.coordinator.transactions.transaction import COMPLETE_COMMIT, EMPTY, ONGOING, PREPARE_COMMIT
from protocol.api import ApiKey
from protocol.errors import ErrorCode
from protocol.messages.transactions import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnTopic,
    AddPartitionsToTxnTransaction,
)


def producer_of(flush: str = "os", *, v2: bool = True) -> Producer:
    """A producer of which three transactions have been committed."""
    client = Client(World(flush))
    make_topic(client, "t", 3)
    producer = Producer(client, v2=v2)
    assert producer.init() == 0
    for offset in range(3):
        transact(producer, offset)
    return producer


def transact(producer: Producer, offset: int) -> None:
    begin(producer, offset)
    assert producer.end() == 0


def begin(producer: Producer, offset: int) -> None:
    if not producer.v2:
        assert producer.add_offsets() == 0
    assert producer.send_offsets({0: offset}) == {0: 0}


@pytest.mark.parametrize("v2", [False, True])
def test_end_whose_decision_is_lost_is_refused_and_may_be_repeated(v2: bool) -> None:
    producer = producer_of(v2=v2)
    world = producer.client.world
    begin(producer, 7)
    served = count_repeats(world, ApiKey.END_TXN)
    world.files.inject(1)
    assert producer.end() == ErrorCode.NOT_COORDINATOR
    assert (served, states_in_log(world)[-1]) == ([True], ONGOING)
    assert producer.end() == 0
    assert committed(producer.client) == {0: (7, 0)}


@pytest.mark.parametrize("v2", [False, True])
def test_end_whose_marker_is_lost_is_answered_when_the_marker_is_written(v2: bool) -> None:
    producer = producer_of(v2=v2)
    client, world = producer.client, producer.client.world
    begin(producer, 7)
    served = count_repeats(world, ApiKey.END_TXN)
    world.files.inject(2)  # the first write is that of the decision
    client.send(producer.end_request(), 5 if v2 else 4)
    world.run()
    assert (served, client.replies(), states_in_log(world)[-1]) == ([True], [], PREPARE_COMMIT)
    world.advance(1_000)
    (reply,) = client.replies()
    assert (reply.error_code, reply.producer_id) == (0, producer.id if v2 else -1)
    assert states_in_log(world)[-1] == COMPLETE_COMMIT
    assert committed(client) == {0: (7, 0)}


def test_offsets_whose_transaction_is_lost_are_refused_and_not_committed() -> None:
    producer = producer_of()
    world = producer.client.world
    served = count_repeats(world, ApiKey.TXN_OFFSET_COMMIT)
    world.files.inject(1)
    assert producer.send_offsets({0: 7}) == {0: ErrorCode.COORDINATOR_NOT_AVAILABLE}
    assert (served, states_in_log(world)[-1]) == ([True], COMPLETE_COMMIT)
    assert committed(producer.client, stable=True) == {0: (2, 0)}
    transact(producer, 8)
    assert committed(producer.client) == {0: (8, 0)}


@pytest.mark.parametrize("v2", [False, True])
def test_without_epochs_left_a_repeat_is_left_to_the_general_codec(v2: bool) -> None:
    producer = producer_of(v2=v2)
    world = producer.client.world
    begin(producer, 7)
    served = count_repeats(world, ApiKey.END_TXN)
    transaction = world.broker.transactions.shard("tx").machine.transactions["tx"]
    transaction.producer_epoch = producer.epoch = 32766
    assert producer.end() == 0
    assert served == [not v2]


@pytest.mark.parametrize("flush", ["os", "fsync"])
def test_only_what_has_to_wait_for_a_sync_is_left_to_the_general_codec(flush: str) -> None:
    producer = producer_of(flush, v2=False)
    world = producer.client.world
    keys = ApiKey.ADD_OFFSETS_TO_TXN, ApiKey.TXN_OFFSET_COMMIT, ApiKey.END_TXN
    served = [count_repeats(world, key) for key in keys[:1]]
    transact(producer, 7)
    served += [count_repeats(world, key) for key in keys[1:2]]
    transact(producer, 8)
    served += [count_repeats(world, key) for key in keys[2:]]
    transact(producer, 9)
    assert [each[-1] for each in served] == [True, True, flush == "os"]


def test_transaction_that_is_named_twice_gets_the_partitions_of_both() -> None:
    producer = producer_of()
    client, world = producer.client, producer.client.world
    parts = [
        AddPartitionsToTxnTransaction(
            transactional_id=producer.name,
            producer_id=producer.id,
            producer_epoch=producer.epoch,
            topics=[AddPartitionsToTxnTopic(name="t", partitions=[index])],
        )
        for index in (2, 0)
    ]
    served = count_repeats(world, ApiKey.ADD_PARTITIONS_TO_TXN)

    def topics() -> dict[str, Any]:
        assert client.call(AddPartitionsToTxnRequest(transactions=parts), 5).error_code == 0
        return {topic.topic: topic.partitions for topic in state_of(client).topics}

    assert topics() == {"t": [2, 0]}
    assert producer.end() == 0
    for part in parts:
        part.producer_epoch = producer.epoch
    assert topics() == {"t": [2, 0]}
    assert served == [False, True]


def test_states_in_the_log_are_those_of_each_step() -> None:
    producer = producer_of()
    world = producer.client.world
    assert states_in_log(world) == [EMPTY, *[ONGOING, PREPARE_COMMIT, COMPLETE_COMMIT] * 3]
