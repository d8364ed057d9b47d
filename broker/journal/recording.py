"""A recording: all that clients and the control plane sent to a cluster, and all replies, whole and on disk.

What happened is a list of events, in the order in which the broker met it. The journal keeps the last requests for
people; a recording keeps everything, so that it can be played again (`momus replay`).

Format of an event, big-endian: u8 kind | u32 number of the connection | i32 broker | i64 Unix milliseconds by the
cluster's clock | u32 bytes that follow.

kind     what follows
TOOK     whole frames that a connection received
SENT     whole frames that it sent
CLOSED   nothing: the connection is closed
CALLED   JSON of a call of the control plane: method, path, body
FULL     nothing: the limit was reached, and nothing more is kept
WAITED   u64 milliseconds that the waits of Fetches have passed beyond the clock until now, while it stood
"""

from __future__ import annotations

import json
import logging
from struct import Struct
from typing import TYPE_CHECKING, Any, Final

from broker.journal.ring import Ring
from broker.journal.secrets import HIDDEN, SECRET_APIS, is_secret_setting, without_secrets

if TYPE_CHECKING:
    from broker.wire.connection import Connection
    from broker.wire.reply_stream import Reply
    from storage.files.env import Clock, File

logger = logging.getLogger("momus.recording")

TOOK, SENT, CLOSED, CALLED, FULL, WAITED = range(6)
EVENT: Final = Struct(">BIiqI")
MOST_BYTES: Final = 1 << 30
BUFFER_BYTES: Final = 1 << 18
_REQUEST_HEAD: Final = Struct(">ihhi")
# Calls that change nothing, or what a recording has of its own: each event says what time it was.
LOAD: Final = "/load"
_NOT_KEPT: Final = ("/wait", "/consume", "/journal", "/recording", "/fork", "/clock")


class Recording:
    """The events of one cluster, through resets and restores. `file`: empty, on the disk."""

    def __init__(self, file: File) -> None:
        self._file = file
        self._buffer: list[bytes] = []
        self._buffered = 0
        self._connections = 0
        self.is_full = False
        self.events = 0
        self._waited_ms = 0

    def new_connection(self) -> int:
        """A number for a connection."""
        self._connections += 1
        return self._connections

    def add(self, kind: int, number: int, broker: int, at_ms: int, data: bytes = b"") -> None:
        """Keep an event."""
        if self.is_full:
            return
        if self._file.size + self._buffered + len(data) > MOST_BYTES:
            self.is_full, kind, data = True, FULL, b""
        self.events += 1
        self._buffer += (EVENT.pack(kind, number, broker, at_ms, len(data)), data)
        self._buffered += EVENT.size + len(data)
        if self._buffered >= BUFFER_BYTES:
            self._flush()

    def waited(self, waited_ms: int, at_ms: int) -> None:
        """Keep how far the waits of Fetches are beyond the clock, where that has changed."""
        if waited_ms != self._waited_ms:
            self._waited_ms = waited_ms
            self.add(WAITED, 0, 0, at_ms, waited_ms.to_bytes(8, "big"))

    def called(self, method: str, path: str, body: dict[str, object], at_ms: int) -> None:
        """Keep a call of the control plane, without secrets, unless it changes nothing. `path`: within the cluster."""
        if method != "GET" and path != LOAD and not path.endswith(_NOT_KEPT):
            shown = {key: HIDDEN if is_secret_setting(key) else value for key, value in body.items()}
            text = json.dumps({"method": method, "path": path, "body": shown})
            self.add(CALLED, 0, 0, at_ms, text.encode())

    def loaded(self, body: dict[str, object], at_ms: int) -> None:
        """Keep a load: a call whose body holds secrets anywhere, so its handler says what may be kept."""
        self.add(CALLED, 0, 0, at_ms, json.dumps({"method": "POST", "path": LOAD, "body": body}).encode())

    def _flush(self) -> None:
        buffer, self._buffer, self._buffered = self._buffer, [], 0
        try:
            self._file.append([b"".join(buffer)])
        except OSError as error:  # clients are served all the same
            logger.error("cannot record any more: %s", error)
            self.is_full = True

    def read(self) -> bytes:
        """All events."""
        self._flush()
        return self._file.pread(self._file.size, 0)


class RecordingRing(Ring):
    """The journal of a life that is recorded."""

    def __init__(self, clock: Clock, limit_bytes: int, recording: Recording) -> None:
        super().__init__(clock, limit_bytes)
        self.recording = recording
        self._numbers: dict[Connection, int] = {}
        self._secret: dict[tuple[Connection, int], tuple[int, int]] = {}  # correlation id -> API key and version

    def _keep(self, kind: int, connection: Connection, data: bytes) -> None:
        number = self._numbers.get(connection)
        if number is None:
            number = self._numbers[connection] = self.recording.new_connection()
        clock = self._clock
        now_ms = clock.now_ms()
        steady_ms, wait_ms = clock.steady_ms(), clock.wait_ms()
        if clock.steady_ms() == steady_ms:  # else time has passed between the two, and the next event tells
            self.recording.waited(wait_ms - steady_ms, now_ms)
        self.recording.add(kind, number, connection.node_id, now_ms, data)

    def took(self, connection: Connection, data: bytes, stop: int) -> None:
        """A connection has received whole frames: data[:stop]."""
        frames = []
        position = 0
        while position < stop:
            size, api_key, api_version, correlation_id = _REQUEST_HEAD.unpack_from(data, position)
            frame = data[position : position + 4 + size]
            if api_key in SECRET_APIS:
                self._secret[connection, correlation_id] = api_key, api_version
                frame = without_secrets(frame, api_key, api_version)
            frames.append(frame)
            position += 4 + size
        self._keep(TOOK, connection, b"".join(frames))
        super().took(connection, data, stop)

    def sent(self, connection: Connection, data: bytes) -> None:
        """A connection sends whole replies."""
        self._keep_replies(connection, data)
        super().sent(connection, data)

    def sent_in_parts(self, connection: Connection, replies: list[Reply]) -> None:
        """A connection sends replies, slices of files among them."""
        whole = []
        for reply in replies:
            parts: Any = [reply] if isinstance(reply, bytes) else reply
            whole += [part if isinstance(part, bytes) else part.read() for part in parts]
        self._keep_replies(connection, b"".join(whole))
        super().sent_in_parts(connection, replies)

    def _keep_replies(self, connection: Connection, data: bytes) -> None:
        if self._secret:
            frames, position = [], 0
            while position < len(data):
                size = 4 + int.from_bytes(data[position : position + 4], "big")
                frame = data[position : position + size]
                key = connection, int.from_bytes(frame[4:8], "big", signed=True)
                secret = self._secret.pop(key, None)
                frames.append(frame if secret is None else without_secrets(frame, *secret, is_reply=True))
                position += size
            data = b"".join(frames)
        if data:
            self._keep(SENT, connection, data)

    def disconnected(self, connection: Connection) -> None:
        """A connection is closed; what it said stays."""
        if connection in self._numbers:
            self._keep(CLOSED, connection, b"")
            del self._numbers[connection]
        super().disconnected(connection)
