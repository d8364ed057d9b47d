"""Keeps the memory of large requests for the next ones: the C library would give it back to the kernel after each.

The kernel clears each page that it hands out again, which took a third of the processor time of requests of 1 MB.
"""

from __future__ import annotations

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
PROBE_BYTES: Final = 100_000  # free() looks at the end of the heap after it has freed 64 kB or more


class KeptMemory:
    """The C library's limits of the process. Elsewhere than on glibc nothing changes."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._mallopt: Any = None
        self._is_used = False  # since the timer was set
        self._timer: asyncio.TimerHandle | None = None

    def large_request(self) -> None:
        """A large request begins to arrive: keep memory until none has come for IDLE_S."""
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
