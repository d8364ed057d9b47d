"""A service that ships what is ordered: FastStream, on aiokafka.

It reads `orders`, writes one shipment for each order into `shipments`, and keeps in SQLite which orders were shipped:
an order that is delivered twice is shipped once. What is no order goes to `orders-refused`.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Awaitable, Callable
from typing import Any

from faststream.kafka import KafkaBroker, KafkaMessage
from faststream.middlewares import AckPolicy
from pydantic import BaseModel, Field, ValidationError

GROUP = "shipping"
PARCEL_G = 1000


class Order(BaseModel):
    """What customers order."""

    order_id: str
    weight_g: int = Field(gt=0)


async def no_carrier(order: Order) -> None:
    """Takes every order."""


class Shipping:
    """One worker.

    servers   addresses of brokers; `settings`: of KafkaBroker.
    database  a path of SQLite.
    carrier   who takes an order; an error of it means: not now.
    """

    def __init__(
        self,
        servers: str,
        database: str,
        carrier: Callable[[Order], Awaitable[None]] = no_carrier,
        **settings: Any,
    ) -> None:
        self._carrier = carrier
        self._shipped = sqlite3.connect(database)
        self._shipped.execute("create table if not exists shipped (order_id text primary key)")
        self.broker = KafkaBroker(
            servers, client_id="shipping", enable_idempotence=True, retry_backoff_ms=20, logger=None, **settings
        )
        # NACK_ON_ERROR: an order whose handler has failed is read again, and nothing after it is committed before.
        subscriber = self.broker.subscriber(
            "orders", group_id=GROUP, auto_offset_reset="earliest", ack_policy=AckPolicy.NACK_ON_ERROR
        )
        subscriber(self.ship)
        self.seen: list[str] = []  # ids of orders, in the order of their delivery

    async def start(self) -> None:
        await self.broker.start()

    async def stop(self) -> None:
        await self.broker.stop()
        self._shipped.close()

    async def ship(self, message: KafkaMessage) -> None:
        """Ship one order. Its offset is committed when this returns."""
        try:
            order = Order.model_validate_json(message.body)
        except ValidationError as error:
            await self.broker.publish(message.body, "orders-refused", headers={"reason": error.errors()[0]["type"]})
            return
        self.seen.append(order.order_id)
        if self._shipped.execute("select 1 from shipped where order_id = ?", (order.order_id,)).fetchone():
            return  # it came before
        await self._carrier(order)
        shipment = {"order_id": order.order_id, "parcels": -(-order.weight_g // PARCEL_G)}
        await self.broker.publish(json.dumps(shipment), "shipments", key=order.order_id.encode())
        with self._shipped:
            self._shipped.execute("insert into shipped values (?)", (order.order_id,))
