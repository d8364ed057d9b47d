"""The web shop: an order that was accepted is there once, and who waits for Kafka gets an answer in time."""

from __future__ import annotations

import asyncio
import json

import pytest

ORDER = {"order_id": "tea-9", "article": "tea", "count": 3}


async def orders(broker, least: int = 0) -> list[dict]:
    return [json.loads(record.value) for record in await broker.consume("orders", least)]


async def states_are_read(browser, count: int) -> None:
    while browser.shop.read_up_to < count:
        await asyncio.sleep(0.01)


async def test_order_is_in_the_topic_when_the_customer_has_an_answer(broker, browser):
    answer = await browser.post("/orders", json=ORDER)
    assert (answer.status_code, answer.json()) == (201, {"partition": 0, "offset": 0})
    assert await orders(broker) == [ORDER]


async def test_what_is_no_order_is_refused_and_nothing_is_written(broker, browser):
    answer = await browser.post("/orders", json={**ORDER, "count": 0})
    assert answer.status_code == 422
    await broker.journal.verify(api="Produce", times=0)


async def test_states_that_other_services_write_are_told(broker, browser):
    await broker.produce("order-states", "sent", key="tea-1", partition=0)
    await states_are_read(browser, 4)
    assert (await browser.get("/orders/tea-1")).json() == {"order_id": "tea-1", "state": "sent"}
    assert (await browser.get("/orders/tea-99")).status_code == 404


async def test_leader_that_moves_is_not_the_customers_business(broker, browser):
    moved = await broker.faults.inject_error("Produce", "NOT_LEADER_OR_FOLLOWER", trigger="once")
    assert (await browser.post("/orders", json=ORDER)).status_code == 201
    assert await moved.hits == 1
    assert await orders(broker) == [ORDER]


@pytest.mark.parametrize("when", ["before", "after"])
async def test_connection_that_breaks_around_an_order_leaves_it_there_once(broker, browser, when):
    cut = await broker.faults.disconnect_on("Produce", when=when, trigger="once")
    assert (await browser.post("/orders", json=ORDER)).status_code == 201
    assert await cut.hits == 1
    assert await orders(broker) == [ORDER]


async def test_customer_of_a_slow_broker_is_told_in_time_and_may_ask_again(broker, open_shop):
    browser = await open_shop(broker, patience_s=0.2)
    slow = await broker.faults.hold("Produce", trigger="once")
    answer = await browser.post("/orders", json=ORDER)
    assert (answer.status_code, answer.json()["detail"]) == (503, "try again with the same order_id")
    assert await orders(broker) == [ORDER]  # it was written all the same: only the answer was late
    await slow.release()
    browser.shop._patience_s = 30
    assert (await browser.post("/orders", json=ORDER)).status_code == 201
    assert {record.key for record in await broker.consume("orders", 2)} == {b"tea-9"}


async def test_health_is_red_while_no_broker_answers_and_green_after(broker, open_shop):
    browser = await open_shop(broker, patience_s=0.2)
    silent = await broker.faults.hold("Metadata", when="before")
    assert (await browser.get("/health")).status_code == 503
    await silent.remove()
    browser.shop._patience_s = 30
    assert (await browser.get("/health")).json() == {"kafka": "answers"}


async def test_reader_of_states_goes_on_after_its_connection_broke(broker, browser):
    await states_are_read(browser, 3)
    cut = await broker.faults.disconnect_on("Fetch", trigger="once")
    await broker.produce("order-states", "sent", "lost", key="tea-3", partition=0)
    await cut.wait_until_hit()
    await states_are_read(browser, 5)
    assert (await browser.get("/orders/tea-3")).json()["state"] == "lost"


async def test_two_shops_on_forks_of_one_cluster_do_not_see_each_other(broker, browser, open_shop):
    await browser.post("/orders", json=ORDER)
    other = await broker.fork()
    elsewhere = await open_shop(other)
    await elsewhere.post("/orders", json={**ORDER, "order_id": "tea-10"})
    await other.produce("order-states", "eaten", key="tea-1", partition=0)
    await states_are_read(elsewhere, 4)
    assert len(await orders(other)) == 2
    assert (await elsewhere.get("/orders/tea-1")).json()["state"] == "eaten"
    assert await orders(broker) == [ORDER]
    await states_are_read(browser, 3)
    assert (await browser.get("/orders/tea-1")).json()["state"] == "packed"


async def test_states_are_forgotten_after_a_week(broker, open_shop):
    await broker.clock.advance(days=8)
    await broker.produce("order-states", "paid", key="tea-8", partition=0)
    browser = await open_shop(broker)
    await states_are_read(browser, 4)
    assert (await browser.get("/orders/tea-1")).status_code == 404
    assert (await browser.get("/orders/tea-8")).json()["state"] == "paid"
