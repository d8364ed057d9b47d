"""Whoever asks a cluster by its control plane: one question, or a question until it is reached."""

from __future__ import annotations

import time

from momus.kit.hidden import hides as __tracebackhide__  # noqa: F401  # pytest looks for it

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from momus.control import Control

WAIT_S = 20.0  # asked for at once; longer waits ask again


class WaitTimeoutError(AssertionError):
    """What was waited for did not come in time."""


class Asks:
    """What has a control endpoint."""

    @property
    def control(self) -> Control:
        """The endpoint of its process, for this cluster."""
        raise NotImplementedError

    def _ask(self, method: str, path: str, body: object = None) -> Any:
        return self.control.ask(method, self.control.prefix + path, body)

    def _wait(self, path: str, body: dict[str, object], timeout: float) -> Any:
        """Ask until it is reached, or the time is over."""
        end = time.monotonic() + timeout
        while True:
            left = end - time.monotonic()
            answer = self._ask("POST", path, {**body, "timeout_ms": int(1000 * max(0.0, min(left, WAIT_S)))})
            if answer["reached"] or left <= WAIT_S:
                return answer
