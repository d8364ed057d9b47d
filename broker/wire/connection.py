"""One client connection: reads requests, cuts them from bytes and hands them on. Its replies are in reply_queue.py."""

from __future__ import annotations

import logging
from struct import Struct
from typing import TYPE_CHECKING, Any, Final

from broker.config.addresses import client_host
from broker.wire.reply_queue import SMALL_BYTES, ReplyQueue
from broker.wire.reply_stream import PRESSED_BYTES
from broker.wire.route import LARGE_REPLIES
from broker.wire.strangers import SMALLEST_SIZE, send_away

if TYPE_CHECKING:
    from broker.wire.service import Service

log: Final = logging.getLogger("momus.connection")

FRAME_HEAD: Final = Struct(">ihhi")  # size, api key, api version, correlation id
WRITE_BUFFER_BYTES: Final = 1 << 15  # unsent bytes in the transport above which a client is slow
BACKLOG_SLOTS: Final = 4096  # unsent replies above which a connection's requests wait
UNREAD_BYTES: Final = 1 << 62  # more than any frame has
SLICE_MS: Final = 5  # of work for one connection before others are served
LARGE_BYTES: Final = 4096  # of a request that may be put off
LARGE_INPUT_BYTES: Final = 1 << 16  # whose memory is kept for the next


class Connection(ReplyQueue):
    """A protocol object for asyncio's transports. Its only I/O is through the transport that it is given."""

    __slots__ = (
        "__weakref__",
        "client",
        "fetch_waits",
        "forms",
        "generation",
        "guard",
        "host",
        "learned",
        "listener",
        "local_host",
        "needed",
        "node_id",
        "parked",
        "partial",
        "parts",
        "parts_size",
        "principal",
        "resuming",
        "throttled",
    )

    def __init__(self, service: Service, node_id: int, listener: Any) -> None:
        super().__init__(service)
        self.node_id = node_id
        self.listener = listener
        self.host = self.client = ""
        self.local_host = ""  # the broker's address that the client connected to
        self.throttled = False  # by a quota
        self.resuming = False  # _resume is called in the next turn
        self.partial = b""  # an incomplete frame's first bytes, or whole frames that wait
        self.parts: list[bytes] = []  # the pieces of a large incomplete frame
        self.parts_size = self.needed = 0  # needed: bytes of the incomplete frame, size field included
        self.learned: dict[int, Any] = {}  # by API: what is kept of earlier requests for their repeats
        self.forms: dict[bytes, Any] = {}  # the forms in it, by the bytes that name them
        self.generation = 0  # of Learned: `learned` is valid while it is the same
        self.fetch_waits: dict[int, Any] | None = None  # Fetches with a timer: parked, or answered a moment ago
        self.parked: set[int] = set()  # slots of requests that wait in the broker
        self.guard: Any = None  # of a SASL listener: what serves it while it is not authenticated
        self.principal = "User:ANONYMOUS"

    # -- the transport's side

    def connection_made(self, transport: Any) -> None:
        """Accept a new connection, or refuse it when there are too many."""
        self.transport = transport
        transport.set_write_buffer_limits(WRITE_BUFFER_BYTES)
        self.host = client_host(transport.get_extra_info("peername"))
        self.local_host = (transport.get_extra_info("sockname") or ("",))[0]
        self.service.connected(self)

    def connection_lost(self, error: Exception | None) -> None:
        """The connection is closed: drop what waits for it."""
        self.closed, self.partial = True, b""
        self.parts.clear()
        self.stream.clear()
        self.service.backlog.weigh(self, 0, 0, progress=True)
        self.service.disconnected(self)

    def eof_received(self) -> bool:
        """Close the connection: as in Kafka, the end of the client's input is a disconnect."""
        return False

    def resume_writing(self) -> None:
        """The client has caught up."""
        self.write_paused = False
        self.last_active_ms = self.turn.env.clock.steady_ms()
        if not self.closed:
            self._resume()
            self.weigh()

    def throttle(self, is_throttled: bool) -> None:
        """Read nothing while the client has used up its quota."""
        self.throttled = is_throttled
        if is_throttled:
            self.halt()
        elif not self.closed:
            self.resume_soon()

    def sleep(self, *, is_new: bool = False) -> None:
        """Read nothing and send nothing, as a process that is stopped: what is answered meanwhile is kept.

        is_new   it has just been made: uvloop begins to read after that, whatever is said here.
        """
        self.asleep = True
        if is_new:
            self.needed = UNREAD_BYTES  # what comes before reading is paused is kept, as of a frame that is not whole
            self.turn.call_soon(self._halt_if_asleep)
        self.halt()

    def _halt_if_asleep(self) -> None:
        if self.asleep and not self.closed:
            self.halt()

    def wake(self) -> None:
        """Go on: send what was answered, and read on."""
        self.asleep = False
        self.last_active_ms = self.turn.begin()
        if self.needed == UNREAD_BYTES:
            self.partial = b"".join(self.parts)
            self.parts.clear()
            self.parts_size = self.needed = 0
        if not self.closed:
            self.turn.durability.speaks(self)
            self.resume_soon()

    def resume_soon(self) -> None:
        """Continue in the next turn, after other connections."""
        if not self.resuming:
            self.resuming = True
            self.turn.call_soon(self._resume)

    def _resume(self) -> None:
        """Send more, then read from the client again unless too many replies wait for it."""
        self.resuming = False
        if self.asleep:
            return
        if self.stream and not self.write_paused and not self.closed:
            self.stream.pump(self)
        behind = self.unsent > self.service.backlog_limit or len(self.out) > BACKLOG_SLOTS
        if not (self.write_paused or self.stream or self.closed or behind or self.throttled):
            self.read_paused = False
            self.transport.resume_reading()
            if len(self.partial) >= 12 and not self.needed:  # frames that had to wait until replies were sent
                self.turn.begin()
                data, self.partial = self.partial, b""
                self._process(data)

    def weigh(self, unsent: int = -1, *, progress: bool = True) -> None:
        """Tell the backlog how much memory the client holds. `unsent`: bytes of replies, without those of this turn."""
        size = len(self.partial) + self.parts_size + self.stream.held_bytes + (self.unsent if unsent < 0 else unsent)
        if self.write_paused:
            size += self.transport.get_write_buffer_size()
        size = size if size > SMALL_BYTES else 0
        if (size or self.weight) and not self.closed:
            self.weight = size
            self.service.backlog.weigh(self, size, self.turn.steady_ms, progress=progress)

    def data_received(self, data: bytes) -> None:
        """Join the bytes with an incomplete frame before them, and process the frames."""
        if self.closed:  # refused; the transport may still deliver
            return
        self.last_active_ms = self.turn.begin()
        self.service.metrics.bytes_in += len(data)
        if self.needed:
            self.parts.append(data)
            self.parts_size += len(data)
            if self.parts_size < self.needed:
                self.weigh()
                return
            data = b"".join(self.parts)
            self.parts.clear()
            self.parts_size = self.needed = 0
        elif self.partial:
            data = self.partial + data
            self.partial = b""
        elif self._serve_alone(data):
            return
        self._process(data)

    def _serve_alone(self, data: bytes) -> bool:
        """Serve the usual input, one whole frame that is not large; it needs less care than other input (False)."""
        service, turn, before, stop = self.service, self.turn, self.unsent, len(data)
        if service.watchers:
            return False
        if self.generation != turn.learned.generation:
            self.forget(turn.learned.generation)
        form = self.forms.get(data[:8]) or self.forms.get(data[4:8])
        if form is None:
            return self._dispatch_alone(data)
        shortcut, reply = service.shortcuts.get(form.api_key), None
        if shortcut is not None and (
            stop == form.frame_bytes or (data[:4] == (stop - 4).to_bytes(4, "big") and stop <= service.request_limit)
        ):
            reply = shortcut(form, self, data, 0, stop)
        if reply is None:
            return self._dispatch_alone(data)
        service.metrics.counts[form.api_key] += 1
        if reply:
            self.out.append(reply)
            self.unsent = unsent = before + len(reply)
            turn.durability.speaking.add(self)  # as `speaks`, without the call
            if unsent > SMALL_BYTES or self.weight:
                self._answered(before)
        elif self.out:
            self._added(before)
        return True

    def _dispatch_alone(self, data: bytes) -> bool:
        """Have the general handler serve one whole frame; False: it is another input, or large."""
        service, stop, before = self.service, len(data), self.unsent
        if not 12 <= stop <= LARGE_BYTES:
            return False
        size, api_key, api_version, correlation_id = FRAME_HEAD.unpack_from(data)
        if size + 4 != stop or size > service.request_limit:
            return False
        if api_key in LARGE_REPLIES and self._must_wait():
            self._keep(data, 0, stop)
        else:
            service.dispatch(self, data, 0, stop, api_key, api_version, correlation_id)
            if self.out and not self.closed:
                self._added(before)
        return True

    def _added(self, before: int) -> None:
        """Have the reply sent at the end of the turn, if it is there; the request may be parked."""
        if self.out[-1] is not None:
            self.turn.durability.speaking.add(self)
        if self.unsent > SMALL_BYTES or self.weight or len(self.out) > BACKLOG_SLOTS:
            self._answered(before)

    def _answered(self, before: int) -> None:
        """Weigh the replies, and read no more if too many wait. `before`: bytes of those that waited already."""
        out, service, size = self.out, self.service, self.unsent - before
        if size > SMALL_BYTES:
            self.turn.answered_bytes += size
        if self.unsent > PRESSED_BYTES or len(out) > BACKLOG_SLOTS:  # no limit is lower
            most = PRESSED_BYTES if service.backlog.is_pressed else service.backlog_limit
            if self.unsent > most or len(out) > BACKLOG_SLOTS:
                self.halt()
        self.weigh(before)

    def _process(self, data: bytes) -> None:
        service, turn, out = self.service, self.turn, self.out
        shortcuts, learned = service.shortcuts, turn.learned
        counts, limit = service.metrics.counts, service.request_limit
        most = PRESSED_BYTES if service.backlog.is_pressed else service.backlog_limit
        unsent_before, answered = self.unsent, 0  # answered: bytes of shortcuts' replies, added to unsent at the end
        monotonic_ms = turn.env.clock.monotonic_ms
        stop_ms, is_later = 0, False  # when other connections are served; a single frame is not timed
        position, end, unpack = 0, len(data), FRAME_HEAD.unpack_from
        if end > LARGE_INPUT_BYTES:  # many requests together
            service.backlog.large_request()
        while end - position >= 12:
            size, api_key, api_version, correlation_id = unpack(data, position)
            stop = position + 4 + size
            if stop > end or not 8 <= size <= limit:
                break
            stop_ms = stop_ms or (0 if stop == end else monotonic_ms() + SLICE_MS)
            if self.generation != learned.generation:
                self.forget(learned.generation)
            form = self.forms.get(data[position : position + 8]) or self.forms.get(data[position + 4 : position + 8])
            shortcut = None if form is None else shortcuts.get(api_key)
            reply = None if shortcut is None else shortcut(form, self, data, position, stop)
            if reply:
                counts[api_key] += 1
                out.append(reply)
                answered += len(reply)
                position = stop
                if self.unsent + answered > most:  # a small request may have a large reply
                    break
                continue
            if reply is None:
                if (size > LARGE_BYTES or api_key in LARGE_REPLIES) and self._must_wait():
                    break
                service.dispatch(self, data, position, stop, api_key, api_version, correlation_id)
                if self.closed:
                    self._taken(data, stop, stop, False)
                    return
            else:
                counts[api_key] += 1
            position = stop
            # an authentication or a first quota replaces the shortcuts: what follows such a frame is for the next turn
            is_later = (stop_ms != 0 and monotonic_ms() >= stop_ms) or self.service.shortcuts is not shortcuts
            if is_later or self.throttled or self.unsent + answered > most or len(out) > BACKLOG_SLOTS:
                break
        self.unsent += answered
        if position < end or service.watchers:
            self._taken(data, position, end, is_later)
        if out:
            turn.durability.speaks(self)
        self._answered(unsent_before)

    def _must_wait(self) -> bool:
        """Whether a large request is put off to a later turn, because others have had this one's time for such."""
        if not self.turn.is_full():
            return False
        self.halt()
        self.resuming = True
        self.turn.put_off(self._resume)
        return True

    def _taken(self, data: bytes, position: int, end: int, is_later: bool) -> None:
        """Show the frames that were served to those who watch, and keep what follows them."""
        if position:
            for watcher in self.service.watchers:
                watcher.took(self, data, position)
        if position < end:
            self._keep(data, position, end)
            if is_later:
                self.halt()
                self.resume_soon()

    def forget(self, generation: int) -> None:
        """Drop the requests that are kept for their repeats: what they rely on may have changed."""
        self.generation = generation
        self.learned.clear()
        self.forms.clear()

    def _keep(self, data: bytes, position: int, end: int) -> None:
        """Keep an incomplete frame, or frames that must wait."""
        left = end - position
        if left >= 4 and not self.throttled:  # what a throttled client sent is looked at when it is read from again
            size = int.from_bytes(data[position : position + 4], "big", signed=True)
            if size >= SMALLEST_SIZE and not self.base and send_away(self, data, position):
                return
            most = self.service.request_limit
            if not 8 <= size <= most:
                self.refuse(f"frame of {size} bytes; 8 to {most} (socket.request.max.bytes) are accepted")
                return
            if left < size + 4 and size > LARGE_INPUT_BYTES:
                self.service.backlog.large_request()
                self.needed, self.parts_size = size + 4, left
                self.parts.append(data[position:end])
                return
        self.partial = data[position:end]

    def refuse(self, why: str) -> None:
        """Close the connection and log why. For requests that cannot be answered."""
        if not self.closed:
            log.warning("closing connection %s (client %r): %s", self.host, self.client, why)
            self.closed = True
            self.out.clear()
            self.transport.abort()
