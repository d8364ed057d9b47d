"""A shard: one log with the state machine that replays it, its timers, and the requests parked in it."""

from __future__ import annotations

import logging
from collections.abc import Callable, Hashable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Final

from broker.base.context import Context
from broker.coordinator.deadlines import Deadlines
from broker.coordinator.offsets.image_files import begin_replay
from broker.coordinator.written import Records
from broker.turn.decision import Decision, Record, Token
from broker.turn.executor import Executor, append
from broker.turn.flush_state import FlushState, Owner
from protocol.errors import ErrorCode, KafkaError
from storage.files.errors import StorageError

if TYPE_CHECKING:
    from broker.coordinator.shard_parts import Answers, LogSource, Machine
    from broker.turn.decision import Decision, Record, Token
    from broker.turn.turn import Turn
    from broker.turn.write import Write

logger: Final = logging.getLogger("momus.shard")

# closed: loaded, but its log could neither be written nor cut back; the next `require` tries again
UNLOADED: Final = "unloaded"
LOADING: Final = "loading"
READY: Final = "ready"
CLOSED: Final = "closed"
LOAD_AT_ONCE_BYTES: Final = 1 << 20  # a log up to this size is replayed at the first `require`: about 10 ms
COST_A_SLICE: Final = 4000  # of a larger log, replayed in one step: about 2 ms
DEFER_MS: Final = 1000  # from a load after a failed write until what it appended is written, or until the next try


class Shard(Owner):
    """The runtime of a state machine over a log: loads, appends, replays, sets timers, reloads.

    Durable: a reply is sent when every record appended before it is durable at the configured level. Until then the
    state is ahead of the log; after a failed write it is thrown away and replayed.
    """

    def __init__(
        self,
        turn: Turn,
        answers: Answers,
        name: str,
        source: LogSource,
        make_machine: Callable[[], Machine],
        *,
        load_at_once_bytes: int = LOAD_AT_ONCE_BYTES,
        is_short: Callable[[], bool] | None = None,
    ) -> None:
        self._is_short = is_short  # whether fewer replicas of its log are in sync than a write needs; None: never
        self.load_at_once_bytes = load_at_once_bytes
        self.followers: list[Callable[[int], None]] = []  # called with the durable offset
        self.when_reloaded: list[Callable[[], None]] = []  # called after a reload: users of the old machine
        self._turn = turn
        self._answers = answers
        self.name = name
        self._source = source
        self._make_machine = make_machine
        self.state = UNLOADED
        self.flush_state = None  # type: ignore[assignment]  # set by the first `require`
        self.log = None  # type: ignore[assignment]  # the same
        self.machine: Any = make_machine()
        self._executor = Executor(turn, answers)
        self.deadlines = Deadlines(turn, self._due)
        self._opening: Iterator[None] | None = None  # the job that recovers a large log and begins to load it
        self._loading: Iterator[None] | None = None
        self._loads = 0  # loads begun so far: an older one in the background stops
        self._failure: Exception | None = None  # of a load in the background, until somebody is told
        self._reloading = False  # until a load has worked: `when_reloaded` is still to be called
        self.parked: set[Token] = set()
        self.cleanable_from = 0
        self.image_offset = 0  # of the last image of the state
        self.image_begun: int | None = None  # offset of the last image that this process has begun
        self.kept: dict[bytes, int] = {}  # key that is not of an offset -> offset of its last record

    def __str__(self) -> str:
        return self.name

    # -- loading

    def require(self) -> None:
        """Make sure that the shard is loaded.

        Errors:  COORDINATOR_LOAD_IN_PROGRESS, while a large log is replayed.
                 StorageError, OSError: the log cannot be used; the next call tries again.
        """
        if self.state == READY:
            return
        if self.state == CLOSED:
            self.log.reopen(self.flush_state.durable_offset)
            self._begin()
            return
        if self.state == UNLOADED:
            self._raise_failure()
            self._recover_large()
            self._begin_loading()
        self._finish_loading()

    def load(self) -> Iterator[None]:
        """Load in slices; `require` loads the rest of a small log at once. Errors: StorageError, OSError."""
        if self.log is None:
            yield from self._source.recover()
        if self.state == UNLOADED:
            self._begin_loading()
        while self.state == LOADING:
            yield
        self._raise_failure()

    def _raise_failure(self) -> None:
        failure, self._failure = self._failure, None
        if failure is not None:
            raise StorageError(str(failure)) from failure

    def _recover_large(self) -> None:
        """Have a large log recovered and loaded in slices. Errors: COORDINATOR_LOAD_IN_PROGRESS: it has begun."""
        jobs = self._turn.jobs
        if self._opening is None:
            if self._source.size_on_disk() <= self.load_at_once_bytes:
                return
            self._opening = self._open_slowly()
            jobs.add(self._opening)
        elif not jobs.has_any((self._opening,)):  # it has failed: `require` goes on without it, and tells why
            return
        jobs.hurry(self._opening)
        raise KafkaError(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, f"the log of {self.name} is being recovered")

    def _open_slowly(self) -> Iterator[None]:
        yield from self._source.recover()
        if self.state == UNLOADED:
            self._begin_loading()
        assert self._loading is not None
        self._turn.jobs.hurry(self._loading)

    def _begin_loading(self) -> None:
        self.open()
        if self.log.broken:
            self.log.reopen(self.flush_state.durable_offset)
        self._replay_anew()

    def _replay_anew(self) -> None:
        self._loads += 1
        self.state = LOADING
        self._loading = self._replay_log(self._loads)
        self._turn.jobs.add(self._loading)

    def _finish_loading(self) -> None:
        assert self._loading is not None
        if self.log.size_bytes > self.load_at_once_bytes:
            self._turn.jobs.hurry(self._loading)
            raise KafkaError(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, f"{self.name} is being loaded")
        self._turn.jobs.drop(self._loading)
        try:
            for _ in self._loading:
                pass
        finally:
            self._failure = None  # it is raised here

    def open(self) -> None:
        """Open the log; the state is loaded by `require`."""
        if self.log is None:
            self.log = self._source.open()
            self.flush_state = FlushState(self, is_shard=True)

    def _replay_log(self, load: int) -> Iterator[None]:
        cost, log, durable_offset = 0, self.log, self.flush_state.durable_offset
        try:
            is_large = log.size_bytes > self.load_at_once_bytes
            replay, start = yield from begin_replay(self._make_machine, log, durable_offset, is_large=is_large)
            if load != self._loads:
                return
            self.image_offset = start
            for header, batch in log.batches(start):
                if header.base_offset >= self.flush_state.durable_offset:  # a failed write that could not be cut off
                    break
                cost += replay.batch(header, batch)
                if cost >= COST_A_SLICE:
                    cost = 0
                    yield
                    if load != self._loads:
                        return
            repairs = replay.repairs()
        except Exception as error:
            if load == self._loads:
                self.state, self._failure = UNLOADED, error  # the next `require` raises it; later ones try again
            raise
        self.machine, self.kept = replay.machine, replay.kept
        self._turn.learned.drop()
        if self.log.broken:
            self.state = CLOSED
        else:
            self._begin(repairs)
        if self._reloading:
            self._reloading = False
            for call in self.when_reloaded:
                call()

    def _begin(self, repairs: Sequence[Record] = ()) -> None:
        self.state = READY
        if repairs:
            logger.warning(
                "%s: incomplete multi-batch commit found; restoring the previous offsets of %d keys",
                self.name,
                len(repairs),
            )
            self.append(repairs)
        self.cleanable_from = self.log.end_offset  # the cleaner must wait until the repairs are durable
        self.apply(self.machine.on_load(self._context()))
        if self.flush_state.deferred_offset >= 0:
            self.flush_state.deferred_offset = self.log.end_offset
            self._turn.timers.at(self._turn.steady_ms + DEFER_MS, self._write_deferred)

    def _write_deferred(self, _due_ms: int, _now_ms: int) -> None:
        self.flush_state.deferred_offset = -1
        if self.log.dirty:
            self._turn.touch(self.flush_state)

    def in_background(self, steps: Iterator[None]) -> None:
        """Run the steps between turns."""
        self._turn.jobs.add(steps)

    def _context(self) -> Context:
        """The context of a timer or load, which is a request of the broker to itself."""
        return Context(self._turn.now_ms, self._turn.env.rng)

    @property
    def may_be_cleaned(self) -> bool:
        """Whether all repairs are durable, so that log and state agree."""
        return self.state is READY and self.flush_state.durable_offset >= self.cleanable_from

    def advance(self, durable_offset: int) -> None:
        """Everything below this offset is durable: tell the followers. The flush state releases the replies."""
        for follow in self.followers:
            follow(durable_offset)

    def forget(self) -> None:
        """Throw the state away. Parked requests get NOT_COORDINATOR, so clients look the coordinator up."""
        parked, self.parked = self.parked, set()
        self.deadlines.clear()
        self.state = UNLOADED
        self._turn.learned.drop()
        for token in parked:
            self._answers.refuse(token, ErrorCode.NOT_COORDINATOR)

    def reload(self) -> None:
        """Rebuild the state from the log.

        What the load itself appends is written after DEFER_MS, or with the next request's records. Written at once on a
        disk that is full, it would fail, and be made again by another reload, without end.
        """
        self.flush_state.deferred_offset = self.log.end_offset
        self._reloading = True
        self.forget()
        logger.info("%s: reloading from its log", self.name)
        self._load_anew()

    def _load_anew(self, _due_ms: int = 0, _now_ms: int = 0) -> None:
        """Load, unless a request has done it. A failed load is tried again: of the metadata, no request asks for it."""
        if self.state != UNLOADED or self.flush_state.gone:
            return
        try:
            self._replay_anew()
            self._finish_loading()
        except KafkaError as error:
            logger.info("%s: %s", self.name, error.message)
        except (OSError, StorageError) as error:
            logger.error("cannot reload %s: %s", self.name, error)
            self._turn.timers.at(self._turn.steady_ms + DEFER_MS, self._load_anew)

    # -- work

    def before_write(self) -> None:
        """A request of a client is about to write. What the broker decides itself, at a timeout say, is written anyway.

        Differs: Kafka's group coordinator writes with acks=1 and gives up after five seconds; the record is in its log
                 then and takes effect later, as in Executor.carry_out. Its transaction coordinator refuses
                 at once.
        Errors:  COORDINATOR_NOT_AVAILABLE: fewer replicas are in sync than min.insync.replicas of the topic asks for.
        Source:  three brokers of Apache Kafka 4.3.1; CoordinatorOperationExceptionHelper, TransactionStateManager.
        """
        if self.state is not READY:
            self.require()
        if self._is_short is not None and self._is_short():
            raise self.short_of_replicas()

    def is_short(self) -> bool:
        """Whether fewer replicas of its log are in sync than a write needs."""
        return self._is_short is not None and self._is_short()

    def short_of_replicas(self) -> KafkaError:
        """The error of a write for which too few replicas are in sync."""
        return KafkaError(ErrorCode.COORDINATOR_NOT_AVAILABLE, f"too few replicas of {self.name} are in sync")

    def not_written(self, _write: Write, _error: StorageError) -> None:
        """An append has failed: the state may be ahead of the log."""
        self.reload()

    def apply(self, decision: Decision, now_ms: int | None = None) -> None:
        """Carry out what a timer, a load or the broker itself has decided about this shard."""
        decision.shard = self
        self._executor.carry_out(decision, self._turn.now_ms if now_ms is None else now_ms, is_clients=False)

    def append(self, records: Sequence[Record], now_ms: int | None = None) -> None:
        """Append the records as one batch, replay them, and have the log flushed.

        Errors:  StorageError: nothing was appended, and the shard was reloaded; OSError: it cannot be loaded.
        """
        self.write(Records(records), now_ms)

    def write(self, write: Write, now_ms: int | None = None) -> None:
        """The same for any Write."""
        if self.state is CLOSED or self.state is UNLOADED:  # its records would follow a state that was lost
            self.require()
        self._turn.begin()  # a step between turns may write
        append(self, write, self._turn.now_ms if now_ms is None else now_ms, self._turn.durability)

    def touch(self) -> None:
        """Have the log flushed at the end of the turn."""
        self._turn.touch(self.flush_state)

    def _due(self, name: Hashable) -> None:
        if self.state == READY:
            self.apply(self.machine.on_timer(name, self._context()))
