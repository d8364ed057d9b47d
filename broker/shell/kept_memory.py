"""Which memory the process keeps: that of large requests for the next ones, and not that of clusters that have ended.

The C library would give the memory of a large request back to the kernel after each. The kernel clears each page that
it hands out again, which took a third of the processor time of requests of 1 MB.

What a cluster is made of refers to itself, and is freed by a collection of all objects, of which the thresholds of
server.py let one come in 25 million: a test suite would keep 14 kB of each test's cluster.
"""

from __future__ import annotations

import gc
import time
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    import asyncio

# Parameters of glibc's mallopt(3). Whoever sets one of them keeps glibc from adapting either by itself.
TRIM_THRESHOLD: Final = -1  # free bytes at the end of the heap that are kept
MMAP_THRESHOLD: Final = -3  # from this size on an allocation is a mapping of its own, given back when it is freed

LARGEST_BYTES: Final = 8 << 20  # of an allocation that may be kept
KEPT_BYTES: Final = 32 << 20
KEPT_IDLE_BYTES: Final = 2 << 20  # once no large requests come, for large replies: what glibc adapts to
LEAST_BYTES: Final = 128 << 10
IDLE_S: Final = 3.0
LIVES_A_COLLECTION: Final = 50  # at least: 3 ms where nothing else is there
MOST_S_A_LIFE: Final = 0.0002  # of the processor for a collection; where it takes longer, more lives end between two
MOST_LIVES: Final = 400  # between two, whatever it takes: of a test with clients each keeps 165 kB until then
COLLECT_S: Final = 0.01  # after the end of one, when its sockets are closed
PROBE_BYTES: Final = 100_000  # free() looks at the end of the heap after it has freed 64 kB or more


def _collection_s() -> float:
    """Collect. Returns the processor's time: on a busy machine a collection seems to take a second."""
    began_s = time.thread_time()
    gc.collect()
    return time.thread_time() - began_s


class KeptMemory:
    """The C library's limits of the process, which change on glibc alone, and collections of lives that have ended."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._mallopt: Any = None
        self._is_used = False  # since the timer was set
        self._timer: asyncio.TimerHandle | None = None
        self._ended = 0  # lives since the last collection
        self._most_ended = LIVES_A_COLLECTION

    def life_ended(self) -> None:
        """A life of a cluster has ended: collect them, many at a time."""
        self._ended += 1
        if self._ended == self._most_ended:
            self._loop.call_later(COLLECT_S, self._collect)

    def _collect(self) -> None:
        took_s = _collection_s()
        if took_s > LIVES_A_COLLECTION * MOST_S_A_LIFE:
            took_s = _collection_s()  # what it takes beside the objects of lives, which are to be freed at any rate
        self._most_ended = min(max(LIVES_A_COLLECTION, round(took_s / MOST_S_A_LIFE)), MOST_LIVES)
        self._ended = 0

    def large_request(self) -> None:
        """A large request begins to arrive, or many come together: keep memory until IDLE_S without any."""
        self._is_used = True
        if self._timer is None:
            self._keep(KEPT_BYTES)
            self._timer = self._loop.call_later(IDLE_S, self._look)

    def _look(self) -> None:
        if self._is_used:
            self._is_used = False
            self._timer = self._loop.call_later(IDLE_S, self._look)
            return
        self._timer = None
        self._keep(LEAST_BYTES)
        bytearray(PROBE_BYTES)  # freed at once
        self._keep(KEPT_IDLE_BYTES)

    def _keep(self, kept_bytes: int) -> None:
        if self._mallopt is None:
            from ctypes import CDLL  # 3 ms, and many brokers never see a large request

            self._mallopt = getattr(CDLL(None), "mallopt", lambda parameter, value: 0)
            self._mallopt(MMAP_THRESHOLD, LARGEST_BYTES)
        self._mallopt(TRIM_THRESHOLD, kept_bytes)
