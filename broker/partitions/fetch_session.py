"""Incremental fetch sessions (KIP-227): the partitions that a consumer reads, and the last response for each.

With a session the client need not name all its partitions in every Fetch, and the response leaves out those with
nothing new. The cache is bounded and evicts as Kafka does: first a session idle for two minutes, else one older than
that which has fewer partitions than the new one.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from broker.partitions.partition import Partition
    from storage.files.env import Rng

NO_SESSION: Final = 0
INITIAL_EPOCH: Final = 0  # a full Fetch that asks for a session
FINAL_EPOCH: Final = -1  # a full Fetch without a session; closes the session that it names
EVICTION_MS: Final = 120_000
_MAX_INT32: Final = 2**31 - 1

Key = tuple[str | bytes, int]  # topic name (topic id from version 13 on), partition


def next_epoch(epoch: int) -> int:
    """Epochs count 1 .. 2^31-1 and begin again at 1: 0 and -1 have other meanings."""
    return 1 if epoch == _MAX_INT32 else epoch + 1


class Wanted:
    """One partition of a Fetch and, in a session, the last response for it."""

    __slots__ = (
        "current_leader_epoch",
        "fetch_offset",
        "high_watermark",
        "last_fetched_epoch",
        "log_start_offset",
        "partition",
        "partition_max_bytes",
        "source",
        "topic",
        "topic_id",
    )

    def __init__(
        self,
        topic: str,
        topic_id: bytes,
        partition: int,
        fetch_offset: int,
        partition_max_bytes: int,
        current_leader_epoch: int,
        last_fetched_epoch: int,
    ) -> None:
        self.topic = topic  # "" while only the id is known
        self.topic_id = topic_id
        self.partition = partition
        self.fetch_offset = fetch_offset
        self.partition_max_bytes = partition_max_bytes
        self.current_leader_epoch = current_leader_epoch
        self.last_fetched_epoch = last_fetched_epoch
        self.high_watermark = -1
        self.log_start_offset = -1
        self.source: Partition | None = None  # the partition, once it is found and these epochs are checked

    def again(self) -> Wanted:
        """The same for another Fetch, without a last response."""
        return Wanted(
            self.topic,
            self.topic_id,
            self.partition,
            self.fetch_offset,
            self.partition_max_bytes,
            self.current_leader_epoch,
            self.last_fetched_epoch,
        )

    def update(self, new: Wanted) -> None:
        """Take over the request's fields; the last response stays."""
        self.fetch_offset = new.fetch_offset
        self.partition_max_bytes = new.partition_max_bytes
        if self.current_leader_epoch != new.current_leader_epoch or self.last_fetched_epoch != new.last_fetched_epoch:
            self.source = None
            self.current_leader_epoch = new.current_leader_epoch
            self.last_fetched_epoch = new.last_fetched_epoch


class FetchSession:
    """The partitions one client reads, in the order they are served."""

    __slots__ = ("changes", "created_ms", "epoch", "last_used_ms", "node_id", "session_id", "uses_topic_ids", "wanted")

    def __init__(
        self, session_id: int, wanted: dict[Key, Wanted], uses_topic_ids: bool, now_ms: int, node_id: int
    ) -> None:
        self.session_id = session_id
        self.node_id = node_id  # the node that began it; the others do not know it
        self.wanted = wanted
        self.uses_topic_ids = uses_topic_ids
        self.epoch = next_epoch(INITIAL_EPOCH)
        self.changes = 0  # how often a partition was added or removed
        self.created_ms = now_ms
        self.last_used_ms = now_ms

    def update(self, wanted: dict[Key, Wanted], forgotten: Iterable[Key]) -> None:
        """Add or update the named partitions, remove the forgotten ones."""
        known = self.wanted
        for key, new in wanted.items():
            old = known.get(key)
            if old is None:
                known[key] = new
                self.changes += 1
            else:
                old.update(new)
        for key in forgotten:
            known.pop(key, None)
            self.changes += 1

    def serve_last(self, key: Key) -> None:
        """Move a partition with records to the end, so that none starves behind the size limit."""
        wanted = self.wanted.pop(key, None)
        if wanted is not None:
            self.wanted[key] = wanted

    def take_back(self, keys: Iterable[Key]) -> None:
        """A response for these partitions was not sent after all: the next one has them."""
        for key in keys:
            wanted = self.wanted.get(key)
            if wanted is not None:
                wanted.high_watermark = wanted.log_start_offset = -1


class FetchSessions:
    """All sessions of the broker, least recently used first."""

    def __init__(self, slots: int, eviction_ms: int = EVICTION_MS) -> None:
        self._slots = slots
        self._eviction_ms = eviction_ms
        self._sessions: OrderedDict[int, FetchSession] = OrderedDict()

    def __len__(self) -> int:
        return len(self._sessions)

    def get(self, session_id: int) -> FetchSession | None:
        """The session of this id, whichever node's it is; None: there is none."""
        return self._sessions.get(session_id)

    def find(self, session_id: int, node_id: int) -> FetchSession | None:
        """The session, if it is one of this node's."""
        session = self._sessions.get(session_id)
        return session if session is not None and session.node_id == node_id else None

    def remove(self, session_id: int) -> None:
        """Forget a session, if there is one of this id."""
        self._sessions.pop(session_id, None)

    def touch(self, session: FetchSession, now_ms: int) -> None:
        """A session is used: others are evicted before it."""
        session.last_used_ms = now_ms
        self._sessions.move_to_end(session.session_id)

    def create(self, wanted: dict[Key, Wanted], uses_topic_ids: bool, now_ms: int, rng: Rng, node_id: int = 0) -> int:
        """The id of a new session, or NO_SESSION when the cache is full: the client then sends full fetches."""
        if len(self._sessions) >= self._slots and not self._evict(len(wanted), now_ms):
            return NO_SESSION
        session_id = rng.randint(1, _MAX_INT32)
        while session_id in self._sessions:
            session_id = rng.randint(1, _MAX_INT32)
        self._sessions[session_id] = FetchSession(session_id, wanted, uses_topic_ids, now_ms, node_id)
        return session_id

    def forget_deleted(self) -> Iterator[None]:
        """Let go of partitions that were deleted, in slices. What a session names stays, as in Kafka."""
        for session in list(self._sessions.values()):
            for wanted in session.wanted.values():
                if wanted.source is not None and wanted.source.closed:
                    wanted.source = None
            yield

    def _evict(self, size: int, now_ms: int) -> bool:
        if not self._sessions:
            return False
        victim = next(iter(self._sessions.values()))
        if now_ms - victim.last_used_ms <= self._eviction_ms:
            old = (s for s in self._sessions.values() if s.last_used_ms - s.created_ms > self._eviction_ms)
            smallest = min(old, key=lambda s: (len(s.wanted), s.session_id), default=None)
            if smallest is None or size <= len(smallest.wanted):
                return False
            victim = smallest
        del self._sessions[victim.session_id]
        return True
