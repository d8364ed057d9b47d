"""A shard by itself: a machine that keeps what it replays, a log in memory, and a loop run by hand."""

from __future__ import annotations

from typing import Any

from core_broker import World

from broker.coordinator.runtime import Shard
from broker.coordinator.shard_parts import LoneLog
from broker.turn.decision import Decision
from storage.log.log import Log

KEY = b"\0\x63"  # a record type that is nobody's


class Machine:
    """Remembers what it was told; each timer that runs out leaves a record."""

    def __init__(self, timers: list[tuple[str, int]]) -> None:
        self.values: list[bytes | None] = []
        self.rung: list[tuple[Any, int]] = []
        self.timers = timers

    def replay(self, key: bytes | None, value: bytes | None, offset: int, producer_id: int = -1) -> None:
        self.values.append(value)

    def after_batch(self) -> None:
        """Nothing to assert."""

    def on_timer(self, name: Any, ctx: Any) -> Decision:
        self.rung.append((name, ctx.now_ms))
        return Decision(records=[(KEY, str(name).encode())])

    def on_load(self, ctx: Any) -> Decision:
        return Decision(timers=[(name, ctx.now_ms + ms) for name, ms in self.timers])

    def fingerprint(self) -> list[bytes | None]:
        return self.values


class Bench:
    """One shard of a real broker, over a log and a machine of its own."""

    def __init__(self, flush: str = "os", *timers: tuple[str, int], **settings: Any) -> None:
        self.world = World(flush)
        self.timers = list(timers)
        self.shard = Shard(
            self.world.broker.turn,
            self.world.broker.parked,
            "bench",
            LoneLog(lambda: Log.open(self.world.env, "/data/bench-0")),
            lambda: Machine(self.timers),
            **settings,
        )

    def append(self, *values: bytes) -> None:
        self.shard.append([(KEY, value) for value in values], self.world.clock.now_ms())

    def after(self, ms: int) -> int:
        return self.world.clock.now_ms() + ms

    @property
    def rung(self) -> list[Any]:
        return [name for name, _ in self.shard.machine.rung]
