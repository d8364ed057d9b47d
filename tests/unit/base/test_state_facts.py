"""What a fingerprint compares of topics, transactions and producers: every slot but those declared VOLATILE."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from core_broker import Client, World, make_topic
from txn_kit import Producer

from broker.base.facts import slots
from broker.cluster.client_records import ClientSettings
from broker.cluster.metadata import ClusterMetadata
from broker.cluster.topics import Topic, TopicPartition
from broker.coordinator.transactions.machine import TransactionMachine
from broker.coordinator.transactions.transaction import State, Transaction
from broker.partitions.aborted import AbortedTransactions
from broker.partitions.producer_table import ProducerTable, Row
from broker.partitions.producers import Producers
from protocol.messages.configs import (
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsRequestAlterableConfig,
    IncrementalAlterConfigsRequestAlterConfigsResource,
)

CLASSES = [
    ClusterMetadata,
    ClientSettings,
    Topic,
    TopicPartition,
    TransactionMachine,
    Transaction,
    Producers,
    ProducerTable,
    AbortedTransactions,
]


@pytest.fixture
def world() -> World:
    """Two topics, a transaction that was aborted, and one that is open."""
    made = World("os", producer_state="batches")
    client = Client(made)
    make_topic(client, "t", 2)
    make_topic(client, "a.b", 1)
    config = IncrementalAlterConfigsRequestAlterableConfig(name="retention.ms", config_operation=0, value="1000")
    resource = IncrementalAlterConfigsRequestAlterConfigsResource(resource_type=2, resource_name="t", configs=[config])
    answer = client.call(IncrementalAlterConfigsRequest(resources=[resource]), 1)
    assert answer.responses[0].error_code == 0
    producer = Producer(client)
    assert producer.init() == 0
    assert producer.produce(b"first") == 0
    assert producer.end(commit=False) == 0
    assert producer.produce(b"second") == producer.produce(b"third") == 0
    return made


def other(value: Any) -> Any:
    """Another value of the same type."""
    if isinstance(value, State):
        return State((value + 1) % 6)
    if isinstance(value, bool):
        return not value
    if isinstance(value, int):
        return value + 1
    if isinstance(value, dict):
        return dict(list(value.items())[1:]) if value else {"other": {1: "other"}}
    if isinstance(value, (str, bytes)):
        return value + value[:1] if value else type(value)(b"x") if isinstance(value, bytes) else "x"
    if isinstance(value, list):
        return value[1:] if value else [1]
    return value[:0] if len(value) else type(value)("q", [1])  # an array


def unnoticed(things: list[Any], fingerprint: Any) -> list[tuple[str, str]]:
    """The slots, not declared VOLATILE, that can change without a change of the fingerprint."""
    before = fingerprint()
    found = []
    for thing in things:
        for name in hard_slots(thing):
            value = getattr(thing, name)
            if hasattr(value, "VOLATILE"):
                continue  # it is among the things itself
            setattr(thing, name, other(value))
            if fingerprint() == before:
                found.append((type(thing).__name__, name))
            setattr(thing, name, value)
    assert fingerprint() == before
    return found


def hard_slots(thing: Any) -> Iterator[str]:
    return (name for name in slots(type(thing)) if name not in thing.VOLATILE)


@pytest.mark.parametrize("kind", CLASSES)
def test_volatile_slots_exist_and_say_why(kind):
    assert set(kind.VOLATILE) <= set(slots(kind))
    assert all(kind.VOLATILE.values())
    assert "__dict__" not in dir(kind)


def test_change_of_any_hard_slot_of_the_metadata_is_noticed(world):
    metadata = world.broker.metadata
    topics = [topic for topic in metadata.topics.values() if not topic.internal]
    things = [metadata, metadata.clients, *topics, *(p for topic in topics for p in topic.partitions)]
    assert unnoticed(things, metadata.fingerprint) == []


def test_change_of_any_hard_slot_of_a_transaction_is_noticed(world):
    machine = world.broker.transactions.shard("tx").machine
    transaction = machine.transactions["tx"]
    assert transaction.partitions
    assert unnoticed([machine, transaction], machine.fingerprint) == []


def test_encoded_partitions_that_are_not_those_of_the_transaction_are_noticed(world):
    machine = world.broker.transactions.shard("tx").machine
    transaction = machine.transactions["tx"]
    before = machine.fingerprint()
    transaction._wire = None
    assert machine.fingerprint() == before
    transaction._wire = b"\1"
    assert machine.fingerprint() != before


def producers_of(world: World) -> Producers:
    broker = world.broker
    return broker.partitions.get(broker.metadata.topics["t"], 0).producers


def test_change_of_any_hard_slot_of_producers_is_noticed(world):
    producers = producers_of(world)
    assert producers.open
    assert producers.aborted
    assert producers._older
    assert unnoticed([producers, producers.table, producers.aborted], producers.fingerprint) == []


@pytest.mark.parametrize("field", Row._fields)
def test_change_of_any_field_of_a_producers_row_is_noticed(world, field):
    producers = producers_of(world)
    (producer_id,) = producers.table
    row = producers.table[producer_id]
    before = producers.fingerprint()
    producers.table.put(producer_id, *row._replace(**{field: getattr(row, field) + 1}))
    assert producers.fingerprint() != before
    producers.table.put(producer_id, *row)
    assert producers.fingerprint() == before


def test_rows_compare_equal_however_they_are_cut_into_leaves():
    rows = [(producer_id, (0, 1, 2, 3, 4, 5, 6, 7)) for producer_id in range(2000)]
    filled, put = ProducerTable(), ProducerTable()
    filled.fill(rows)
    for producer_id, row in reversed(rows):
        put.put(producer_id, *row)
    assert len(filled._leaves) != len(put._leaves)
    assert filled.facts() == put.facts()


def test_facts_taken_before_do_not_change_with_the_state(world):
    producers, metadata = producers_of(world), world.broker.metadata
    machine = world.broker.transactions.shard("tx").machine
    for state in (producers, metadata, machine):
        before, kept = state.fingerprint(), repr(state.fingerprint())
        for thing in (state, *getattr(state, "topics", {}).values()):
            for name in hard_slots(thing):
                value = getattr(thing, name)
                if isinstance(value, dict):
                    value["other"] = next(iter(value.values()), {})
                    assert repr(before) == kept, name
                    del value["other"]
    before, kept = producers.fingerprint(), repr(producers.fingerprint())
    producers.aborted.append(1, 2, 3, 4)
    assert repr(before) == kept


def test_world_compares_the_state_it_has_with_the_state_that_its_logs_say(world):
    world.check_replay()
    producers_of(world).table.put(7, 0, 0, 0, 0, 0, 0, 0, 0)
    with pytest.raises(AssertionError, match="producers t-0"):
        world.check_replay()
