"""What kinds of cluster servers differ in: the parts that they are made with, and what the control plane does there."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import Any

from broker.broker import Broker
from broker.shell.happenings import Happenings
from broker.wire.connection import Connection


class ClusterParts:
    """Those of a cluster of momus; a proxy has others."""

    has_inside = True  # its logs, groups and transactions are here, and can be made to change
    make_broker: Callable[..., Broker] = Broker
    make_connection: Callable[..., Connection] = Connection  # (service, node id, listener)

    @cached_property
    def happenings(self) -> Happenings:
        """What was done to it."""
        return Happenings()

    def refuses(self, method: str, path: str) -> str | None:
        """Why a call of the control plane is not for this kind of cluster. `path`: as its route has it."""

    def instead(self, method: str, path: str) -> Any:
        """What answers a call in the place of its route's handler; None: that does."""
