"""Waits of the control plane: how long, how often they look again; a reset or removal of their cluster ends them."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final

from broker.shell.control.routes import RefusedError

if TYPE_CHECKING:
    from types import TracebackType
    from typing import Self

    from broker.broker import Broker
    from broker.shell.cluster_server import ClusterServer

LONGEST_WAIT_MS: Final = 25_000  # clients wait 30 s for the response


def check_life(cluster: ClusterServer, broker: Broker) -> None:
    """A call that waits looks whether its cluster is still that of this broker. Errors: RefusedError."""
    if cluster.broker is not broker:
        raise RefusedError(409, "the cluster was reset")
    if cluster.is_removed:
        raise RefusedError(409, "the cluster was removed")


class Wait:
    """One wait, as a context: `while not done and not wait.is_over: await wait.pause()`.

    timeout_ms   how long at most.
    pause_s      seconds between two looks.
    Errors:      RefusedError: too long; from `pause`: the cluster was reset or removed.
    """

    def __init__(self, cluster: ClusterServer, timeout_ms: int, pause_s: float) -> None:
        if not 0 <= timeout_ms <= LONGEST_WAIT_MS:
            raise RefusedError(400, f'"timeout_ms" takes 0 to {LONGEST_WAIT_MS}; ask again to wait for longer')
        self._cluster = cluster
        self._broker = cluster.broker
        self._pause_s = pause_s
        self._loop = asyncio.get_running_loop()
        self._stop_s = self._loop.time() + timeout_ms / 1000

    def __enter__(self) -> Self:
        self._cluster.waits += 1
        return self

    def __exit__(
        self, exc_type: type[BaseException] | None, exc: BaseException | None, tb: TracebackType | None
    ) -> None:
        self._cluster.waits -= 1

    @property
    def is_over(self) -> bool:
        """Whether the time has passed."""
        return self._loop.time() >= self._stop_s

    async def pause(self) -> None:
        """Let others work before the next look. Errors: RefusedError."""
        await asyncio.sleep(self._pause_s)
        check_life(self._cluster, self._broker)
