"""The ring: what connections receive and send, in pieces of whole frames, the oldest dropped when there is too much.

A piece is kept as it came: one object for all frames that a client sent at once. Frames above FRAME_BYTES keep their
first bytes and their size.
"""

from __future__ import annotations

from collections import deque
from struct import Struct
from typing import TYPE_CHECKING, Any, Final

from broker.journal.secrets import SECRET_APIS, without_secrets
from protocol.api import ApiKey

if TYPE_CHECKING:
    from collections.abc import Iterator

    from broker.wire.connection import Connection
    from broker.wire.reply_stream import Reply
    from storage.files.env import Clock

FRAME_BYTES: Final = 4096  # kept of a frame
PIECE_BYTES: Final = 200  # what a piece takes beside its frames, about
DEFAULT_BYTES: Final = 16 << 20
MOST_NOTES: Final = 10_000
_REQUEST_HEAD: Final = Struct(">ihhi")  # size, api key, api version, correlation id
_SIZE_AND_API: Final = Struct(">ih")
_API_VERSIONS: Final = int(ApiKey.API_VERSIONS)
_SPECIAL: Final = SECRET_APIS | {_API_VERSIONS}
REGISTRY: Final = -3  # the same for a request of the schema registry, which is kept as JSON
REPLY_HEAD_BYTES: Final = 8  # size and correlation id
STRANGERS: Final = {"TLS": -1, "HTTP": -2}  # what stands for the key of an API where the client does not speak Kafka's
REGISTRY_HEAD_BYTES: Final = 8  # of such a request: key, version and correlation id
FRAMES_BITS: Final = 20  # of a frame's number: no piece holds as many frames

Kept = tuple[bytes, int]  # a frame with its size field, or its first bytes; the size of all of it


class Peer:
    """A connection as the journal knows it, which outlives it here; or the broker itself, which has none."""

    __slots__ = ("address", "broker", "hello", "listener", "number", "principal", "secret_replies")

    def __init__(self, number: int, connection: Connection | None, node_id: int = -1) -> None:
        self.number = number
        self.address = self.listener = self.principal = ""
        self.broker = node_id
        if connection is not None:
            peer = connection.transport.get_extra_info("peername")
            self.address = f"{peer[0]}:{peer[1]}" if peer else ""
            self.listener = connection.listener.name
            self.broker = connection.node_id
            self.principal = connection.principal  # as of its last request
        self.hello = b""  # its last ApiVersions request, which names the client's software
        self.secret_replies: dict[int, tuple[int, int]] = {}  # correlation id -> API key and version


class Piece:
    """Frames that were received, or sent, at once on one connection."""

    __slots__ = ("at_ms", "at_us", "frames", "is_reply", "kept_bytes", "number", "peer")

    def __init__(
        self, number: int, at_ms: int, at_us: int, peer: Peer, is_reply: bool, frames: Any, kept_bytes: int
    ) -> None:
        self.number = number
        self.at_ms = at_ms  # by the cluster's clock
        self.at_us = at_us  # by a clock that measures
        self.peer = peer
        self.is_reply = is_reply
        self.frames: bytes | list[Kept] = frames
        self.kept_bytes = kept_bytes

    def number_of(self, index: int) -> int:
        """The number of one of its frames: they increase from frame to frame, and do not count."""
        return (self.number << FRAMES_BITS) + index

    def each(self) -> Iterator[Kept]:
        """Its frames in order."""
        frames = self.frames
        if isinstance(frames, bytes):
            position = 0
            while position < len(frames):
                stop = position + 4 + int.from_bytes(frames[position : position + 4], "big")
                yield frames[position:stop], stop - position
                position = stop
        else:
            yield from frames


class Ring:
    """The journal of one cluster, while it is on."""

    recording: Any = None  # where everything is kept as well

    def __init__(self, clock: Clock, limit_bytes: int = DEFAULT_BYTES) -> None:
        self._clock = clock
        self.limit_bytes = limit_bytes
        self.pieces: deque[Piece] = deque()
        self.kept_bytes = 0
        self.seen = 0  # the number of the next piece
        self.dropped = 0  # pieces that had to make room
        self.deleted_topics: dict[bytes, str] = {}  # id -> name, of the last ones
        self._peers: dict[Connection, Peer] = {}
        self._number = 0
        self.own_writes = 0  # so many were kept
        self._notes: dict[tuple[int, int], dict[str, str]] = {}

    def go_on(self, clock: Clock) -> Ring:
        """Go on in another life of the cluster, whose clock this is."""
        self._clock = clock
        self._peers.clear()
        return self

    def took(self, connection: Connection, data: bytes, stop: int) -> None:
        """A connection has received whole frames: data[:stop]."""
        peer = self._peers.get(connection) or self._meet(connection)
        peer.principal = connection.principal
        position = 0
        unpack, special = _SIZE_AND_API.unpack_from, _SPECIAL
        while position < stop:
            size, api_key = unpack(data, position)
            if size > FRAME_BYTES or api_key in special:
                self._add(peer, False, *self._cut(peer, data, stop))
                return
            position += 4 + size
        self._add(peer, False, data if stop == len(data) else data[:stop], stop)

    def _cut(self, peer: Peer, data: bytes, stop: int) -> tuple[list[Kept], int]:
        frames: list[Kept] = []
        position = kept_bytes = 0
        while position < stop:
            size, api_key, api_version, correlation_id = _REQUEST_HEAD.unpack_from(data, position)
            frame = data[position : position + 4 + min(size, FRAME_BYTES)]
            if api_key in SECRET_APIS:
                peer.secret_replies[correlation_id] = api_key, api_version
                frame = without_secrets(frame, api_key, api_version)
            elif api_key == _API_VERSIONS:
                peer.hello = frame
            frames.append((frame, 4 + size))
            kept_bytes += len(frame)
            position += 4 + size
        return frames, kept_bytes

    def sent(self, connection: Connection, data: bytes) -> None:
        """A connection sends whole replies. `data` may be empty: requests without a reply."""
        peer = self._peers.get(connection) or self._meet(connection)
        if len(data) <= FRAME_BYTES and not peer.secret_replies:
            self._add(peer, True, data, len(data))
            return
        frames: list[Kept] = []
        position = 0
        while position < len(data):
            size = 4 + int.from_bytes(data[position : position + 4], "big")
            frame = data[position : position + min(size, FRAME_BYTES)]
            secret = peer.secret_replies.pop(int.from_bytes(frame[4:8], "big", signed=True), None)
            frames.append((frame if secret is None else without_secrets(frame, *secret, is_reply=True), size))
            position += size
        self._add(peer, True, frames, sum(len(frame) for frame, _ in frames))

    def sent_in_parts(self, connection: Connection, replies: list[Reply]) -> None:
        """A connection sends replies, slices of files among them."""
        peer = self._peers.get(connection) or self._meet(connection)
        frames: list[Kept] = []
        for reply in replies:
            parts: Any = [reply] if isinstance(reply, bytes) else reply
            frame = parts[0] if isinstance(parts[0], bytes) else b""
            if len(frame) >= REPLY_HEAD_BYTES:
                frames.append((frame[:FRAME_BYTES], sum(map(len, parts))))
        self._add(peer, True, frames, sum(len(frame) for frame, _ in frames))

    def _add(self, peer: Peer, is_reply: bool, frames: bytes | list[Kept], kept_bytes: int) -> None:
        clock, pieces = self._clock, self.pieces
        kept_bytes += PIECE_BYTES
        at_ms, at_us = clock.now_ms(), clock.monotonic_us()
        pieces.append(Piece(self.seen, at_ms, at_us, peer, is_reply, frames, kept_bytes))
        self.seen += 1
        self.kept_bytes += kept_bytes
        while self.kept_bytes > self.limit_bytes:
            self.kept_bytes -= pieces.popleft().kept_bytes
            self.dropped += 1

    def _meet(self, connection: Connection) -> Peer:
        self._number += 1
        peer = self._peers[connection] = Peer(self._number, connection)
        return peer

    def topic_deleted(self, topic_id: bytes, name: str) -> None:
        """Remember its name: requests name it by its id."""
        if len(self.deleted_topics) >= MOST_NOTES:
            del self.deleted_topics[next(iter(self.deleted_topics))]
        self.deleted_topics[topic_id] = name

    def disconnected(self, connection: Connection) -> None:
        """A connection is closed; what it said stays."""
        self._peers.pop(connection, None)

    def note(self, connection: Connection, correlation_id: int, what: str, text: str) -> None:
        """Remember something about a request: the fault that acted on it, or why it was refused."""
        self._keep_note(self._peers.get(connection) or self._meet(connection), correlation_id, what, text)

    def _keep_note(self, peer: Peer, correlation_id: int, what: str, text: str) -> None:
        if len(self._notes) >= MOST_NOTES:
            del self._notes[next(iter(self._notes))]
        self._notes.setdefault((peer.number, correlation_id), {})[what] = text

    def met(self, connection: Connection, kind: str, sentence: str) -> None:
        """A client spoke another protocol ("TLS", "HTTP") and was told so. Its bytes, maybe secrets, are not kept."""
        peer = self._peers.get(connection) or self._meet(connection)
        self._add(peer, False, [(_REQUEST_HEAD.pack(8, STRANGERS[kind], 0, 0), 0)], 12)
        self._add(peer, True, [(bytes(REPLY_HEAD_BYTES), 0)], REPLY_HEAD_BYTES)
        self.note(connection, 0, "why", sentence)

    def wrote(self, node_id: int, request: bytes, reply: bytes, why: str | None) -> None:
        """The broker has sent itself a request, which is answered already. `why`: it was refused."""
        self._number += 1
        self.own_writes += 1
        peer = Peer(self._number, None, node_id)
        for frame, is_reply in ((request, False), (reply, True)):
            kept = frame[:FRAME_BYTES]
            self._add(peer, is_reply, [(kept, len(frame))], len(kept))
        if why is not None:
            self._keep_note(peer, int.from_bytes(reply[4:8], "big", signed=True), "why", why)

    def asked_registry(self, connection: Connection, request: bytes) -> None:
        """A client has asked the schema registry; `connection` stands for this request alone."""
        frame = _REQUEST_HEAD.pack(REGISTRY_HEAD_BYTES + len(request), REGISTRY, 0, 0) + request
        self._add(self._meet(connection), False, [(frame[:FRAME_BYTES], len(frame))], min(len(frame), FRAME_BYTES))

    def answered_registry(self, connection: Connection, reply: bytes, notes: dict[str, str]) -> None:
        """It was answered; `notes`: the fault that acted, and why it was refused."""
        peer = self._peers.get(connection) or self._meet(connection)
        frame = (4 + len(reply)).to_bytes(4, "big") + bytes(4) + reply
        self._add(peer, True, [(frame[:FRAME_BYTES], len(frame))], min(len(frame), FRAME_BYTES))
        for what, text in notes.items():
            self.note(connection, 0, what, text)
        self.disconnected(connection)

    def notes(self, peer: Peer, correlation_id: int) -> dict[str, str]:
        """What is remembered about a request."""
        return self._notes.get((peer.number, correlation_id), {})

    def clear(self) -> None:
        """Drop everything that is kept. Numbers go on."""
        self.pieces.clear()
        self._notes.clear()
        self.kept_bytes = self.dropped = 0
