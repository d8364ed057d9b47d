"""Clusters that are made ahead, while a test runs, for the next one that asks for the same.

Only what repeats is made ahead: a cluster in memory, without a name, a seed or security of its own, on a port that the
system chooses, asked for a second time. It is in no list, and no client knows its address. One that a client has found
all the same is not handed out: whoever asks begins with nothing.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Awaitable, Callable, Coroutine
from typing import TYPE_CHECKING, Any, Final, NamedTuple

if TYPE_CHECKING:
    from broker.shell.cluster_server import ClusterServer

LOOK_S: Final = 0.003  # from when one was asked for, and between looks whether clients have a pause
MOST_LOOKS: Final = 20  # without a pause
KEPT_S: Final = 30.0  # unused
MOST_KINDS: Final = 4  # of clusters, of which some are made ahead
MOST_OF_A_KIND: Final = 8
MOST_BROKERS: Final = 3
REMEMBERED: Final = 64  # kinds that were asked for once

logger = logging.getLogger("momus.process")


class Wanted(NamedTuple):
    """All that makes two clusters alike that have no name."""

    config: tuple[tuple[str, str], ...]
    listen: str
    brokers: int
    at_ms: int | None
    journal_bytes: int

    @property
    def may_be_ahead(self) -> bool:
        """Whether others like it may be made before they are asked for."""
        return self.brokers <= MOST_BROKERS and self.listen.endswith(":0") and "," not in self.listen


class SpareClusters:
    """The clusters that nothing was done with yet.

    make      makes one, which takes the loop for milliseconds. Errors: OSError and others, and then there is none.
    drop      gives one up.
    requests  how many requests all clusters have got: while it grows, their clients are not kept waiting.
    """

    def __init__(
        self,
        make: Callable[[Wanted], Awaitable[ClusterServer]],
        drop: Callable[[ClusterServer], Coroutine[Any, Any, None]],
        requests: Callable[[], int],
    ) -> None:
        self._make = make
        self._drop = drop
        self._requests = requests
        self._loop = asyncio.get_running_loop()
        self._ready: dict[Wanted, deque[ClusterServer]] = {}  # the kind asked for last is the last
        self._seen: dict[Wanted, int] = {}  # how many of a kind are in use, the kind asked for last is the last
        self._kinds: dict[str, Wanted] = {}  # of those in use, by name
        self._making: set[Wanted] = set()
        self._tasks: set[asyncio.Task[None]] = set()
        self._timers: set[asyncio.TimerHandle] = set()
        self._expiry: dict[ClusterServer, asyncio.TimerHandle] = {}  # of each that is ready
        self.names: set[str] = set()  # of those that are ready or being made

    def take(self, wanted: Wanted) -> ClusterServer | None:
        """One like this; None: there is none."""
        ready = self._ready.get(wanted)
        while ready:
            cluster = ready.popleft()
            self._gone(cluster)
            if not cluster.broker.metrics.connections_accepted:
                return cluster
            self._run(self._drop(cluster))
        return None

    def in_use(self, name: str, wanted: Wanted) -> None:
        """A cluster was handed out, or made to order. Another one is made soon, if such a one was asked for before."""
        count = self._seen.pop(wanted, None)
        self._seen[wanted] = 1 + (count or 0)
        self._kinds[name] = wanted
        if len(self._seen) > REMEMBERED:
            del self._seen[next(iter(self._seen))]
        if count is not None:
            ready = self._ready.pop(wanted) if wanted in self._ready else deque()
            self._ready[wanted] = ready
            if len(self._ready) > MOST_KINDS:
                self._forget(next(iter(self._ready)))
            self._fill_in_a_pause(wanted, self._requests())

    def removed(self, name: str) -> None:
        """A cluster is not in use any more."""
        wanted = self._kinds.pop(name, None)
        if wanted in self._seen:
            self._seen[wanted] -= 1

    def give_up(self, name: str) -> None:
        """A cluster with this very name is asked for."""
        self.names.discard(name)
        for ready in self._ready.values():
            for cluster in [each for each in ready if each.name == name]:
                ready.remove(cluster)
                self._drop_spare(cluster)

    def _fill_in_a_pause(self, wanted: Wanted, before: int, looks: int = 0) -> None:
        def look() -> None:
            now = self._requests()
            if now == before or looks == MOST_LOOKS:
                self._fill(wanted)
            else:
                self._fill_in_a_pause(wanted, now, looks + 1)

        self._later(LOOK_S, look)

    def _fill(self, wanted: Wanted) -> None:
        most = min(MOST_OF_A_KIND, max(1, self._seen.get(wanted, 0)))
        if wanted in self._ready and wanted not in self._making and len(self._ready[wanted]) < most:
            self._making.add(wanted)
            self._run(self._add(wanted))

    async def _add(self, wanted: Wanted) -> None:
        try:
            cluster = await self._make(wanted)
        except Exception as error:  # whoever asks for one is told, if it is still so
            logger.debug("no cluster was made ahead: %s", error)
            return
        finally:
            self._making.discard(wanted)
        if wanted not in self._ready or cluster.name not in self.names:
            self.names.discard(cluster.name)
            await self._drop(cluster)
            return
        self._ready[wanted].append(cluster)
        self._expiry[cluster] = self._later(KEPT_S, lambda: self._expire(wanted, cluster))
        self._fill(wanted)

    def _expire(self, wanted: Wanted, cluster: ClusterServer) -> None:
        self._ready[wanted].remove(cluster)
        self._drop_spare(cluster)

    def _forget(self, wanted: Wanted) -> None:
        for cluster in self._ready.pop(wanted, ()):
            self._drop_spare(cluster)

    def _drop_spare(self, cluster: ClusterServer) -> None:
        self._gone(cluster)
        self._run(self._drop(cluster))

    def _gone(self, cluster: ClusterServer) -> None:
        """It is no spare any more. Its timer would keep it in memory, long after its test."""
        self.names.discard(cluster.name)
        timer = self._expiry.pop(cluster)
        timer.cancel()
        self._timers.discard(timer)

    def _later(self, seconds: float, call: Callable[[], None]) -> asyncio.TimerHandle:
        def ring() -> None:
            self._timers.discard(timer)
            call()

        timer = self._loop.call_later(seconds, ring)
        self._timers.add(timer)
        return timer

    def _run(self, work: Coroutine[Any, Any, None]) -> None:
        task = self._loop.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def stop(self) -> list[ClusterServer]:
        """Make no more. Returns those that are ready, for the caller to close."""
        for timer in self._timers:
            timer.cancel()
        self._seen.clear()
        self._expiry.clear()
        ready = [cluster for each in self._ready.values() for cluster in each]
        self._ready.clear()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        return ready
