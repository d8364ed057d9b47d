"""What a shard is made of: its state machine, the requests parked in it, and where its log is."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from broker.base.context import Context
    from broker.cluster.data.directory import DataDirectory
    from broker.cluster.metadata import ClusterMetadata
    from broker.turn.decision import Decision, Token
    from broker.turn.flush_state import FlushState
    from protocol.errors import ErrorCode
    from storage.log.log import Log


class Machine(Protocol):
    """State that is rebuilt by replaying records. Replay decides nothing."""

    def replay(self, key: bytes | None, value: bytes | None, offset: int, producer_id: int = -1) -> None:
        """Apply one record."""

    def after_batch(self) -> None:
        """All records of a new batch are replayed: assert what must hold then."""

    def on_timer(self, name: Hashable, ctx: Context) -> Decision:
        """A timer has run out."""

    def on_load(self, ctx: Context) -> Decision:
        """The whole log is replayed: set the timers."""


class Answers(Protocol):
    """The parked requests."""

    def answer(self, token: Token, response: Any, *seen: FlushState) -> None:
        """Answer a request once `seen`, the logs its response was made from, are durable."""

    def refuse(self, token: Token, code: ErrorCode | None) -> None:
        """Answer a request with an error. None: the one for what was lost with a failed write."""


class LogSource(Protocol):
    """Where the log of a shard is."""

    def open(self) -> Log:
        """Open it, and recover what is left to recover. Errors: StorageError, OSError."""

    def recover(self) -> Iterator[None]:
        """Recover it in slices, before it is opened. Errors: StorageError, OSError."""

    def size_on_disk(self) -> int:
        """Bytes of a log that is not open."""


class PartitionLog:
    """The log of a partition of an internal topic."""

    def __init__(
        self, directory: DataDirectory, metadata: Callable[[], ClusterMetadata], topic: str, index: int
    ) -> None:
        self._directory = directory
        self._metadata = metadata
        self._topic = topic
        self._index = index

    def open(self) -> Log:
        """As LogSource."""
        metadata = self._metadata()
        return self._directory.open_log(metadata, metadata.topics[self._topic], self._index)

    def recover(self) -> Iterator[None]:
        """As LogSource."""
        metadata = self._metadata()
        return self._directory.recover(metadata, metadata.topics[self._topic], self._index)

    def size_on_disk(self) -> int:
        """As LogSource."""
        return self._directory.size_on_disk(self._topic, self._index)


class LoneLog:
    """A log outside of topics, which is opened at once: that of the cluster's metadata."""

    def __init__(self, open_log: Callable[[], Log]) -> None:
        self.open = open_log

    def recover(self) -> Iterator[None]:
        """Nothing."""
        return iter(())

    def size_on_disk(self) -> int:
        """0: too little to be recovered in slices."""
        return 0
