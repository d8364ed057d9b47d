"""The orders service: whatever goes wrong, each order has exactly one invoice."""

from __future__ import annotations

import asyncio
import re

import pytest
from aiokafka.errors import KafkaError, ProducerFenced
from order_samples import COUNT
from orders import PRICE, Orders, supervise

EXPECTED = sorted(f"customer-{number} {number * PRICE}" for number in range(COUNT))
STEPS = ["AddPartitionsToTxn", "Produce", "AddOffsetsToTxn", "TxnOffsetCommit", "EndTxn"]


async def invoices(broker, least: int = COUNT) -> list[str]:
    """What a careful reader of the invoices sees."""
    records = await broker.aio.consume("invoices", least, isolation="committed")
    return sorted(record.value.decode() for record in records)


async def test_each_order_has_its_invoice(broker):
    async def all_invoiced():
        return len(await invoices(broker, 0)) >= COUNT

    await supervise(broker.client_config("aiokafka"), all_invoiced)
    assert await invoices(broker) == EXPECTED
    committed = await broker.aio.committed("orders")
    assert committed == {("orders", 0): 10, ("orders", 1): 10}


@pytest.mark.parametrize("api", STEPS)
@pytest.mark.parametrize("when", ["before", "after"])
async def test_connection_that_breaks_at_any_step_costs_no_invoice_and_adds_none(broker, service, api, when):
    fault = await broker.aio.faults.disconnect_on(api, when=when, trigger="once", client_id="orders-1")
    await service.work(COUNT)
    assert await fault.hits == 1
    assert await invoices(broker) == EXPECTED


@pytest.mark.parametrize("api", STEPS)
async def test_coordinator_that_moves_at_any_step_costs_no_invoice_and_adds_none(broker, service, api):
    error = "NOT_LEADER_OR_FOLLOWER" if api == "Produce" else "NOT_COORDINATOR"
    await broker.aio.faults.inject_error(api, error, trigger="once")
    await service.work(COUNT)
    assert await invoices(broker) == EXPECTED


async def test_worker_that_dies_between_offsets_and_commit_leaves_no_trace(broker, service):
    """Stopped exactly there: the offsets are sent, the transaction is not ended."""
    held = await broker.aio.faults.hold("EndTxn", when="before", trigger="once")
    working = asyncio.create_task(service.work(COUNT))
    await held.wait_until_held()
    assert await broker.aio.consume("invoices", isolation="committed") == []
    assert await broker.aio.committed("orders") == {}
    working.cancel()
    await asyncio.gather(working, return_exceptions=True)
    await held.remove()


async def test_zombie_is_fenced_and_told_why(broker, service):
    """A worker that is replaced while it works: its name belongs to the new one, which does its work."""
    await service.work(5)
    successor = Orders(broker.client_config("aiokafka"))
    await successor.start()
    with pytest.raises((ProducerFenced, KafkaError)):
        await service.work(COUNT)
    sentence = r"the producer sent id \d+, epoch 0; transactional id orders-1 is \w+, with producer id \d+, epoch 1"
    told = [entry["why"] for entry in await broker.aio.journal.entries() if "why" in entry]
    assert any(re.fullmatch(sentence, why) for why in told), told
    await service.stop()
    done = len(await invoices(broker, 0))
    await successor.work(COUNT - done)
    await successor.stop()
    assert await invoices(broker) == EXPECTED


async def test_transaction_of_a_worker_that_fell_silent_is_aborted_after_a_minute(broker, service):
    held = await broker.aio.faults.hold("EndTxn", when="before", trigger="once")
    working = asyncio.create_task(service.work(COUNT))
    await held.wait_until_held()
    await broker.aio.produce("invoices", "by hand 1")
    assert await invoices(broker, 0) == []  # after the open transaction
    await broker.aio.clock.advance(seconds=61)
    assert await invoices(broker, 1) == ["by hand 1"]
    working.cancel()
    await asyncio.gather(working, return_exceptions=True)
    await held.remove()
