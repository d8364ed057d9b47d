"""Outcome: what handling one request or timer of a group produces, collected step by step into a Decision."""

from __future__ import annotations

from collections.abc import Generator, Hashable
from typing import TYPE_CHECKING, Any, TypeVar

from broker.base.context import Context
from broker.turn.decision import LATER, Decision, Record, Token

if TYPE_CHECKING:
    from broker.config.settings import BrokerConfig

_Made = TypeVar("_Made")


class Outcome:
    """Collects records, timers and responses; `result` makes a Decision of them."""

    __slots__ = ("_response", "_token", "access", "config", "now_ms", "records", "timers", "wake")

    def __init__(self, ctx: Context, config: BrokerConfig) -> None:
        self.now_ms = ctx.now_ms
        self.access = ctx.access  # what the client may do; None: there is no authorizer
        self.config = config
        self.records: list[Record] = []
        self.wake: list[tuple[Token, Any]] = []
        self.timers: list[tuple[Hashable, int | None]] = []
        self._token = ctx.token
        self._response: Any = LATER

    def answer(self, token: Token, response: Any) -> None:
        """Respond to a request: the one being handled, or a parked one."""
        if token == self._token:
            self._response = response
        else:
            self.wake.append((token, response))

    def set_timer(self, name: Hashable, delay_ms: int) -> None:
        """Start a timer, or start it again."""
        self.timers.append((name, self.now_ms + delay_ms))

    def cancel_timer(self, name: Hashable) -> None:
        """Stop a timer, if it runs."""
        self.timers.append((name, None))

    def advance(self, steps: Generator[None, None, _Made], timer: Hashable) -> _Made | None:
        """Run one step of a long computation: what it returns with its last step, else None, and the timer is set."""
        try:
            next(steps)
        except StopIteration as stop:
            made: _Made = stop.value
            return made
        self.set_timer(timer, 0)
        return None

    def result(self) -> Decision:
        """The collected Decision; a request without a response is parked."""
        return Decision(self._response, self.records, wake=self.wake, timers=self.timers)
