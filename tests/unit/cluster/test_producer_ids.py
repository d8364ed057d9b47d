"""Producer ids: none is given before the log has reserved it, and none is given twice."""

from __future__ import annotations

import pytest
from admin_broker import AdminBroker
from core_broker import Client, World
from txn_kit import Producer

from broker.cluster import metadata as cluster_metadata
from broker.cluster.metadata import PRODUCER_ID_BLOCK


def take(broker: AdminBroker, count: int) -> list[int]:
    """So many ids; each was reserved by the log when it was given."""
    given = []
    for _ in range(count):
        producer_id, records = broker.metadata.next_producer_id()
        if records:
            broker._apply([(None, value) for value in records])
        assert producer_id < broker.metadata.reserved_producer_id
        given.append(producer_id)
    return given


@pytest.mark.parametrize("first", [1, PRODUCER_ID_BLOCK - 1, PRODUCER_ID_BLOCK, PRODUCER_ID_BLOCK + 1])
def test_no_id_is_given_twice_over_a_start(first):
    broker = AdminBroker()
    given = take(broker, first)
    broker.metadata = broker.reloaded()
    given += take(broker, PRODUCER_ID_BLOCK + 1)
    assert len(set(given)) == len(given)


def test_a_block_is_reserved_when_the_last_one_is_used_up_and_not_before():
    broker = AdminBroker()
    batches = len(broker.batches)
    assert take(broker, 2 * PRODUCER_ID_BLOCK + 1) == list(range(2 * PRODUCER_ID_BLOCK + 1))
    assert len(broker.batches) - batches == 3
    assert broker.metadata.reserved_producer_id == 3 * PRODUCER_ID_BLOCK


def test_producers_on_both_sides_of_a_start_have_different_ids(monkeypatch):
    monkeypatch.setattr(cluster_metadata, "PRODUCER_ID_BLOCK", 2)
    world, given = World("os"), []
    for _ in range(3):
        for name in ("a", "b", "c"):
            producer = Producer(Client(world), f"{name}{len(given)}")
            assert producer.init() == 0
            given.append(producer.id)
        world = world.crash()
    assert len(set(given)) == len(given) == 9
