"""A client's connection to the proxy: requests pass to its node as bytes, unless a fault or the journal looks at them.

Where nothing looks, only the head of a request is read, and its bytes go up as they come, whatever its size. Otherwise
it goes the way of any Connection: cut out, dispatched, its reply in a slot. The two ways change over at a request: what
is under way then gets slots (Link.take_slots), and as soon as no slot is left requests pass again.
"""

from __future__ import annotations

from struct import Struct
from typing import TYPE_CHECKING, Any, Final

from broker.proxy.kinds import FETCH, HAS_ADDRESSES, KNOWN_KEYS, PASSES, PRODUCE, is_answered
from broker.proxy.link import Link
from broker.proxy.linked import NO_SLOT, Linked
from protocol.errors import MalformedError

if TYPE_CHECKING:
    from collections.abc import Callable

    from broker.proxy.router import ProxyRouter
    from broker.wire.service import Service

WRITE_BUFFER_BYTES: Final = 1 << 18  # of replies that the client has not taken, above which its node waits
_HEAD: Final = Struct(">ihhi")  # size, api key, api version, correlation id


class ProxyConnection(Linked):
    """A Connection whose requests are served by a node elsewhere.

    open_link   (connection): connect to the node, then call `linked`, or `refuse`.
    """

    __slots__ = ("early", "head", "head_version", "is_head_answered", "link", "open_link", "passing", "router")

    def __init__(
        self,
        service: Service,
        node_id: int,
        listener: Any,
        router: ProxyRouter,
        open_link: Callable[[ProxyConnection], None],
    ) -> None:
        super().__init__(service, node_id, listener)
        self.router = router
        self.open_link = open_link
        self.link: Link | None = None
        self.early: list[bytes] = []  # what came before there was a link
        self.passing = 0  # bytes of the request that is passing
        self.head = b""  # of the last Produce, from its client id to its acks
        self.head_version = -1
        self.is_head_answered = True

    # -- the link

    def connection_made(self, transport: Any) -> None:
        """Accept a client, and reach its node."""
        super().connection_made(transport)
        transport.set_write_buffer_limits(WRITE_BUFFER_BYTES)
        if not self.closed:
            self.open_link(self)

    def linked(self, link: Link) -> None:
        """The node is reached."""
        self.link = link
        self.up = link.transport
        early, self.early = b"".join(self.early), []
        self.resume_soon()
        if early:
            self.data_received(early)

    def connection_lost(self, error: Exception | None) -> None:
        """The client is gone."""
        super().connection_lost(error)
        self.early.clear()
        if self.link is not None:
            self.link.close()

    # -- back-pressure

    def pause_writing(self) -> None:
        """The client reads more slowly than its node answers."""
        super().pause_writing()
        if self.link is not None:
            self.link.halt()

    def resume_writing(self) -> None:
        """The client has caught up."""
        super().resume_writing()
        if self.link is not None and not self.closed and self.unsent <= self.service.backlog_limit:
            self.link.go_on()

    def _resume(self) -> None:
        if self.is_node_full or self.link is None:
            self.resuming = False
            return
        super()._resume()
        if not self.write_paused and not self.closed and self.unsent <= self.service.backlog_limit:
            self.link.go_on()

    # -- requests

    def data_received(self, data: bytes) -> None:
        """Let the requests pass, or look at them."""
        link = self.link
        if link is None:
            self.early.append(data)
            self.halt()
            return
        if self.closed:
            return
        router = self.router
        if (
            router.is_careful
            or self.out
            or self.needed
            or self.service is not router.clients
            or router.clients.watchers
        ):
            self._look_at(data)
        else:
            self._pass(data)

    def _pass(self, data: bytes) -> None:
        """Requests pass, up to one that must be looked at."""
        position, end = 0, len(data)
        metrics = self.service.metrics
        metrics.bytes_in += end
        if self.passing:
            if self.passing >= end:
                self.passing -= end
                self.up.write(data)
                return
            position = self.passing
            self.passing = 0
        elif self.partial:
            data = self.partial + data
            self.partial = b""
            end = len(data)
        counts, flights, limit = metrics.counts, self.flights, self.service.request_limit
        kinds = self.router.kinds
        while end - position >= 12:
            size, api_key, version, correlation_id = _HEAD.unpack_from(data, position)
            stop = position + 4 + size
            kind = kinds.get((api_key << 16) + version, -1)
            if kind < 0:
                kind = self.router.learn(api_key, version)
            if not 8 <= size <= limit or kind > HAS_ADDRESSES:
                break
            if api_key == PRODUCE:
                begin = position + 12
                is_known = version == self.head_version and data[begin : begin + len(self.head)] == self.head
                if not is_known and not self._read_head(data, position, stop, version):
                    self._send_up(data, position, end)
                    return  # more of it will come
                if self.is_head_answered:
                    flights.append((correlation_id, kind, api_key, version, NO_SLOT))
            else:
                flights.append((correlation_id, kind, api_key, version, NO_SLOT))
            if 0 <= api_key < KNOWN_KEYS:
                counts[api_key] += 1
            if stop > end:
                self.passing = stop - end
                position = end
                break
            position = stop
        if end - position >= 12:
            if position:
                self.up.write(data[:position])
            self._look_at(data[position:])
        else:
            self._send_up(data, position, end)

    def _read_head(self, data: bytes, position: int, stop: int, version: int) -> bool:
        """Learn whether a Produce asks for an answer. False: too little of it is there to tell."""
        end, begin = len(data), position + 12
        try:
            answered, after = is_answered(data, position, stop if stop < end else end, version)
        except MalformedError:
            if stop > end:
                return False
            answered, after = True, begin
        self.head, self.head_version, self.is_head_answered = data[begin:after], version, answered
        return True

    def _send_up(self, data: bytes, position: int, end: int) -> None:
        """Send what passes, and keep what follows."""
        if position == end:
            self.up.write(data)
            return
        if position:
            self.up.write(data[:position])
        self.partial = data[position:]

    def _look_at(self, data: bytes) -> None:
        """Requests go the way of a Connection; the end of one that is passing still passes."""
        link = self.link
        assert link is not None
        if self.passing:
            here = data[: self.passing]
            self.passing -= len(here)
            self.up.write(here)
            data = data[len(here) :]
            if not data:
                return
        if not self.out:
            link.take_slots()
        super().data_received(data)

    # -- replies

    def replied(self, frame: bytes, slot: int, kind: int, api_key: int, version: int) -> None:
        """A whole reply has come, which has a slot or must be changed. Errors: MalformedError."""
        if kind != PASSES:
            frame = self.router.rewritten(self, frame, api_key, version)
        if api_key == FETCH and self.router.sessions is not None:
            self.router.sessions.replied(self, slot, frame, version)
        if slot == NO_SLOT:
            self.send(frame)
        else:
            self.filled(slot, frame)

    def filled(self, slot: int, reply: bytes) -> None:
        """A reply has come into its slot; when the client does not take them, no more are read."""
        super().filled(slot, reply)
        if self.unsent > self.service.backlog_limit and self.link is not None:
            self.halt()  # so that it is told when they have left
            self.link.halt()
