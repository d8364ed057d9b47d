"""A web shop that takes orders: FastAPI, with aiokafka.

`POST /orders` writes an order into the topic `orders` and answers when it is there, or 503 when that has taken too
long: then the customer asks again with the same `order_id`, which is the record's key. `GET /orders/ID` tells the last
state of an order, which other services write into `order-states`. `GET /health` tells whether a broker answers.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import Any

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition
from aiokafka.errors import KafkaError
from fastapi import FastAPI, HTTPException
from pydantic import BaseModel, Field


class Order(BaseModel):
    """What customers send."""

    order_id: str = Field(min_length=1)
    article: str
    count: int = Field(gt=0)


class Shop:
    """What the routes share. `config`: what aiokafka takes; `patience_s`: how long a customer waits."""

    def __init__(self, config: dict[str, Any], patience_s: float = 5.0) -> None:
        self._config = config
        self._patience_s = patience_s
        self.states: dict[str, str] = {}  # order id -> its last state
        self.read_up_to = 0  # of order-states

    async def start(self) -> None:
        self._producer = AIOKafkaProducer(
            **self._config, client_id="shop", enable_idempotence=True, retry_backoff_ms=20, request_timeout_ms=10_000
        )
        await self._producer.start()
        # No group: each instance reads all states, from the first.
        self._consumer = AIOKafkaConsumer(
            **self._config, client_id="shop", auto_offset_reset="earliest", retry_backoff_ms=20
        )
        await self._consumer.start()
        self._consumer.assign([TopicPartition("order-states", 0)])
        self._following = asyncio.create_task(self._follow())

    async def stop(self) -> None:
        self._following.cancel()
        with suppress(asyncio.CancelledError):
            await self._following
        with suppress(asyncio.CancelledError):  # aiokafka lets it out if a fetch waits to be tried again
            await self._consumer.stop()
        await self._producer.stop()

    async def _follow(self) -> None:
        async for record in self._consumer:
            self.states[record.key.decode()] = record.value.decode()
            self.read_up_to = record.offset + 1

    async def take(self, order: Order) -> dict[str, int]:
        """Write an order. Returns where it is. Errors: HTTPException 503."""
        sending = await self._producer.send("orders", order.model_dump_json().encode(), key=order.order_id.encode())
        try:
            # Shielded: a customer who waits no longer takes nothing back that is on its way.
            written = await asyncio.wait_for(asyncio.shield(sending), self._patience_s)
        except (TimeoutError, KafkaError):
            raise HTTPException(503, "try again with the same order_id") from None
        return {"partition": written.partition, "offset": written.offset}

    async def is_healthy(self) -> bool:
        """Whether a broker answers in time."""
        try:
            await asyncio.wait_for(self._producer.client.fetch_all_metadata(), self._patience_s)
        except (TimeoutError, KafkaError):
            return False
        return True


def make_app(config: dict[str, Any], **settings: Any) -> FastAPI:
    """The application; `app.state.shop` is its Shop while it runs."""

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        app.state.shop = Shop(config, **settings)
        await app.state.shop.start()
        yield
        await app.state.shop.stop()

    app = FastAPI(lifespan=lifespan)

    @app.post("/orders", status_code=201)
    async def post_order(order: Order) -> dict[str, int]:
        return await app.state.shop.take(order)

    @app.get("/orders/{order_id}")
    async def get_order(order_id: str) -> dict[str, str]:
        state = app.state.shop.states.get(order_id)
        if state is None:
            raise HTTPException(404, "no such order")
        return {"order_id": order_id, "state": state}

    @app.get("/health")
    async def get_health() -> dict[str, str]:
        if not await app.state.shop.is_healthy():
            raise HTTPException(503, "no broker answers")
        return {"kafka": "answers"}

    return app
