"""The faults of one cluster. While there are any, every request comes through `dispatch` here, and no shortcut is used.

The first fault in the list that matches a request and whose trigger fires acts on it; every fault that matches counts
the request. Times are by the cluster's clock.
"""

from __future__ import annotations

import logging
from functools import partial
from struct import Struct
from typing import TYPE_CHECKING, Any, Final

from broker.faults.disk import DiskFaults
from broker.faults.errors import FaultError, NotHereError
from broker.faults.fault import Fault, address_of, first_acting, parse
from broker.faults.gate import Gate
from broker.faults.kinds import MakeEvent, RequestKind
from broker.faults.lanes import Lane
from broker.faults.letters import letter_fault
from broker.faults.named import Met, named_in
from protocol.api import ApiKey
from protocol.errors import MalformedError
from protocol.header import decode_request_header
from storage.files.env import Rng

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from broker.coordinator.runtime import Shard
    from broker.coordinator.share.sessions import ShareSession
    from broker.faults.named import Named
    from broker.partitions.fetch_session import FetchSessions
    from broker.turn.turn import Turn
    from broker.wire.clients import Clients
    from broker.wire.connection import Connection
    from broker.wire.router import Router
    from protocol.errors import ErrorCode

log = logging.getLogger("momus.faults")

MOST_FAULTS: Final = 1000
_FRAME_HEAD: Final = Struct(">ihhi")


class _RequestMet:
    """One request, and the fault that acts on it: the protocol `Request` of kinds.py."""

    __slots__ = ("cut", "expect_reply", "keep", "refuse", "remember", "serve_twice")

    def __init__(self, table: FaultTable, fault: Fault, connection: Connection, frame: bytes) -> None:
        self.refuse = partial(table.refuse, fault, connection, frame)
        self.keep = partial(table.keep, fault, connection, frame)
        self.expect_reply = partial(table.expect_reply, fault, connection, frame)
        self.cut = partial(table.cut, fault, connection, frame)
        self.serve_twice = partial(table.serve_twice, fault, connection, frame)
        self.remember = partial(table.remember, fault, connection, frame)


class FaultTable:
    """All faults of a cluster."""

    def __init__(
        self,
        turn: Turn,
        clients: Clients,
        router: Router,
        metadata: Shard,
        sessions: FetchSessions,
        share_session: Callable[[int, str, str], ShareSession | None],
        root: str,
        numbers: Iterator[int],
        make_event: Callable[[Fault], None] | None = None,
    ) -> None:
        """`share_session`: finds one by node, group and member. `numbers`: for names, going on from earlier lives.

        `make_event`: makes the event of a fault, and releases it then; None: there are none here.
        """
        self._turn = turn
        self._clients = clients
        self._router = router
        self._metadata = metadata
        self._sessions = sessions
        self._share_session = share_session
        self._faults: dict[str, Fault] = {}
        self._lanes: dict[Connection, Lane] = {}
        self._gates: dict[Connection, Gate] = {}
        self._disk = DiskFaults(turn.env.files, root)
        self._numbers = numbers
        self._make_event = make_event
        self._held_calls = 0  # calls of `held`: they number what is held
        clients.gone.append(self.disconnected)

    # -- the list

    def add(self, data: Any) -> Fault:
        """Set a fault, which acts from the next request on. Errors: FaultError."""
        if len(self._faults) >= MOST_FAULTS:
            raise FaultError(f"{MOST_FAULTS} faults are set: remove some")
        fault = parse(data, f"fault-{next(self._numbers)}", Rng, lambda: self._turn.env.rng.getrandbits(32))
        if fault.name in self._faults:
            raise FaultError(f"a fault named {fault.name} is set already: remove it, or give another name")
        if isinstance(fault.kind, MakeEvent) and self._make_event is None:
            raise NotHereError("events happen inside a cluster, and this is not inside one")
        self._faults[fault.name] = fault
        if fault.is_of_disk:
            self._disk.set([each for each in self._faults.values() if each.is_of_disk])
        elif fault.meets_requests:
            self._install()
        return fault

    def go_on_from(self, ended: FaultTable) -> None:
        """Take the faults of a life that has ended, with all that they have counted. What they kept is cut off."""
        for fault in ended.all():
            fault.held = 0
            fault.kept.clear()
            self._faults[fault.name] = fault
        self._disk.set([each for each in self._faults.values() if each.is_of_disk])
        if any(each.meets_requests for each in self._faults.values()):
            self._install()

    def all(self) -> list[Fault]:
        """The faults, in the order in which they were set."""
        return list(self._faults.values())

    def find(self, name: str) -> Fault | None:
        """The fault of this name."""
        return self._faults.get(name)

    def remove(self, name: str) -> Fault:
        """Take a fault away, and let go what it keeps. Swallowed connections are closed. Errors: KeyError."""
        fault = self._faults.pop(name)
        if fault.is_of_disk:
            self._disk.set([each for each in self._faults.values() if each.is_of_disk])
        if not fault.meets_requests:
            return fault
        for connection, lane in list(self._lanes.items()):
            if lane.fault is fault and lane.is_swallowed:
                connection.refuse(f"{fault.name} is removed, and requests of this connection have been swallowed")
        self.release(fault)
        if not any(each.meets_requests for each in self._faults.values()):
            self._clients.dispatch = self._router.dispatch
            self._clients.disable_shortcuts("faults", False)
        return fault

    def release(self, fault: Fault, most: int | None = None) -> int:
        """Let go what a fault keeps now, the oldest first. Answers how many requests and replies.

        most   so many; None: all, and replies that are still to come to it.
        """
        if fault.kept:
            count = len(fault.kept) if most is None else min(most, len(fault.kept))
            for _ in range(count):
                fault.kept.popleft()()
            return count
        lanes = [  # in the order in which they were kept
            connection for connection, lane in self._lanes.items() if lane.fault is fault and not lane.is_swallowed
        ][:most]
        for connection in lanes:
            if connection in self._lanes:  # it may have been closed by what another one has done
                self._turn.begin()
                self._go_on(connection)
        replies = [(order, gate) for gate in self._gates.values() for order in gate.kept(fault)]
        replies.sort(key=lambda each: each[0])
        for order, gate in replies[:most]:
            gate.free(fault, order)
        if most is None:
            for gate in list(self._gates.values()):
                gate.free(fault)
        for connection in list(self._gates):
            self._forget_gate(connection)
        return len(lanes) + len(replies[:most])

    def of_registry(self, route: str, subject: str | None, principal: str) -> Fault | None:
        """The fault that acts on a request of the schema registry. All that match it count it."""
        return first_acting(each for each in self._faults.values() if each.matches_registry(route, subject, principal))

    # -- requests

    def _install(self) -> None:
        if self._clients.dispatch != self.dispatch:
            self._clients.disable_shortcuts("faults", True)
            self._clients.dispatch = self.dispatch

    def dispatch(
        self,
        connection: Connection,
        data: bytes,
        position: int,
        stop: int,
        api_key: int,
        api_version: int,
        correlation_id: int,
    ) -> None:
        """Serve one frame, as Router.dispatch does, unless a fault acts on it."""
        lane = self._lanes.get(connection)
        if lane is not None:
            if not lane.add(bytes(data[position:stop])):
                connection.refuse(f"too many requests wait behind one that {lane.fault.name} keeps")
            return
        fault = self._choose(connection, data, position, stop, api_key, api_version)
        if fault is None:
            self._router.dispatch(connection, data, position, stop, api_key, api_version, correlation_id)
            return
        fault.trigger.fired()
        assert isinstance(fault.kind, RequestKind)
        fault.kind.on_request(_RequestMet(self, fault, connection, bytes(data[position:stop])), fault.values)

    def _choose(
        self, connection: Connection, data: bytes, position: int, stop: int, api_key: int, api_version: int
    ) -> Fault | None:
        """The fault that acts on a frame. All that match it count it."""
        client_id, body_at = None, 0
        named: Named | None = None
        chosen = None
        for fault in self._faults.values():
            if not fault.meets_requests or (fault.apis and api_key not in fault.apis):
                continue
            if client_id is None:
                try:
                    header, body_at = decode_request_header(data[position + 4 : stop], 0)
                except MalformedError:
                    return None  # the router refuses it
                client_id = header.client_id or ""
            if not fault.matches_head(api_key, api_version, connection, client_id):
                continue
            if fault.needs_body():
                if named is None:
                    named = self._named(connection, data, position + 4 + body_at, stop, api_key, api_version)
                if named is None or not fault.matches_body(named):
                    continue
            if fault.acts() and chosen is None:
                chosen = fault
        return chosen

    def _named(
        self, connection: Connection, data: bytes, start: int, stop: int, api_key: int, api_version: int
    ) -> Named | None:
        """What a frame names; None if it cannot be read."""
        request = self._read(data, start, stop, api_key, api_version)
        if request is None:
            return None
        return self._with_session(named_in(request, self._topic_name), connection, request, api_key)

    def _read(self, data: bytes, start: int, stop: int, api_key: int, api_version: int) -> Any:
        """The decoded request; None: it cannot be read."""
        route = self._router.routes.get(api_key)
        if route is None or not route.min_version <= api_version <= route.max_version:
            return None
        try:
            route.load()
            request, _ = route.codec(route.request, api_version).decode(memoryview(data)[start:stop], 0)
        except (MalformedError, ImportError, OSError):
            return None  # the router refuses it
        return request

    def _with_session(self, named: Named, connection: Connection, request: Any, api_key: int) -> Named:
        if api_key == ApiKey.FETCH:
            named.add_fetched(self._sessions.get(request.session_id), self._topic_name)
        elif api_key == ApiKey.SHARE_FETCH and request.share_session_epoch > 0:
            session = self._share_session(connection.node_id, request.group_id, request.member_id)
            named.add_share_fetched(session, self._topic_name)
        return named

    def _topic_name(self, topic_id: bytes) -> str:
        return str(getattr(self._metadata.machine.topics_by_id.get(topic_id), "name", ""))

    def _serve(self, connection: Connection, frame: bytes) -> int:
        """Let the router serve a frame. Answers the slot of its reply."""
        slot = connection.next_slot
        _, api_key, api_version, correlation_id = _FRAME_HEAD.unpack_from(frame)
        self._router.dispatch(connection, frame, 0, len(frame), api_key, api_version, correlation_id)
        self._turn.durability.speaks(connection)
        return slot

    def _go_on(self, connection: Connection) -> None:
        """The first request of a lane takes effect now, and those behind it, until one is kept again."""
        lane = self._lanes.pop(connection)
        self._turn.timers.cancel(lane.timer)
        self.held(lane.fault, -1)
        frames = lane.frames
        if connection.closed:
            return
        self._serve(connection, frames.popleft())
        while frames and not connection.closed:
            frame = frames.popleft()
            _, api_key, api_version, correlation_id = _FRAME_HEAD.unpack_from(frame)
            self.dispatch(connection, frame, 0, len(frame), api_key, api_version, correlation_id)
        self._turn.durability.speaks(connection)

    def disconnected(self, connection: Connection) -> None:
        """A connection is closed: forget what was kept of it."""
        lane = self._lanes.pop(connection, None)
        if lane is not None:
            self._turn.timers.cancel(lane.timer)
            self.held(lane.fault, -1)
        gate = self._gates.pop(connection, None)
        if gate is not None:
            gate.close()
            connection.gate = None

    def letter_fault(self, group_id: str, queue: str, partition: int) -> ErrorCode | None:
        """The error that a write to a dead-letter queue meets; None: none."""
        return letter_fault(self._faults.values(), group_id, queue, partition)

    # -- what faults do to requests

    def refuse(self, fault: Fault, connection: Connection, frame: bytes) -> None:
        """Answer with the fault's error; the request takes no effect."""
        api_key = _FRAME_HEAD.unpack_from(frame)[1]
        try:
            reply = self._router.refusal(frame, fault.code)
        except (MalformedError, KeyError):
            self._serve(connection, frame)
            return
        self._acts(fault, connection, frame)
        if not reply:  # acks=0: so Kafka tells of an error where no answer is awaited
            connection.refuse(f"{fault.name} refuses a request that is not answered")
            return
        self._turn.metrics.counts[api_key] += 1
        slot = connection.next_slot
        connection.out.append(None)
        connection.fill(slot, reply)
        self._turn.durability.speaks(connection)

    def keep(self, fault: Fault, connection: Connection, frame: bytes, ms: int | None = None) -> None:
        """Hold the request before it takes effect. `ms`: so long; None: until it is released."""
        self._acts(fault, connection, frame)
        assert isinstance(fault.kind, RequestKind)
        lane = self._lanes[connection] = Lane(fault, frame, fault.kind.swallows)
        self.held(fault, 1)
        if ms is not None:
            due_ms = self._turn.steady_ms + ms
            lane.timer = self._turn.timers.at(due_ms, lambda due_ms, now_ms: self._go_on(connection))

    def expect_reply(self, fault: Fault, connection: Connection, frame: bytes) -> None:
        """Serve the request; the fault acts on its reply."""
        self._gate(connection).expect(connection.next_slot, fault, _FRAME_HEAD.unpack_from(frame)[3])
        self._serve(connection, frame)

    def cut(self, fault: Fault, connection: Connection, frame: bytes) -> None:
        """Close the connection; the request takes no effect."""
        self._acts(fault, connection, frame)
        connection.refuse(f"{fault.name} disconnects {address_of(connection)}")

    def serve_twice(self, fault: Fault, connection: Connection, frame: bytes) -> None:
        """Let the request take effect twice; the second reply is sent."""
        self._acts(fault, connection, frame)
        self._gate(connection).drop(connection.next_slot)
        self._serve(connection, frame)
        if not connection.closed:
            self._serve(connection, frame)

    def remember(self, fault: Fault, connection: Connection, frame: bytes) -> None:
        """Keep what the request names: an event is about it."""
        _, api_key, api_version, _ = _FRAME_HEAD.unpack_from(frame)
        body_at = 4 + decode_request_header(frame[4:], 0)[1]
        found = self._read(frame, body_at, len(frame), api_key, api_version)
        if found is not None:
            named = self._with_session(named_in(found, self._topic_name), connection, found, api_key)
            fault.met = Met(api_key, found, named)

    def _gate(self, connection: Connection) -> Gate:
        gate = self._gates.get(connection)
        if gate is None:
            gate = self._gates[connection] = connection.gate = Gate(connection, self._turn, self)
        return gate

    def _forget_gate(self, connection: Connection) -> None:
        if not self._gates[connection]:
            del self._gates[connection]
            connection.gate = None

    # -- counting

    def _acts(self, fault: Fault, connection: Connection, frame: bytes) -> None:
        self.acts(fault, connection, _FRAME_HEAD.unpack_from(frame)[3])

    def acts(self, fault: Fault, connection: Connection, correlation_id: int) -> None:
        """A fault does to a request, or to its reply, what it is for."""
        fault.hit()
        log.debug("%s (%s) acts", fault.name, fault.kind.name)
        if self._clients.journal is not None:
            self._clients.journal.note(connection, correlation_id, "fault", fault.name)
        if isinstance(fault.kind, MakeEvent):
            assert self._make_event is not None
            self._make_event(fault)

    def held(self, fault: Fault, by: int) -> int:
        """A fault keeps so many more (or fewer). Answers a number that is higher each time."""
        fault.held += by
        self._held_calls += 1
        return self._held_calls

    def random_byte(self, below: int) -> int:
        """Where a reply is damaged, if the fault does not say."""
        return self._turn.env.rng.randrange(below)
