"""The settings of a share group that its records meet: how often, how many, how long."""

from __future__ import annotations

from typing import NamedTuple

from broker.coordinator.share.in_flight import (
    ARCHIVED,
    ARCHIVING,
    AVAILABLE,
)


class Limits(NamedTuple):
    """The settings of the share group. Units: records and milliseconds."""

    most_deliveries: int
    most_in_flight: int
    lock_ms: int
    may_renew: bool = True
    has_queue: bool = False  # for dead letters

    @property
    def careful_from(self) -> int:
        """From this many deliveries on, records are delivered in smaller and smaller parts, the last time alone."""
        return max(2, -(-self.most_deliveries // 2))

    @property
    def given_up(self) -> int:
        """The state of a record that no consumer is to get any more."""
        return ARCHIVING if self.has_queue else ARCHIVED

    def after_release(self, count: int) -> int:
        """The state of a record that is given back after this many deliveries."""
        return self.given_up if count >= self.most_deliveries else AVAILABLE
