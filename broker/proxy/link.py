"""The connection to a node for one client: what comes back passes to the client as bytes where that will do.

Replies come in the order of the requests; Flights say what is to be done with each. A reply that passes is sent as its
bytes come, whatever its size. One that is looked at for addresses at its end (kinds.py) is collected if it is small,
and else sent as far as it has been walked through (walk.py): an address that stands there then is hidden from the
client, under a number of a tagged field that it does not know, for the size of the reply is out already.
"""

from __future__ import annotations

import logging
from struct import Struct
from typing import TYPE_CHECKING, Any, Final

from broker.proxy.kinds import ENDS_WITH_ADDRESSES, PASSES, PRODUCE
from broker.proxy.linked import NO_SLOT
from broker.proxy.walk import Walk
from protocol.errors import MalformedError

if TYPE_CHECKING:
    from broker.proxy.linked import Linked

log: Final = logging.getLogger("momus.proxy")

_REPLY_HEAD: Final = Struct(">ii")
COLLECTED_BYTES: Final = 1 << 16  # of a reply that is looked at, up to which it is collected
WRITE_BUFFER_BYTES: Final = 1 << 18  # of requests that the node has not taken, above which their client waits
MOST_TAGS_BYTES: Final = 1 << 20  # at the end of a reply
SMALL_BYTES: Final = 512  # of a reply whose shape is kept
MOST_SHAPES: Final = 1024
HIDDEN_TAG: Final = 0x7F


class Link:
    """A protocol object for asyncio's transports, as Connection is. It is given its client when it is made."""

    __slots__ = (
        "_ahead",
        "_held",
        "_left",
        "_parts",
        "_parts_size",
        "_slot",
        "_walk",
        "_wanted",
        "client",
        "closed",
        "is_halted",
        "partial",
        "transport",
    )

    def __init__(self, client: Linked) -> None:
        self.client = client
        self.transport: Any = None
        self.closed = False
        self.partial = b""  # the first bytes of a reply
        self.is_halted = False  # nothing is read until the client has taken more
        self._left = 0  # bytes of the reply that is passing
        self._slot = NO_SLOT  # of that reply, if later ones have slots
        self._walk: Walk | None = None  # through that reply
        self._ahead = 0  # bytes of it that are to come and need no look
        self._held = b""  # of that reply: what was walked to, and not sent
        self._parts: list[bytes] = []  # of a reply that is collected
        self._parts_size = self._wanted = 0

    # -- the transport's side

    def connection_made(self, transport: Any) -> None:
        """The node has been reached."""
        self.transport = transport
        transport.set_write_buffer_limits(WRITE_BUFFER_BYTES)

    def connection_lost(self, error: Exception | None) -> None:
        """The node has closed the connection: so its client's is closed, after what came before."""
        self.closed = True
        self.client.link_lost()

    def eof_received(self) -> bool:
        """As in Kafka, the end of the input is a disconnect."""
        return False

    def pause_writing(self) -> None:
        """The node reads more slowly than the client writes."""
        self.client.wait_for_node(is_full=True)

    def resume_writing(self) -> None:
        """It has caught up."""
        self.client.wait_for_node(is_full=False)

    def halt(self) -> None:
        """Read nothing more from the node for now."""
        if not self.is_halted and not self.closed:
            self.is_halted = True
            self.transport.pause_reading()

    def go_on(self) -> None:
        """Read again."""
        if self.is_halted and not self.closed:
            self.is_halted = False
            self.transport.resume_reading()

    def close(self) -> None:
        """The client is gone; what it has sent still goes to the node."""
        if not self.closed:
            self.closed = True
            (self.transport.abort if self.client.is_node_full else self.transport.close)()

    # -- slots

    def take_slots(self) -> None:
        """From now on replies may leave out of turn: what is under way gets slots before all later ones."""
        client = self.client
        if self._left or self._walk is not None:
            self._slot = client.new_slot()
        flights = list(client.flights)
        client.flights.clear()
        for correlation_id, kind, api_key, version, slot in flights:
            client.flights.append(
                (correlation_id, kind, api_key, version, client.new_slot() if slot == NO_SLOT else slot)
            )

    # -- replies

    def data_received(self, data: bytes) -> None:
        """Send on what passes, and hand over what is to be read."""
        if self.client.closed:
            return
        try:
            self._take(data)
        except MalformedError as error:
            node_id = self.client.node_id
            log.warning("a reply of node %d cannot be read: %s", node_id, error)
            self.client.refuse(f"a reply of node {node_id} cannot be read")

    def _take(self, data: bytes) -> None:
        """Join the bytes with those before them. Errors: MalformedError."""
        if self._wanted:
            self._parts.append(data)
            self._parts_size += len(data)
            if self._parts_size < self._wanted:
                return
            data = b"".join(self._parts)
            self._parts.clear()
            self._parts_size = self._wanted = 0
        elif self._left:
            data = self._pass_on(data)
            if not data:
                return
        elif self.partial:
            data = self.partial + data
            self.partial = b""
        self._replies(data)

    def _replies(self, data: bytes) -> None:
        client = self.client
        begun = position = 0  # from `begun` on it passes
        end = len(data)
        while end - position >= 8:
            size, correlation_id = _REPLY_HEAD.unpack_from(data, position)
            stop = position + 4 + size
            kind, api_key, version, slot = self._flight(correlation_id, size)
            if slot == NO_SLOT and kind == PASSES:
                self.client.flights.popleft()
                if stop > end:
                    self._left = stop - end
                    position = end
                    break
                position = stop
                continue
            if stop > end:
                if slot == NO_SLOT and kind == ENDS_WITH_ADDRESSES and size > COLLECTED_BYTES:
                    self.client.flights.popleft()
                    if position > begun:
                        client.send(data[begun:position])
                    self._left = stop - end
                    self._begin_walk(Walk(api_key, version), data, position)
                    return
                break
            if (
                slot == NO_SLOT
                and kind == ENDS_WITH_ADDRESSES
                and not SHAPES.has_addresses(data, position, stop, api_key, version)
            ):
                self.client.flights.popleft()
                position = stop
                continue
            self.client.flights.popleft()
            if position > begun:
                client.send(data[begun:position])
            client.replied(data[position:stop], slot, kind, api_key, version)
            if client.closed:
                return
            begun = position = stop
        if position > begun:
            client.send(data if begun == 0 and position == end else data[begun:position])
        if position < end:
            self._keep(data[position:])

    def _keep(self, data: bytes) -> None:
        """Keep the beginning of a reply that is not whole."""
        if len(data) >= 4 and (size := int.from_bytes(data[:4], "big")) > COLLECTED_BYTES:
            self._wanted, self._parts_size = size + 4, len(data)
            self._parts.append(data)
        else:
            self.partial = data

    def _flight(self, correlation_id: int, size: int) -> tuple[int, int, int, int]:
        """What the reply is to. Errors: MalformedError: it is to no request."""
        while self.client.flights:
            found, kind, api_key, version, slot = self.client.flights[0]
            if found == correlation_id and size >= 4:
                return kind, api_key, version, slot
            if api_key != PRODUCE:
                break
            self.client.flights.popleft()  # it was not answered
            if slot != NO_SLOT:
                self.client.fill(slot, b"")
        raise MalformedError(f"correlation id {correlation_id}, size {size}")

    def _pass_on(self, data: bytes) -> bytes:
        """More of the reply that passes. Returns what follows it."""
        here = data if len(data) <= self._left else data[: self._left]
        rest = b"" if len(data) <= self._left else data[self._left :]
        if self._walk is not None:
            self._left -= len(here)
            self._walk_more(here)
        else:
            self._left -= len(here)
            self.client.send(here)
        if not self._left:
            self._passed()
        return rest

    def _passed(self) -> None:
        """All of a reply that passed is sent."""
        self._walk = None
        if self._slot != NO_SLOT:
            slot, self._slot = self._slot, NO_SLOT
            self.client.filled(slot, b"")

    def _begin_walk(self, walk: Walk, data: bytes, position: int) -> None:
        """The first bytes of a reply that is walked through, from `position` on.

        Most often they are all of the data, which is sent as it is then: a quarter megabyte is not copied.
        """
        end = len(data)
        self._walk = walk
        walk.feed(data, position + 4, end)
        sent = min(position + walk.at, end)
        self._ahead = position + walk.at - sent
        self.client.send(data if position == 0 and sent == end else data[position:sent])
        self._hold(data[sent:])

    def _hold(self, data: bytes) -> None:
        self._held = data
        if len(data) > MOST_TAGS_BYTES:
            raise MalformedError("more than a megabyte that cannot be walked through")

    def _walk_more(self, data: bytes) -> None:
        """Send what has been walked through, and keep the rest; at the end of the reply, all of it."""
        walk = self._walk
        assert walk is not None
        if self._held:
            data = self._held + data
            self._held = b""
        ahead = self._ahead
        if not walk.is_at_end and len(data) > ahead:
            before = walk.at
            walk.feed(data, ahead, len(data))
            ahead += walk.at - before
        sent = min(ahead, len(data))
        self._ahead = ahead - sent
        if sent:
            self.client.send(data[:sent] if sent < len(data) else data)
        if sent < len(data):
            self._hold(data[sent:])
        if not self._left and self._held:
            held, self._held = self._held, b""
            if not walk.is_at_end:
                raise MalformedError("the reply ends before its last field")
            if walk.look(held, 0, len(held)):
                place = walk.found_at
                held = held[:place] + bytes((HIDDEN_TAG,)) + held[place + 1 :]
            self.client.send(held)


class Shapes:
    """Small replies that ended without addresses: which of their bytes a walk has read, and what these were.

    A reply of the same API, version and size that has the same bytes there is walked through in the same way, to the
    same end: so it need not be.
    """

    __slots__ = ("_known",)

    def __init__(self) -> None:
        self._known: dict[int, tuple[int, int]] = {}  # API, version and size -> mask of the bytes, their values

    def has_addresses(self, data: bytes, position: int, stop: int, api_key: int, version: int) -> bool:
        """Whether a whole reply ends with addresses. Errors: MalformedError."""
        size = stop - position
        key = (api_key << 40) + (version << 24) + size
        number = 0
        if size <= SMALL_BYTES:
            number = int.from_bytes(data[position:stop], "big")
            known = self._known.get(key)
            if known is not None and number & known[0] == known[1]:
                return False
        walk = Walk(api_key, version)
        if size <= SMALL_BYTES:
            walk.marks = []
        walk.feed(data, position + 4, stop)
        if not walk.is_at_end:
            raise MalformedError("the reply ends before its last field")
        if walk.look(data, position + walk.at, stop):
            return True
        marks = walk.marks
        if marks is not None and size <= SMALL_BYTES and walk.at == size - 1:
            mask = 0xFF
            for at in marks:
                mask |= 0xFF << (8 * (size - 1 - at))
            if len(self._known) >= MOST_SHAPES:
                self._known.clear()
            self._known[key] = mask, number & mask
        return False


SHAPES: Final = Shapes()  # a pure function's memory: what it holds is true of any cluster
