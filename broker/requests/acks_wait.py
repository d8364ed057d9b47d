"""A Produce with acks=all that waits until the in-sync replicas have its records."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from typing import TYPE_CHECKING, Any

from broker.wire.errors import lost_code
from protocol.api import ApiKey
from protocol.errors import ErrorCode, KafkaError

if TYPE_CHECKING:
    from broker.base.context import Context
    from broker.partitions.partition import Partition
    from broker.requests.produce_ask import Entry
    from broker.turn.turn import Turn


class AcksWait:
    """Answers when the high watermark of each partition is above its batch.

    While it waits, its partitions poll it, its connection holds it in `fetch_waits`, and it has a deadline.

    Errors a partition:  REQUEST_TIMED_OUT: the records are in the log of the leader and may still become readable.
                         NOT_ENOUGH_REPLICAS_AFTER_APPEND: they are committed, and too few replicas are in sync now.
                         NOT_LEADER_OR_FOLLOWER: another replica leads, which may not have them.
                         that of a failed write: they are not in the log.
    Source:  Kafka's DelayedProduce, Partition.checkEnoughReplicasReachOffset.
    """

    def __init__(
        self, turn: Turn, ctx: Context, appended: Iterable[tuple[Partition, Entry]], answer: Callable[[], None]
    ) -> None:
        self._turn = turn
        self._ctx = ctx
        self._answer = answer  # called when all entries have their answers
        self._rest = dict(enumerate(appended))
        self._alarm = 0

    def begin(self, timeout_ms: int) -> None:
        """Wait. The request is parked, or will be in this turn."""
        for number, (partition, _) in self._rest.items():
            partition.watch(self, committed=False)
            partition.flush_state.then(partial(self._durable, number))
        connection = self._ctx.connection
        if connection.fetch_waits is None:
            connection.fetch_waits = {}
        connection.fetch_waits[id(self)] = self
        self._alarm = self._turn.timers.at(self._turn.steady_ms + max(timeout_ms, 0), self.expire)

    def poll(self) -> None:
        """A high watermark has moved, or a partition has changed."""
        for number, (partition, entry) in list(self._rest.items()):
            if partition.closed or partition.info.leader != self._ctx.node_id:
                self._settle(number, ErrorCode.NOT_LEADER_OR_FOLLOWER)
            elif partition.high_watermark >= entry.end_offset:
                self._settle(number, ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND if partition.is_held else 0)

    def expire(self, due_ms: int, now_ms: int) -> None:
        """timeout_ms is over."""
        for number in list(self._rest):
            self._settle(number, ErrorCode.REQUEST_TIMED_OUT)

    def cancel(self) -> None:
        """The connection is closed."""
        for partition, _ in self._rest.values():
            partition.unwatch(self)
        self._rest = {}
        self._end()

    def _durable(self, number: int, durable: bool) -> None:
        if durable:
            self.poll()
        elif number in self._rest:
            self._rest[number][1].refuse(KafkaError(lost_code(ApiKey.PRODUCE)))
            self._settle(number, lost_code(ApiKey.PRODUCE))

    def _settle(self, number: int, code: int) -> None:
        partition, entry = self._rest.pop(number)
        entry.code = code
        if not any(other is partition for other, _ in self._rest.values()):
            partition.unwatch(self)
        if not self._rest:
            self._end()
            self._answer()

    def _end(self) -> None:
        self._turn.timers.cancel(self._alarm)
        waits: dict[int, Any] = self._ctx.connection.fetch_waits
        waits.pop(id(self), None)
