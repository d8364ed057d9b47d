"""What waits for a log: the replies held until it is durable, and what happens to them when a write fails."""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

from storage.errors import StorageError

if TYPE_CHECKING:
    from storage.log import Log

log = logging.getLogger("momus.durability")


class Client(Protocol):
    """The connection that replies go to."""

    barred: bool  # it has seen what is not synced yet: only `release` sends
    base: int  # the slot of the oldest reply that has not left
    closed: bool

    @property
    def next_slot(self) -> int:
        """The slot that the next reply will take."""

    def fill(self, slot: int, reply: Any) -> None:
        """Put a reply into its slot."""

    def drain(self) -> None:
        """Send the replies that are ready."""

    def release(self, limit_slot: int) -> None:
        """Send the replies that are ready below a slot."""


# client, slot of the reply, and where the request lies: the bytes that hold its frame, where it starts and stops
Held: TypeAlias = tuple[Client, int, bytes, int, int]


class Owner(Protocol):
    """The state machine over a log."""

    log: Log

    def advance(self, durable_offset: int) -> None:
        """All below this offset will survive a crash at the configured level."""

    def reload(self) -> None:
        """Throw away the state and build it again from the log."""


class FlushState:
    """One log with its state machine and the replies that depend on its next flush."""

    __slots__ = (
        "_steps",
        "durable_offset",
        "failed_in_sync",
        "gone",
        "held",
        "is_shard",
        "log",
        "owner",
        "queued",
        "sync_offset",
        "syncing",
        "written",
    )

    def __init__(self, owner: Owner, *, is_shard: bool = False) -> None:
        self.owner = owner
        self.is_shard = is_shard  # its state is what replies of the coordinator are made from
        self.log = owner.log
        self.held: list[Held] = []  # since the last flush
        self.written: list[Held] = []  # flushed, waiting for the next sync job
        self.syncing: list[Held] = []  # waiting for the job that runs
        self.queued = False  # in the turn's list of flush states to flush
        self.durable_offset = self.log.end_offset  # below it nothing can be taken back
        self.sync_offset = self.durable_offset  # how far the job that runs was asked to sync
        self.failed_in_sync = False  # was cut back while a sync of it was under way
        self.gone = False  # its log has been deleted
        self._steps: deque[tuple[int, Callable[[bool], None]]] = deque()

    def then(self, step: Callable[[bool], None]) -> None:
        """Call `step(True)` once everything appended up to now is durable, or `step(False)` when it was thrown away.

        This is what orders one log behind another: a transaction's data behind the record that names its partition.
        """
        self._steps.append((self.log.end_offset, step))

    def settle(self, durable_offset: int) -> None:
        """All below this offset survives a crash: tell the owner, and take the next steps."""
        self.durable_offset = durable_offset
        self.owner.advance(durable_offset)
        steps = self._steps
        while steps and steps[0][0] <= durable_offset:
            steps.popleft()[1](True)

    def fail(self) -> None:
        """What was not durable is gone: the steps behind it will not be taken."""
        steps, self._steps = self._steps, deque()
        self.owner.reload()
        for _, step in steps:
            step(False)


class Durability:
    """Writes and syncs the logs that a turn touched, and releases the replies that waited for it.

    At `memory` and `os` a turn ends with its replies sent. At `fsync` the syncs of a turn run beside the loop as one
    job; what the next turns write waits for the next job (group commit). A connection that has seen anything of a
    job's logs sends nothing more until that job is done: its replies stay in request order anyway.
    """

    def __init__(
        self,
        *,
        fsync: bool,
        start_sync: Callable[[list[Log]], None],
        refuse: Callable[[Iterable[Held]], None],
    ) -> None:
        self.fsync = fsync
        self._start_sync = start_sync  # begins syncing logs beside the loop; ends in sync_done
        self._refuse = refuse  # puts a retriable error into the held slots
        self._dirty: list[FlushState] = []
        self._connections: set[Client] = set()  # have replies to send or to hold
        self._syncing: list[FlushState] = []
        self._job_runs = False  # a job may be without logs, and only order replies
        self._sync_connections: list[tuple[Client, int]] = []
        self._next: dict[FlushState, None] = {}
        self._next_connections: dict[Client, int] = {}
        self.failures = 0

    def touch(self, state: FlushState) -> None:
        """The log of this flush state has something to write."""
        if not state.queued:
            state.queued = True
            self._dirty.append(state)

    def is_settled(self, state: FlushState) -> bool:
        """Whether everything in the log is durable: what was seen of it may be told."""
        return not (state.queued or (self.fsync and (state in self._next or state in self._syncing)))

    def unsettled_shards(self) -> list[FlushState]:
        """The coordinator's logs (not the partitions') that are not durable to their end."""
        flush_states = self._dirty
        if self.fsync and (self._next or self._syncing):
            flush_states = list(dict.fromkeys([*flush_states, *self._next, *self._syncing]))
        return [state for state in flush_states if state.is_shard]

    def speaks(self, connection: Client) -> None:
        """The connection has a reply to send at the end of the turn."""
        self._connections.add(connection)

    def hold(self, state: FlushState, held: Held) -> None:
        """A reply waits for the flush state's log; without anything unwritten there this is `speaks`."""
        connection = held[0]
        self._connections.add(connection)
        if not self.is_settled(state):
            state.held.append(held)
            if self.fsync:
                connection.barred = True
            self.touch(state)

    def end_turn(self) -> None:
        """Write what the turn appended, then send what may be sent."""
        while self._dirty:  # advancing may wake requests that append again
            dirty, self._dirty = self._dirty, []
            for state in dirty:
                state.queued = False
                self._flush(state)
        connections, self._connections = self._connections, set()
        if not self.fsync:
            for connection in connections:
                connection.drain()
            return
        for connection in connections:
            if connection.barred or connection in self._next_connections:
                connection.barred = True
                self._next_connections[connection] = connection.next_slot
            else:
                connection.release(connection.next_slot)
        self._sync_next()

    def _flush(self, state: FlushState) -> None:
        if state.gone:
            return
        try:
            state.log.flush()
        except (OSError, StorageError) as error:
            self._failed(state, error)
            return
        if self.fsync:
            state.written += state.held
            state.held.clear()
            self._next[state] = None
        else:
            state.held.clear()
            state.settle(state.log.flushed_offset)

    def write_now(self, state: FlushState) -> bool:
        """Write a log before the turn ends, where that makes it durable (not at `fsync`); False: it was thrown away.

        For what goes on in other logs within the same request. A log need not be touched for it.
        """
        end_offset = state.log.end_offset
        self._flush(state)
        return state.durable_offset >= end_offset

    def settle_now(self, state: FlushState) -> None:
        """Make all of a log durable within the turn: for what is rare, and has to know the log's end.

        Errors:  OSError, StorageError: what was not durable has been thrown away.
        """
        if self.is_settled(state):
            return
        failures = self.failures
        self._flush(state)
        if self.fsync and failures == self.failures:
            try:
                state.log.sync()
            except (OSError, StorageError) as error:
                self._failed(state, error)
            else:
                state.settle(state.log.synced_offset)
                state.syncing, state.written, state.held = (
                    [],
                    [],
                    [],
                )  # all durable: no failure refuses them
        if failures != self.failures:
            raise StorageError(f"{state.log.directory} could not be written")

    def _failed(self, state: FlushState, error: Exception) -> None:
        """Nobody may see any effect of what is not durable: refuse its readers, cut the log, rebuild the state."""
        self.failures += 1
        log.error("%s: write failed (%s); log cut back to offset %d", state.log.directory, error, state.durable_offset)
        self._refuse_held(state)
        state.failed_in_sync = state in self._syncing
        try:
            state.log.cut_back(state.durable_offset)
        except (OSError, StorageError) as worse:  # out of use until the owner can reopen it
            log.error("%s: cannot cut the log back, out of use until it is reopened: %s", state.log.directory, worse)
        state.fail()

    def _refuse_held(self, state: FlushState) -> None:
        held = state.syncing + state.written + state.held
        state.syncing, state.written, state.held = [], [], []
        self._next.pop(state, None)
        self._refuse(held)

    def forget(self, state: FlushState) -> None:
        """The log has been deleted: what was not durable in it never will be."""
        state.gone = True
        self._refuse_held(state)

    def _sync_next(self) -> None:
        if self._job_runs or not (self._next or self._next_connections):
            return
        self._job_runs = True
        self._syncing, self._next = list(self._next), {}
        self._sync_connections, self._next_connections = list(self._next_connections.items()), {}
        for state in self._syncing:
            state.syncing, state.written = state.written, []
            state.sync_offset = state.log.flushed_offset
        self._start_sync([state.log for state in self._syncing])

    def sync_done(self, failed: dict[Log, Exception]) -> None:
        """The syncs of a job have ended; `failed` names the logs whose sync did not succeed."""
        syncing = self._syncing  # each leaves it when its turn comes: steps behind one log may look at the next
        released, self._sync_connections = self._sync_connections, []
        while syncing:
            state = syncing.pop(0)
            error = failed.get(state.log)
            if state.gone:
                continue
            if state.failed_in_sync:  # what the sync has reached was cut off meanwhile
                state.failed_in_sync = False
                state.log.synced_offset = min(state.log.synced_offset, state.durable_offset)
            elif error is not None:
                self._failed(state, error)
            else:
                state.syncing = []
                # the sync may have reached further; but replies to that wait for the next job, and may yet be refused
                state.settle(max(state.durable_offset, min(state.log.synced_offset, state.sync_offset)))
        self._job_runs = False
        for connection, slot in released:
            # one that has spoken in the open turn may have seen what is not even written: its bar stays
            if connection not in self._next_connections and connection not in self._connections:
                connection.barred = False
            connection.release(slot)
        self.end_turn()

    @property
    def has_more(self) -> bool:
        """Whether something has come since `end_turn` began."""
        return bool(self._dirty or self._connections)

    @property
    def idle(self) -> bool:
        """Whether nothing waits to be written or synced."""
        return not (self._dirty or self._next or self._job_runs)
