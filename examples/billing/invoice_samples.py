"""The invoices that the tests begin with, and what they come to."""

from __future__ import annotations

INVOICES = [f"{('alice', 'bob', 'carol')[number % 3]} {number}" for number in range(12)]


def sums(count: int = len(INVOICES)) -> dict[str, int]:
    """Customer -> cents, of the first so many."""
    found: dict[str, int] = {}
    for customer, cents in (invoice.split() for invoice in INVOICES[:count]):
        found[customer] = found.get(customer, 0) + int(cents)
    return found
