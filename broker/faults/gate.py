"""What faults do to replies that are ready to leave: keep them, drop them, damage them, or cut the connection.

A connection asks its Gate in `release`, when a reply is durable and all replies before it have left. So a reply that
is held here is one whose request has taken effect.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

from broker.faults.kinds import HEAD_BYTES, ChangesReply, CutsReply, KeepsReply, ReplyKind

if TYPE_CHECKING:
    from broker.faults.fault import Fault
    from broker.turn.turn import Turn
    from broker.wire.connection import Connection


class _Reply:
    """One reply that a fault acts on."""

    __slots__ = ("correlation_id", "fault", "is_free", "is_seen", "order", "timer")

    def __init__(self, fault: Fault | None, correlation_id: int = 0) -> None:
        self.correlation_id = correlation_id
        self.fault = fault  # None: the reply to the first copy of a doubled request, which is dropped
        self.is_seen = False
        self.order = 0  # which of all that were held it is, from 1; 0: it has not come
        self.is_free = False
        self.timer = 0


class Watcher(Protocol):
    """Who is told that a fault acts, that it keeps something, or keeps it no more."""

    def acts(self, fault: Fault, connection: Connection, correlation_id: int) -> None:
        """It does to a reply what it is for."""

    def held(self, fault: Fault, by: int) -> int:
        """It keeps so many more (or fewer). Answers a number that is higher each time."""

    def random_byte(self, below: int) -> int:
        """Where a reply is damaged, if the fault does not say."""


class Gate:
    """The faults of one connection's replies, by slot."""

    __slots__ = ("_connection", "_replies", "_turn", "_watcher")

    def __init__(self, connection: Connection, turn: Turn, watcher: Watcher) -> None:
        self._connection = connection
        self._turn = turn
        self._watcher = watcher
        self._replies: dict[int, _Reply] = {}

    def __bool__(self) -> bool:
        return bool(self._replies)

    def drop(self, slot: int) -> None:
        """The reply in this slot is not sent."""
        self._replies[slot] = _Reply(None)

    def expect(self, slot: int, fault: Fault, correlation_id: int) -> None:
        """A fault is to act on the reply in this slot."""
        self._replies[slot] = _Reply(fault, correlation_id)

    def kept(self, fault: Fault) -> list[int]:
        """The order of each reply that the fault keeps now."""
        mine = (reply for reply in self._replies.values() if reply.fault is fault)
        return [reply.order for reply in mine if reply.is_seen and not reply.is_free]

    def free(self, fault: Fault, order: int | None = None) -> None:
        """Let go what the fault keeps: the reply of this order; None: all, and those that are still to come."""
        kept = False
        for reply in list(self._replies.values()):
            if reply.fault is fault and not reply.is_free and (order is None or reply.order == order):
                kept |= reply.is_seen
                self._let_go(reply)
        if kept:
            self._turn.begin()
            self._connection.drain()

    def close(self) -> None:
        """The connection is closed."""
        for reply in self._replies.values():
            if reply.fault is not None and reply.is_seen and not reply.is_free:
                self._let_go(reply)
        self._replies.clear()

    def review(self, connection: Connection, ready: int) -> int:
        """How many of the ready replies may leave now. Called by Connection.release."""
        base, out = connection.base, connection.out
        for index in range(ready):
            reply = self._replies.get(base + index)
            if reply is None:
                continue
            fault = reply.fault
            if fault is None:
                out[index] = b""
            elif reply.is_free:
                pass
            elif not self._passes(fault, reply, out, index):
                if index:  # those before it leave first
                    self._turn.call_soon(connection.drain)
                    return index
                return self._stop(fault, reply, out[0])
            del self._replies[base + index]
        return ready

    def _passes(self, fault: Fault, reply: _Reply, out: Any, index: int) -> bool:
        """Whether the reply may leave with those before it: the fault only changes it, or has nothing to act on."""
        kind = fault.kind
        assert isinstance(kind, ReplyKind)
        if kind.needs_bytes and _size(out[index]) <= HEAD_BYTES:
            return True  # a Produce with acks=0, for example
        if isinstance(kind, ChangesReply):
            self._watcher.acts(fault, self._connection, reply.correlation_id)
            out[index] = kind.changed(fault.values, whole(out[index]), self._watcher.random_byte)
            return True
        return False

    def _stop(self, fault: Fault, reply: _Reply, content: Any) -> int:
        """Keep the first reply, or close the connection instead. Returns 0: no reply may leave."""
        kind = fault.kind
        if isinstance(kind, CutsReply):
            self._watcher.acts(fault, self._connection, reply.correlation_id)
            self._cut(kind.last_bytes(fault.values, whole(content)))
        elif not reply.is_seen:
            assert isinstance(kind, KeepsReply)
            self._keep(reply, fault, kind, content)
        return 0

    def _keep(self, reply: _Reply, fault: Fault, kind: KeepsReply, content: Any) -> None:
        """The reply has come to the gate: it stays until released, or for a time."""
        reply.is_seen = True
        self._watcher.acts(fault, self._connection, reply.correlation_id)
        reply.order = self._watcher.held(fault, 1)
        ms = kind.keep_ms(fault.values, lambda: whole(content))
        if ms is not None:
            due_ms = self._turn.steady_ms + ms
            reply.timer = self._turn.timers.at(due_ms, lambda due_ms, now_ms: self._time_is_up(reply))

    def _time_is_up(self, reply: _Reply) -> None:
        self._let_go(reply)
        self._connection.drain()

    def _let_go(self, reply: _Reply) -> None:
        reply.is_free = True
        self._turn.timers.cancel(reply.timer)
        if reply.is_seen and reply.fault is not None:
            self._watcher.held(reply.fault, -1)

    def _cut(self, last: bytes) -> None:
        """Close the connection, after these bytes."""
        connection = self._connection
        connection.closed = True
        connection.out.clear()
        if last:
            connection.transport.write(last)
        connection.transport.close()


def _size(reply: Any) -> int:
    return len(reply) if isinstance(reply, bytes) else sum(map(len, reply))


def whole(reply: Any) -> bytes:
    """A reply in one piece; slices of files are read."""
    if isinstance(reply, bytes):
        return reply
    return b"".join([part if isinstance(part, bytes) else part.read() for part in reply])
