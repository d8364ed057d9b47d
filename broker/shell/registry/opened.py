"""A registry that is served, as its cluster knows it."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from broker.registry.state import RegistryState


class OpenRegistry:
    """The registry of a cluster.

    url     where it is served.
    state   what its topic says now; StoreError: the topic cannot be read.
    close   stops listening and cancels open requests.
    """

    __slots__ = ("close", "state", "url")

    def __init__(
        self, url: str, state: Callable[[], Awaitable[RegistryState]], close: Callable[[], Awaitable[None]]
    ) -> None:
        self.url = url
        self.state = state
        self.close = close
