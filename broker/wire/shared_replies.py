"""Keeps large replies that are the same for every client, until what they were made from changes.

Metadata of ten thousand partitions takes tens of milliseconds to make, and each client of a cluster asks for the same.
Such a reply depends on the request, the listener by which the client came, and the cluster's metadata. So it is kept by
the first two. All are dropped when the generation in turn/learned.py has moved, and when none was used for a while.
Where an authorizer or a quota is asked for each request, nothing is shared.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, TypeAlias, cast

from broker.wire.route import REPLY_HEAD
from protocol.api import ApiKey
from protocol.errors import MalformedError
from storage.segments.file_slice import FileSlice

if TYPE_CHECKING:
    from broker.turn.turn import Turn
    from broker.wire.connection import Connection

# node, name of the listener, the broker's address that the client connected to; API, version and body of the request
Key: TypeAlias = tuple[int, str, str, bytes]

SHARED: Final = frozenset(
    (ApiKey.METADATA, ApiKey.DESCRIBE_CONFIGS, ApiKey.DESCRIBE_TOPIC_PARTITIONS),
)
LEAST_BYTES: Final = 8192  # of a reply: a smaller one is made almost as fast as it is found
MOST_ASKED_BYTES: Final = 1 << 18  # of a request that is kept: ten thousand names
MOST_BYTES: Final = 16 << 20  # of all replies and requests that are kept
IDLE_MS: Final = 30_000
BROKER_LOGGER: Final = 8  # the levels of loggers are not in the cluster's metadata
FIRST_BYTES: Final = 4096  # of a reply that are sent as they are: a journal looks at them


class _Memory:
    """Bytes that are read as those of a file are, so that a reply that waits counts only for its place."""

    __slots__ = ("_data",)

    def __init__(self, data: bytes) -> None:
        self._data = memoryview(data)

    def pread(self, n: int, position: int) -> bytes:
        return bytes(self._data[position : position + n])

    def send(self, descriptor: int, n: int, position: int) -> int:
        """There is no file that the kernel could send: it is read."""
        raise OSError


class SharedReplies:
    """The replies of one cluster, each without its size and correlation id."""

    __slots__ = (
        "_generation",
        "_is_used",
        "_replies",
        "_turn",
        "kept_bytes",
        "least_bytes",
        "most_bytes",
        "sent",
        "wanted",
    )

    def __init__(self, turn: Turn) -> None:
        self._turn = turn
        self._replies: dict[Key, tuple[bytes, FileSlice]] = {}
        self.kept_bytes = 0  # of replies and of the requests that ask for them
        self._generation = -1
        self._is_used = False  # since the timer was set
        self.wanted: set[int] = set()  # APIs of which a reply was large: for others no key is made
        self.least_bytes, self.most_bytes = LEAST_BYTES, MOST_BYTES
        self.sent = 0  # replies that were not made again

    def key(self, connection: Connection, decode_header: Any, data: bytes, position: int, stop: int) -> Key | None:
        """What the reply to a frame is kept by; None: it is not kept."""
        if stop - position > MOST_ASKED_BYTES:
            return None
        try:
            header, at = decode_header(data, position + 4)
        except MalformedError:  # who decodes the request says why
            return None
        connection.client = header.client_id or ""
        asked = data[position + 4 : position + 8] + data[at:stop]
        return connection.node_id, connection.listener.name, connection.local_host, asked

    def send(self, connection: Connection, api_key: int, key: Key, correlation_id: int) -> bool:
        """Answer with a reply that was made for another client, or for an earlier request. False: there is none."""
        turn = self._turn
        if self._generation != turn.learned.generation:
            self.clear()
        kept = self._replies.get(key)
        if kept is None:
            return False
        self._is_used = True
        self.sent += 1
        turn.metrics.counts[api_key] += 1
        turn.durability.speaks(connection)
        turn.answered_bytes += len(kept[1])  # the turn sends them, although the connection holds nothing of its own
        slot = connection.next_slot
        connection.out.append(None)
        first, rest = kept
        size = 4 + len(first) + len(rest)
        connection.fill(slot, [REPLY_HEAD.pack(size, correlation_id) + first, rest])
        return True

    def keep(self, api_key: int, key: Key | None, request: Any, reply: Any, generation: int) -> None:
        """Keep a reply without errors, unless it is small.

        key          None: it was not asked for, because no reply of this API was large so far. Now it is worth asking.
        generation   that of the time before the request was decided.
        """
        if not isinstance(reply, bytes) or len(reply) < self.least_bytes:
            return
        if key is None:
            self.wanted.add(api_key)
            return
        if api_key == ApiKey.DESCRIBE_CONFIGS and any(
            each.resource_type == BROKER_LOGGER for each in request.resources
        ):
            return
        if self._generation != generation:
            self.clear()
        size = len(reply) + len(key[3])
        if size > self.most_bytes:
            return
        if self.kept_bytes + size > self.most_bytes:
            self.clear()
        if not self._replies:
            self._turn.timers.at(self._turn.steady_ms + IDLE_MS, self._look)
        rest = reply[FIRST_BYTES:]
        self._replies[key] = (
            reply[REPLY_HEAD.size : FIRST_BYTES],
            FileSlice(cast("Any", _Memory(rest)), 0, len(rest), 0),
        )
        self.kept_bytes += size
        self._generation = generation

    def clear(self) -> None:
        """Drop everything."""
        self._replies.clear()
        self.kept_bytes = 0

    def _look(self, due_ms: int, now_ms: int) -> None:
        """Drop everything if it was not used for a while."""
        if not self._is_used:
            self.clear()
        elif self._replies:
            self._is_used = False
            self._turn.timers.at(now_ms + IDLE_MS, self._look)
