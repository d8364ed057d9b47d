"""Writes and syncs logs at the end of a turn, holds replies until their log is durable, and handles failed writes."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Final

from broker.turn.flush_state import GONE, Client, FlushState, Held
from storage.files.errors import StorageError

if TYPE_CHECKING:
    from storage.log.log import Log

log: Final = logging.getLogger("momus.durability")


class Durability:
    """Writes and syncs the logs that a turn touched, and releases the replies that waited for it.

    At `memory` and `os` a turn ends with its replies sent. At `fsync` the syncs of a turn run in threads as one job;
    what later turns write waits for the next job (group commit). A connection with a reply that depends on a job sends
    nothing until that job is done, because its replies leave in request order.
    """

    def __init__(
        self,
        *,
        fsync: bool,
        start_sync: Callable[[list[Log]], None],
        refuse: Callable[[Iterable[Held], FlushState], None],
    ) -> None:
        self.fsync = fsync
        self._start_sync = start_sync  # syncs logs in threads, then calls sync_done
        self._refuse = refuse  # puts a retriable error into the held slots, told which log has failed
        self.syncs_done = 0  # jobs of syncs so far
        self.dirty: list[FlushState] = []  # what the turn flushes at its end
        self.speaking: set[Client] = set()  # with replies to send or to hold
        self._syncing: list[FlushState] = []
        self._job_runs = False  # a job without logs only keeps replies in order
        self._sync_connections: list[tuple[Client, int]] = []
        self._next: dict[FlushState, None] = {}
        self._next_connections: dict[Client, int] = {}
        self._is_given_up = False  # the data was: another life of the cluster may have files of the same names
        self.failures = 0

    def touch(self, state: FlushState) -> None:
        """Flush this log at the end of the turn."""
        if not state.queued:
            state.queued = True
            self.dirty.append(state)

    def is_settled(self, state: FlushState) -> bool:
        """Whether everything in the log is durable, so that a reply made from it may be sent."""
        return not (state.queued or (self.fsync and (state in self._next or state in self._syncing)))

    def unsettled_shards(self) -> list[FlushState]:
        """The logs of shards, not of partitions, that are not durable to their end."""
        flush_states = self.dirty
        if not flush_states and not self.fsync:
            return flush_states
        if self.fsync and (self._next or self._syncing):
            flush_states = list(dict.fromkeys([*flush_states, *self._next, *self._syncing]))
        return [state for state in flush_states if state.is_shard]

    def speaks(self, connection: Client) -> None:
        """The connection has a reply to send at the end of the turn."""
        self.speaking.add(connection)

    def hold(self, state: FlushState, held: Held) -> None:
        """Hold a reply until the log is durable. Where it is already, this is `speaks`."""
        connection = held[0]
        self.speaking.add(connection)
        if not self.is_settled(state):
            state.held.append(held)
            if self.fsync:
                connection.awaits_sync = True
            self.touch(state)

    def hold_write(self, state: FlushState, held: Held) -> None:
        """Hold the reply to a request that has just written to the log. Its connection must `speak` too."""
        if not state.queued:
            state.queued = True
            self.dirty.append(state)
        state.held.append(held)
        if self.fsync:
            held[0].awaits_sync = True

    def end_turn(self) -> bool:
        """Write what the turn appended, then send the replies that need not wait for a sync. Whether there is more."""
        if self._is_given_up:
            connections, self.dirty, self.speaking = self.speaking, [], set()
            # connections of clients are closed, but a call of the control plane still waits for its reply
            for connection in connections:
                connection.drain()
            return bool(self.dirty or self.speaking)
        while self.dirty:  # a flush may wake requests that append again
            dirty, self.dirty = self.dirty, []
            for state in dirty:
                state.queued = False
                if state.log.end_offset > state.deferred_offset or state.held or state.steps:
                    self._flush(state)
        connections, self.speaking = self.speaking, set()
        if not self.fsync:
            for connection in connections:
                connection.drain()
            return bool(self.dirty or self.speaking)
        for connection in connections:
            if connection.awaits_sync or connection in self._next_connections:
                connection.awaits_sync = True
                self._next_connections[connection] = connection.next_slot
            else:
                connection.release(connection.next_slot)
        self._sync_next()
        return bool(self.dirty or self.speaking)

    def give_up(self) -> None:
        """The data is given up, perhaps within a turn: write nothing any more."""
        self._is_given_up = True

    def _flush(self, state: FlushState) -> bool:
        """Write a log. Whether all of it is durable then: if the write failed, its owner may have made up for it."""
        written = state.log
        end_offset = written.end_offset
        if state.gone or self._is_given_up:
            return state.durable_offset >= end_offset
        try:
            written.flush()
            if self.fsync:
                state.written += state.held
                state.held.clear()
                self._next[state] = None
                return False
            if end_offset - written.synced_offset >= written.flush_messages:
                written.sync()  # within the turn, as Kafka within the append: who sets flush.messages wants that
        except (OSError, StorageError) as error:
            self._failed(state, error)
            return state.durable_offset >= end_offset
        state.held = []
        state.durable_offset = end_offset  # as `settle`: this is done for each write
        state.owner.advance(end_offset)
        if state.steps:
            state.settle(end_offset)
        return True

    def write_now(self, state: FlushState) -> bool:
        """Write a log before the turn ends, where a write makes it durable (not at `fsync`). False: it was cut back.

        For requests that write several logs in order. The log need not have been touched.
        """
        return self._flush(state)

    def settle_now(self, state: FlushState) -> None:
        """Make all of a log durable within the turn. It blocks the loop: for rare operations only.

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
                # all durable: no failure refuses them
                state.syncing, state.written, state.held = [], [], []
        if failures != self.failures:
            raise StorageError(f"{state.log.directory} could not be written")

    def _failed(self, state: FlushState, error: Exception) -> None:
        """Refuse the replies that depend on what is not durable, cut the log back, rebuild the state."""
        self.failures += 1
        log.error("%s: write failed (%s); log cut back to offset %d", state.log.directory, error, state.durable_offset)
        self._refuse_held(state)
        state.failed_in_sync = state in self._syncing
        try:
            state.log.cut_back(state.durable_offset)
        except (OSError, StorageError) as worse:
            log.error("%s: cannot cut the log back, out of use until it is reopened: %s", state.log.directory, worse)
        state.fail()

    def _refuse_held(self, state: FlushState) -> None:
        held = state.syncing + state.written + state.held
        state.syncing, state.written, state.held = [], [], []
        self._next.pop(state, None)
        self._refuse(held, state)

    def forget(self, state: FlushState) -> None:
        """The log has been deleted: refuse the replies that waited for it."""
        state.gone = True
        state.owner = GONE  # the owner refers to this state too: without the circle both are freed at once
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
        """The syncs of a job have ended; `failed` holds the logs whose sync failed."""
        syncing = self._syncing  # shrinks one by one: a step behind one log may ask is_settled of the next
        released, self._sync_connections = self._sync_connections, []
        while syncing:
            state = syncing.pop(0)
            error = failed.get(state.log)
            if state.gone:
                continue
            if state.failed_in_sync:  # what was synced has been cut off meanwhile
                state.failed_in_sync = False
                state.log.synced_offset = min(state.log.synced_offset, state.durable_offset)
            elif error is not None:
                self._failed(state, error)
            else:
                state.syncing = []
                # the sync may have reached further, but replies to that wait for the next job and may still be refused
                state.settle(max(state.durable_offset, min(state.log.synced_offset, state.sync_offset)))
        self._job_runs = False
        self.syncs_done += 1
        for connection, slot in released:
            # a connection with a reply in the open turn may depend on unwritten data: it stays awaits_sync
            if connection not in self._next_connections and connection not in self.speaking:
                connection.awaits_sync = False
            connection.release(slot)
        self.end_turn()

    @property
    def idle(self) -> bool:
        """Whether nothing waits to be written or synced."""
        return not (self.dirty or self._next or self._job_runs)
