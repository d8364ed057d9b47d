"""Whoever asks a cluster by its control plane: one question, or a question until it is met."""

from __future__ import annotations

import sys
import time

from momus.kit.hidden import hides as __tracebackhide__  # noqa: F401  # pytest looks for it

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from momus.control import Control

WAIT_S = 20.0  # asked for at once; longer waits ask again


class WaitTimeoutError(AssertionError):
    """What was waited for did not come in time."""


class UnverifiedError(AssertionError):
    """What a test meant to happen did not: a fault never acted, or an expectation of the journal is not met."""


def loop_note(call: str) -> str:
    """What to do about a call that has kept the event loop from running; "" where none ran in this thread.

    call   such as "wait_for_lag"; of a fault "faults.hold(...)".
    """
    asyncio = sys.modules.get("asyncio")
    if asyncio is None or asyncio._get_running_loop() is None:
        return ""
    return f"; it stopped the event loop in which it was called, so that no task of the test went on: await {call}"


def late(why: str, timeout: float, call: str) -> WaitTimeoutError:
    """That it was not so in time. `call`: its twin in an event loop, for a test that has one."""
    return WaitTimeoutError(f"{why}, after {timeout:g} s{loop_note(call)}")


class Returned:
    """A thing that has calls of its own, such as a cluster, a fault, a snapshot: `broker.aio` returns its twin."""

    __slots__ = ()


class Asks(Returned):
    """What has a control endpoint."""

    @property
    def control(self) -> Control:
        """The endpoint of its process, for this cluster."""
        raise NotImplementedError

    def _ask(self, method: str, path: str, body: object = None) -> Any:
        return self.control.ask(method, self.control.prefix + path, body)

    def _wait(self, path: str, body: dict[str, object], timeout: float) -> Any:
        """Ask until it is met, or the time is over."""
        end = time.monotonic() + timeout
        while True:
            left = end - time.monotonic()
            answer = self._ask(
                "POST", path + "?check=false", {**body, "timeout_ms": int(1000 * max(0.0, min(left, WAIT_S)))}
            )
            if answer["met"] or left <= WAIT_S:
                return answer
