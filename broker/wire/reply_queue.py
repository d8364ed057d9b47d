"""The replies of one connection on their way out: in the order of the requests, at the client's speed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from broker.wire.reply_stream import FULL_BYTES, Reply, ReplyStream, size_of

if TYPE_CHECKING:
    from broker.wire.service import Service

SPACE_S: Final = 0.001  # between replies behind one that was waited for; timers of the loop have whole milliseconds
MOST_SPACED: Final = 16  # a client that has sent more at once takes them in one piece
SMALL_BYTES: Final = 4096  # a connection that holds less is not counted


class ReplyQueue:
    """The half of a Connection that sends.

    Every request takes a slot in `out`; slots count up from 0 over the connection's life. Replies leave in this order.
    """

    __slots__ = (
        "asleep",
        "awaits_sync",
        "base",
        "closed",
        "gate",
        "is_spaced",
        "last_active_ms",
        "late_slot",
        "out",
        "read_paused",
        "service",
        "stream",
        "transport",
        "turn",
        "unsent",
        "weight",
        "write_paused",
    )

    def __init__(self, service: Service) -> None:
        self.service = service
        self.turn = service.turn
        self.transport: Any = None
        self.closed = False
        self.out: list[Reply] = []
        self.base = 0  # the slot of out[0]
        self.unsent = 0  # bytes of the replies in out
        self.asleep = False  # its broker is paused: nothing is read, and nothing sent
        self.write_paused = False  # the transport asked to stop writing
        self.read_paused = False  # nothing is read from the client until it has read its replies
        self.weight = 0  # bytes it holds, as told to the backlog
        self.last_active_ms = 0  # it was read from, or answered late; steady
        self.late_slot = -1  # of the newest reply that was waited for, as to a Fetch from an empty partition
        self.is_spaced = False  # the next of the replies behind it leaves a moment later
        self.awaits_sync = False  # a reply depends on unsynced data: only `release` sends
        self.stream = ReplyStream(service.metrics)
        self.gate: Any = None  # the faults that act on its replies

    # -- done by the half that reads, in connection.py

    def resume_soon(self) -> None:
        """Read on in the next turn, if unsent replies had stopped the reading."""
        raise NotImplementedError

    def weigh(self, unsent: int = -1, *, progress: bool = True) -> None:
        """Tell the backlog how much memory the client holds."""
        raise NotImplementedError

    def halt(self) -> None:
        """Read nothing from the client for now."""
        self.read_paused = True
        self.transport.pause_reading()

    def pause_writing(self) -> None:
        """The client reads more slowly than the broker writes: read nothing from it until it has caught up."""
        self.write_paused = True
        self.halt()
        self.weigh()

    # -- replies

    @property
    def next_slot(self) -> int:
        """The slot the next request will take."""
        return self.base + len(self.out)

    def fill(self, slot: int, reply: Reply) -> None:
        """Put a reply into the slot its request took."""
        if not self.closed:
            self.out[slot - self.base] = reply
            self.last_active_ms = self.turn.steady_ms
            self.unsent += len(reply) if isinstance(reply, bytes) else size_of(reply)

    def add(self, reply: bytes) -> int:
        """Append a finished reply. Returns its slot."""
        self.out.append(reply)
        self.unsent += len(reply)
        return self.base + len(self.out) - 1

    def drain(self) -> None:
        """Send the finished replies in order, unless one depends on unsynced data."""
        out, service = self.out, self.service
        reply = out[0] if len(out) == 1 else None
        if self.awaits_sync or self.closed:
            return
        # while an earlier reply is being sent in pieces, reading is paused
        if (
            not isinstance(reply, bytes)
            or not reply
            or self.gate is not None
            or service.watchers
            or self.unsent > FULL_BYTES
            or self.read_paused
            or self.weight
        ):
            self.release(self.base + len(out))
            return
        out.clear()  # the usual case of `release`
        self.base += 1
        self.unsent = 0
        service.metrics.bytes_out += len(reply)
        self.transport.write(reply)

    def _until_late(self, ready: int) -> int:
        """How many of the ready replies leave now: those up to one that was waited for.

        Those behind it follow one after the other, as Kafka reads a request when the one before it is answered.

        librdkafka needs that: FindCoordinator waits behind its Fetch, and where several answers came in one piece, a
        commit whose connection had been cut was tried again in vain for 17 to 45 s (1.1 s with a moment between them).
        """
        count = self.late_slot - self.base + 1
        if count >= ready or ready - count > MOST_SPACED:
            return ready
        self.late_slot += 1
        self.is_spaced = True
        self.service.later(SPACE_S, self._go_on)
        return count

    def _go_on(self) -> None:
        """Send the next of them."""
        self.is_spaced = False
        if not self.closed:
            self.turn.begin()
            self.turn.durability.speaks(self)

    def release(self, limit_slot: int) -> None:
        """Send the finished replies below a slot, in order, up to the first unfinished one."""
        out = self.out
        if (ready := limit_slot - self.base) <= 0 or self.closed or self.asleep or self.is_spaced:
            return
        if ready < len(out) or None in out:
            ready = next((i for i in range(min(ready, len(out))) if out[i] is None), ready)
            if not ready:
                self.weigh(progress=False)
                return
        if self.gate is not None and not (ready := self.gate.review(self, ready)):
            return
        if ready > 1 and self.late_slot >= self.base:
            ready = self._until_late(ready)
        sent = out[:ready]
        del out[:ready]
        self.base += ready
        try:
            data = b"".join(sent)  # type: ignore[arg-type]  # slices of files among them raise
        except TypeError:
            for watcher in self.service.watchers:
                watcher.sent_in_parts(self, sent)
            self.stream.add(sent)
            self.stream.pump(self)
        else:
            for watcher in self.service.watchers:
                watcher.sent(self, data)
            if self.stream or len(data) > FULL_BYTES:
                self.stream.add((data,))
                self.stream.pump(self)
            elif data:
                self.service.metrics.bytes_out += len(data)
                self.transport.write(data)
        self.unsent = sum(map(size_of, out)) if out else 0
        if self.read_paused:
            self.resume_soon()
        if self.weight or self.unsent > SMALL_BYTES:
            self.weigh()
