"""The orders that the tests begin with."""

from __future__ import annotations

COUNT = 20
ORDERS = [f"customer-{number} {number}" for number in range(COUNT)]
