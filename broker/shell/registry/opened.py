"""A registry that is served, as its cluster knows it."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from broker.registry.jobs import Checked, Job, SchemaFaultError
    from broker.registry.state import RegistryState


class OpenRegistry:
    """The registry of a cluster.

    url     where it is served.
    state   what its topic says now; StoreError: the topic cannot be read.
    check   has a schema examined.
    close   stops listening and cancels open requests.
    """

    __slots__ = ("check", "close", "state", "url")

    def __init__(
        self,
        url: str,
        state: Callable[[], Awaitable[RegistryState]],
        check: Callable[[Job], Awaitable[Checked | SchemaFaultError]],
        close: Callable[[], Awaitable[None]],
    ) -> None:
        self.url = url
        self.state = state
        self.check = check
        self.close = close
