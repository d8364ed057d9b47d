"""FlushState: one log, its owner, and the replies that depend on its next flush. `durability.py` beside it flushes."""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final, Protocol, TypeAlias

from protocol.errors import KafkaError
from storage.files.errors import StorageError

if TYPE_CHECKING:
    from broker.turn.write import Write
    from storage.log.log import Log

log: Final = logging.getLogger("momus.durability")


class Client(Protocol):
    """The connection that replies go to."""

    awaits_sync: bool  # its replies depend on unsynced data: only `release` sends
    base: int  # the slot of the oldest reply that has not been sent
    closed: bool
    out: list[Any]  # the replies from that slot on

    @property
    def next_slot(self) -> int:
        """The slot that the next reply will take."""

    def fill(self, slot: int, reply: Any) -> None:
        """Put a reply into its slot."""

    def drain(self) -> None:
        """Send the replies that are ready."""

    def release(self, limit_slot: int) -> None:
        """Send the replies that are ready below a slot."""


# client, slot of the reply, and the request: bytes that hold its frame, its start and stop in them
Held: TypeAlias = tuple[Client, int, bytes, int, int]


class Owner:
    """A shard or a partition.

    log          it is None in a shard that has not been loaded yet.
    flush_state  which replies wait for the log; the same.
    """

    __slots__ = ("flush_state", "log")

    log: Log
    flush_state: FlushState

    def before_write(self) -> None:
        """A request of a client is about to write. Errors: KafkaError: too few replicas are in sync."""
        raise NotImplementedError

    def not_written(self, write: Write, error: StorageError) -> None:
        """A write could not be appended; nothing of it is in the log."""
        raise NotImplementedError

    def advance(self, durable_offset: int) -> None:
        """Everything below this offset survives a crash at the configured level."""
        raise NotImplementedError

    def reload(self) -> None:
        """Throw away the state and rebuild it from the log."""
        raise NotImplementedError


class Gone(Owner):
    """The owner of a log that has been deleted."""

    __slots__ = ()

    def advance(self, durable_offset: int) -> None:
        """Nothing."""

    def reload(self) -> None:
        """Nothing."""


GONE: Final = Gone()


class FlushState:
    """One log with its state machine and the replies that depend on its next flush."""

    __slots__ = (
        "deferred_offset",
        "durable_offset",
        "failed_in_sync",
        "gone",
        "held",
        "is_shard",
        "log",
        "owner",
        "queued",
        "steps",
        "sync_offset",
        "syncing",
        "written",
    )

    def __init__(self, owner: Owner, *, is_shard: bool = False) -> None:
        self.owner = owner
        self.is_shard = is_shard  # a coordinator or metadata log: replies are made from its state
        self.log = owner.log
        self.held: list[Held] = []  # replies that wait for the next flush
        self.written: list[Held] = []  # flushed; they wait for the next sync job
        self.syncing: list[Held] = []  # they wait for the running sync job
        self.queued = False  # in the list of what the turn flushes
        self.durable_offset = self.log.end_offset  # everything below it survives a crash
        self.sync_offset = self.durable_offset  # how far the running job syncs
        self.failed_in_sync = False  # the log was cut back during a sync
        self.gone = False  # its log has been deleted
        # after a failed write: what the load appended, up to here, is written later (Shard.reload)
        self.deferred_offset = -1
        self.steps: deque[tuple[int, Callable[[bool], None]]] = deque()  # what waits until an offset is durable

    def then(self, step: Callable[[bool], None]) -> None:
        """Call `step(True)` once everything appended up to now is durable, or `step(False)` when it was thrown away.

        This orders writes to different logs: a transaction's data is appended after the record that names its
        partition is durable.
        """
        self.steps.append((self.log.end_offset, step))

    def settle(self, durable_offset: int) -> None:
        """Everything below this offset is durable: tell the owner, and run the steps that waited for it."""
        self.durable_offset = durable_offset
        self.owner.advance(durable_offset)
        steps = self.steps
        while steps and steps[0][0] <= durable_offset:
            self._take(steps.popleft()[1], durable=True)

    def fail(self) -> None:
        """What was not durable is lost: reload the owner, and tell the waiting steps."""
        steps, self.steps = self.steps, deque()
        self.owner.reload()
        for _, step in steps:
            self._take(step, durable=False)

    def _take(self, step: Callable[[bool], None], *, durable: bool) -> None:
        """Take one step. It may fail, when another log is out of use for example; the others are taken all the same."""
        try:
            step(durable)
        except (KafkaError, OSError, StorageError) as error:
            log.error("a step that waited for %s failed: %s", self.log.directory, error)
