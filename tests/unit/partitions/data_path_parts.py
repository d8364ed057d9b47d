"""What stands in for parts of a broker beside a data path: a connection, a gate, a turn, a request that waits."""

from __future__ import annotations

from typing import Any

from broker.turn.turn import Turn
from protocol.errors import ErrorCode

OTHER_NODE = 1


class FakeConnection:
    """A client that takes whatever it is sent."""

    def __init__(self) -> None:
        self.fetch_waits: dict[int, Any] | None = None
        self.parked: set[int] = set()
        self.filled: list[tuple[int, Any]] = []
        self.refusals: list[str] = []
        self.throttled = False

    def fill(self, slot: int, reply: Any) -> None:
        self.filled.append((slot, reply))

    def throttle(self, is_throttled: bool) -> None:
        self.throttled = is_throttled

    def refuse(self, why: str) -> None:
        self.refusals.append(why)

    def drain(self) -> None:
        """Nothing is sent."""


class Gate:
    """Stands where the transaction coordinator is asked: says `code` of every partition, or holds the request."""

    def __init__(self) -> None:
        self.code = ErrorCode.NONE
        self.holds = False
        self.asked: list[tuple[str, int, int, list[tuple[str, int]]]] = []
        self.held: list[Any] = []

    def before_produce(
        self, ctx: Any, transactional_id: str, producer_id: int, epoch: int, partitions: Any, continue_: Any
    ) -> Any:
        self.asked.append((transactional_id, producer_id, epoch, list(partitions)))
        if self.holds:
            self.held.append(continue_)
            return None
        return dict.fromkeys(partitions, self.code) if self.code else {}

    def open(self) -> None:
        """Let those pass that are held, in the order they came."""
        held, self.held = self.held, []
        for continue_ in held:
            continue_({})


class StandingTurn(Turn):
    """A turn whose time is the clock's, however long it is open."""

    @property
    def now_ms(self) -> int:
        return self.env.clock.now_ms()

    @now_ms.setter
    def now_ms(self, now_ms: int) -> None:
        """It follows the clock."""

    @property
    def steady_ms(self) -> int:
        return self.env.clock.steady_ms()

    @steady_ms.setter
    def steady_ms(self, steady_ms: int) -> None:
        """It follows the clock."""


class Parked(dict[Any, Any]):
    """The requests that wait, and the answers they got."""

    def __init__(self) -> None:
        super().__init__()
        self.answers: list[tuple[Any, Any]] = []

    def find(self, token: Any) -> Any:
        return self.get(token)

    def drop(self, token: Any) -> None:
        del self[token]

    def answer(self, token: Any, response: Any, seen: Any = None) -> None:
        self.pop(token, None)
        self.answers.append((token, response))
