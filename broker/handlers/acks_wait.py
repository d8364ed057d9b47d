"""A Produce with acks=all that waits until the in-sync replicas have its records."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from broker.wire.errors import lost_code
from protocol.api import ApiKey
from protocol.errors import ErrorCode
from protocol.record_batch import HEADER

if TYPE_CHECKING:
    from broker.base.context import Context
    from broker.partitions.incoming_batch import Buffer
    from broker.partitions.partition import Partition
    from broker.turn.durability import FlushState
    from broker.turn.turn import Turn
    from broker.wire.parked import ParkedRequests
    from protocol.messages.produce import PartitionProduceResponse, ProduceResponse


class View(Protocol):
    """What a wait uses of the broker."""

    @property
    def parked(self) -> ParkedRequests: ...
    @property
    def turn(self) -> Turn: ...


class Appended(NamedTuple):
    """A batch that was appended, or had been before, and its answer."""

    partition: Partition
    end_offset: int
    answer: PartitionProduceResponse

    @classmethod
    def of(cls, partition: Partition, records: Buffer, answer: PartitionProduceResponse) -> Appended:
        """`records` is one batch; the answer has its base offset."""
        return cls(partition, answer.base_offset + HEADER.unpack_from(records)[6] + 1, answer)

    @property
    def flush_state(self) -> FlushState:
        return self.partition.flush_state

    @property
    def waits(self) -> bool:
        """Whether a replica that is in sync does not have the batch, or too few are in sync."""
        return self.partition.ceiling < self.end_offset


class AcksWait:
    """Answers when the high watermark of each partition is above its batch.

    While it waits, its partitions poll it, its connection holds it in `fetch_waits`, and it has a deadline.

    Errors a partition:  REQUEST_TIMED_OUT: the records are in the log of the leader and may still become readable.
                         NOT_ENOUGH_REPLICAS_AFTER_APPEND: they are committed, and too few replicas are in sync now.
                         NOT_LEADER_OR_FOLLOWER: another replica leads, which may not have them.
                         that of a failed write: they are not in the log.
    Source:  Kafka's DelayedProduce, Partition.checkEnoughReplicasReachOffset.
    """

    def __init__(self, broker: View, ctx: Context, response: ProduceResponse, appended: list[Appended]) -> None:
        self._broker = broker
        self._ctx = ctx
        self._response = response
        self._rest = dict(enumerate(appended))
        self._alarm = 0

    def begin(self, timeout_ms: int) -> None:
        """Wait. The request is parked, or will be in this turn."""
        for number, each in self._rest.items():
            each.partition.watch(self, committed=False)
            each.flush_state.then(partial(self._durable, number))
        connection = self._ctx.connection
        if connection.fetch_waits is None:
            connection.fetch_waits = {}
        connection.fetch_waits[id(self)] = self
        turn = self._broker.turn
        self._alarm = turn.timers.at(turn.steady_ms + max(timeout_ms, 0), self.expire)

    def poll(self) -> None:
        """A high watermark has moved, or a partition has changed."""
        for number, each in list(self._rest.items()):
            partition = each.partition
            if partition.closed or partition.info.leader != self._ctx.node_id:
                self._settle(number, ErrorCode.NOT_LEADER_OR_FOLLOWER)
            elif partition.high_watermark >= each.end_offset:
                self._settle(number, ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND if partition.is_held else 0)

    def expire(self, due_ms: int, now_ms: int) -> None:
        """timeout_ms is over."""
        for number in list(self._rest):
            self._settle(number, ErrorCode.REQUEST_TIMED_OUT)

    def cancel(self) -> None:
        """The connection is closed."""
        for each in self._rest.values():
            each.partition.unwatch(self)
        self._rest = {}
        self._end()

    def _durable(self, number: int, durable: bool) -> None:
        if durable:
            self.poll()
        elif number in self._rest:
            answer = self._rest[number].answer
            answer.base_offset = answer.log_append_time_ms = answer.log_start_offset = -1
            self._settle(number, lost_code(ApiKey.PRODUCE))

    def _settle(self, number: int, code: int) -> None:
        each = self._rest.pop(number)
        each.answer.error_code = code
        if not any(other.partition is each.partition for other in self._rest.values()):
            each.partition.unwatch(self)
        if not self._rest:
            self._end()
            self._broker.parked.answer(self._ctx.token, self._response)

    def _end(self) -> None:
        self._broker.turn.timers.cancel(self._alarm)
        waits: dict[int, Any] = self._ctx.connection.fetch_waits
        waits.pop(id(self), None)
