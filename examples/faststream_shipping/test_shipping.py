"""The shipping service: each order is shipped once, whatever is lost, refused, slow or delivered twice."""

from __future__ import annotations

import json

import pytest
from order_samples import COUNT, ORDERS, SHIPMENTS

DONE = {("orders", 0): COUNT}


async def shipments(broker, least: int = 0) -> list[dict]:
    return [json.loads(record.value) for record in await broker.consume("shipments", least)]


async def test_each_order_is_shipped_and_committed(broker, make_service):
    await make_service(broker)
    await broker.wait_for_committed("shipping", DONE)
    assert await shipments(broker) == SHIPMENTS


async def test_order_that_was_written_twice_is_shipped_once(broker, make_service):
    await broker.produce("orders", json.dumps(ORDERS[2]), partition=0)
    service = await make_service(broker)
    await broker.wait_for_committed("shipping", {("orders", 0): COUNT + 1})
    assert service.seen.count("order-2") == 2
    assert await shipments(broker) == SHIPMENTS


async def test_what_is_no_order_is_put_aside_and_holds_nothing_up(broker, make_service):
    await broker.produce("orders", "12 roses", json.dumps({"order_id": "late", "weight_g": 1}), partition=0)
    await make_service(broker)
    assert (await shipments(broker, COUNT + 1))[-1] == {"order_id": "late", "parcels": 1}
    (refused,) = await broker.consume("orders-refused", 1)
    assert refused.value == b"12 roses"
    assert ("reason", b"json_invalid") in refused.headers


async def test_order_that_the_carrier_does_not_take_is_read_again_in_its_place(broker, make_service):
    closed = iter(range(2))

    async def carrier(order):
        for _ in closed:
            raise ConnectionError("the carrier does not answer")

    service = await make_service(broker, carrier=carrier)
    await broker.wait_for_committed("shipping", DONE)
    assert service.seen[:4] == ["order-0", "order-0", "order-0", "order-1"]
    assert await shipments(broker) == SHIPMENTS


@pytest.mark.parametrize("when", ["before", "after"])
async def test_connection_that_breaks_as_a_shipment_is_written_adds_none(broker, make_service, when):
    cut = await broker.faults.disconnect_on("Produce", when=when, topic="shipments", trigger="once")
    await make_service(broker)
    await broker.wait_for_committed("shipping", DONE)
    assert await cut.hits == 1
    assert await shipments(broker) == SHIPMENTS


async def test_leader_that_moves_costs_no_shipment(broker, make_service):
    moved = await broker.faults.inject_error("Produce", "NOT_LEADER_OR_FOLLOWER", topic="shipments", trigger="once")
    await make_service(broker)
    await broker.wait_for_committed("shipping", DONE)
    assert await moved.hits == 1
    assert await shipments(broker) == SHIPMENTS


async def test_coordinator_that_still_loads_holds_a_commit_up_and_no_more(broker, make_service):
    await broker.faults.inject_error("OffsetCommit", "COORDINATOR_LOAD_IN_PROGRESS", times=2)
    await make_service(broker)
    await broker.wait_for_committed("shipping", DONE)
    assert await shipments(broker) == SHIPMENTS
    await broker.journal.verify(api="OffsetCommit", error="COORDINATOR_LOAD_IN_PROGRESS", times=2)


async def test_worker_that_dies_before_its_commit_is_followed_by_one_that_ships_nothing_twice(broker, make_service):
    """The cluster is forked at that very moment: the shipment is written, its order is not committed."""
    held = await broker.faults.hold("OffsetCommit", when="before", on_call=3)
    await make_service(broker)
    await held.wait_until_held()
    async with await broker.fork() as after:
        assert await after.committed("shipping") == {("orders", 0): 2}
        assert len(await after.consume("shipments")) == 3
        await after.clock.advance(seconds=11)  # the member of that time is gone
        successor = await make_service(after)
        await after.wait_for_committed("shipping", DONE)
        assert successor.seen[0] == "order-2"  # delivered again
        assert await shipments(after) == SHIPMENTS
        await successor.stop()
    await held.remove()


async def test_worker_that_falls_silent_is_expelled_after_ten_seconds(broker, make_service):
    await make_service(broker)
    await broker.wait_for_committed("shipping", DONE)
    silent = await broker.faults.hold("Heartbeat", when="before")
    await broker.clock.advance(seconds=9)
    await broker.wait_for_group("shipping", "stable", members=1)
    await broker.clock.advance(seconds=2)
    await broker.wait_for_group("shipping", "empty", members=0)
    await silent.remove()


async def test_offsets_that_expire_lead_to_deliveries_and_to_no_shipment(broker, make_service):
    first = await make_service(broker)
    await broker.wait_for_committed("shipping", DONE)
    await first.stop()
    await broker.clock.advance(days=8)
    assert await broker.committed("shipping") == {}
    second = await make_service(broker)
    await broker.wait_for_committed("shipping", DONE)
    assert len(second.seen) == COUNT
    assert await shipments(broker) == SHIPMENTS
