"""A Produce that sends batches again: where they are in the log is looked up before it is answered.

The first slices are read at once: what a client sends again was mostly written a moment ago. A longer search goes on
between turns. Until it ends nothing more is read from its connection, and the other connections are served.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from broker.requests.written_batch import find, sought
from protocol.errors import ErrorCode, KafkaError
from storage.files.errors import StorageError

if TYPE_CHECKING:
    from broker.base.context import Context
    from broker.requests.produce_ask import Ask, Entry
    from broker.turn.turn import Turn
    from broker.wire.parked import ParkedRequests

Lost: TypeAlias = Callable[["Entry", bool], None]

FOUND_AT_ONCE: Final = 16  # batches, before others get a turn


class Search:
    """Looks up all batches that one request sends again."""

    def __init__(self, turn: Turn, ask: Ask) -> None:
        self._turn = turn
        self._waiting = [*ask.appended, *(each[:2] for each in ask.sought)]
        self._steps = self._look(ask)

    def is_done_at_once(self) -> bool:
        """Read the first slices."""
        return next(self._steps, True) is True

    def go_on(self, ctx: Context, parked: ParkedRequests, lost: Lost, ended: Callable[[], None]) -> None:
        """Go on between turns, then call `ended`. The request is parked, or will be in this turn.

        lost    is called for each entry, meanwhile: whether what it was written with, or repeats, is durable.
        """
        for partition, entry in self._waiting:
            if not self._turn.durability.is_settled(partition.flush_state):
                partition.flush_state.then(partial(lost, entry))
        connection: Any = ctx.connection
        connection.throttle(True)
        steps = self._between_turns(connection, ctx.token, parked, ended)
        self._turn.jobs.add(steps)
        self._turn.jobs.hurry(steps)

    def _between_turns(
        self, connection: Any, token: Any, parked: ParkedRequests, ended: Callable[[], None]
    ) -> Iterator[None]:
        while parked.find(token) is not None:
            if next(self._steps, True) is True:
                connection.throttle(False)  # first: a quota may throttle it again with the answer
                ended()
                return
            yield

    def _look(self, ask: Ask) -> Iterator[None]:
        for number, (partition, entry, error) in enumerate(ask.take_sought(), 1):
            try:
                found = yield from find(partition.log, sought(entry.batch, error))
            except (OSError, StorageError):
                ask.refuse(entry, KafkaError(ErrorCode.KAFKA_STORAGE_ERROR))
                continue
            if entry.code:
                continue  # what it repeats could not be made durable
            if found is None:
                ask.refuse(entry, error)
            else:
                entry.batch.base_offset, entry.batch.append_ms = found.base_offset, found.timestamp_ms
                entry.accept(partition.log.log_start_offset)
                ask.appended.append((partition, entry))
            if number % FOUND_AT_ONCE == 0:
                yield
