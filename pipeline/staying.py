"""How a job stays: until SIGTERM or SIGINT comes, and over failures of Spark's own that pass."""

from __future__ import annotations

import signal
from contextlib import contextmanager, suppress
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Iterator

# A Python worker has ten seconds to start, without a setting, and a busy machine needs more; a task is sent while
# another query changes a shared map. What has failed goes on from where it was.
PASSING: Final = (
    "Python worker failed to connect back",
    "java.io.OptionalDataException",
    "java.util.ConcurrentModificationException",
)
TRIES: Final = 10  # without anything done in between


class Stop:
    """Whether the job is to end."""

    def __init__(self) -> None:
        self.is_set = False
        # Not an Event: a handler that runs in the middle of its `wait` would wait for itself.
        self._wake: SimpleQueue[None] = SimpleQueue()

    def set(self, *_: Any) -> None:
        """As a signal's handler."""
        self.is_set = True
        self._wake.put(None)

    def wait(self, seconds: float) -> bool:
        """Rest so long, or until it is set; whether it is."""
        if not self.is_set:
            with suppress(Empty):
                self._wake.get(timeout=seconds)
        return self.is_set


@contextmanager
def until_stopped() -> Iterator[Stop]:
    """Meanwhile SIGTERM and SIGINT end nothing but are told."""
    stop = Stop()
    before = {number: signal.signal(number, stop.set) for number in (signal.SIGTERM, signal.SIGINT)}
    try:
        yield stop
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


class Patience:
    """Bears so many failures that pass, one after the other."""

    def __init__(self) -> None:
        self._left = TRIES

    def bears(self, error: BaseException, *, is_further: bool) -> bool:
        """Whether to go on after this one. is_further: something was done since the last one."""
        if is_further:
            self._left = TRIES
        self._left -= 1
        return self._left >= 0 and any(failure in str(error) for failure in PASSING)
