"""What the tests of the shop begin with: a cluster with its topics and three states, made once and forked for each."""

from __future__ import annotations

from contextlib import AsyncExitStack

import pytest
from httpx import ASGITransport, AsyncClient
from shop import make_app

STATES = {"tea-1": "packed", "tea-2": "sent", "tea-3": "paid"}


@pytest.fixture(scope="session")
def kafka_broker_template(make_kafka_broker):
    broker = make_kafka_broker(config={"transaction.state.log.num.partitions": 2})
    broker.create_topic("orders", 1)
    broker.create_topic("order-states", 1, config={"retention.ms": 7 * 86_400_000})
    for order_id, state in STATES.items():
        broker.produce("order-states", state, key=order_id, partition=0)
    return broker


@pytest.fixture
def broker(kafka_broker_fork):
    """Its calls to await, so that the application's event loop goes on."""
    return kafka_broker_fork.aio


@pytest.fixture
async def open_shop():
    """Starts the application on a cluster, with a browser that needs no socket."""
    async with AsyncExitStack() as ends:

        async def start(cluster, **settings) -> AsyncClient:
            app = make_app(await cluster.client_config("aiokafka"), **settings)
            await ends.enter_async_context(app.router.lifespan_context(app))
            browser = AsyncClient(transport=ASGITransport(app), base_url="http://shop")
            browser.shop = app.state.shop
            return await ends.enter_async_context(browser)

        yield start


@pytest.fixture
async def browser(broker, open_shop):
    return await open_shop(broker)
