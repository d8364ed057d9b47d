"""The orders that the tests begin with, and the shipments that they come to."""

from __future__ import annotations

ORDERS = [{"order_id": f"order-{number}", "weight_g": 600 * (number + 1)} for number in range(6)]
COUNT = len(ORDERS)
SHIPMENTS = [{"order_id": f"order-{number}", "parcels": parcels} for number, parcels in enumerate((1, 2, 2, 3, 3, 4))]
