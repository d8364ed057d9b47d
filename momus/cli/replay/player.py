"""Goes through a recorded run: sends its requests in their order, and compares each answer where it came.

Theory of operation. An event is played at its recorded time and in its recorded place. Requests of one connection go
over one connection. A request is read by the broker before the next one is sent on another connection. An answer is
waited for where the recording has it, so what waited then (a Fetch, a JoinGroup) waits now, and is woken by the same
request.
"""

from __future__ import annotations

import json
import select
import socket
import time
from collections import deque
from collections.abc import Iterable
from typing import Any, NamedTuple, Protocol

from broker.journal.secrets import SECRET_APIS, without_secrets
from momus.cli.replay.bundle import CALLED, CLOSED, FULL, SENT, TOOK, WAITED, Event, frames
from momus.cli.replay.mapping import Difference, Mapping
from momus.cli.replay.targets import read_frame
from protocol.api import ApiKey, api_label, request_class, response_class
from protocol.codegen import codec
from protocol.errors import MalformedError
from protocol.header import decode_request_header, decode_response_header, encode_request_header

SASL = {int(ApiKey.SASL_HANDSHAKE), int(ApiKey.SASL_AUTHENTICATE)}  # secrets are not kept, and this run needs none
# Topics, leaders and coordinators that are not known yet; CONCURRENT_TRANSACTIONS.
NOT_READY = (3, 5, 6, 14, 15, 16, 51)
RETRY_S, MOST_RETRIES = 0.1, 200
ROUNDING_MS = (1, 3, 10)
LATE_MS = (*ROUNDING_MS, 30, 100)  # of another machine: a request was read later there than was written down here
SOON_S = 0.1
GONE = ("the answer", "the connection", "the order of answers")  # paths of differences that are of no field
LATE = b"yet to come"  # an answer that waits for others
UNREADABLE = (MalformedError, LookupError, IndexError, ValueError)


def correlation_id_of(answer: bytes) -> int:
    """Which request it answers."""
    return int.from_bytes(answer[:4], "big", signed=True)


def names_of(request: Any) -> tuple[str, ...]:
    """The group and the transactional id that a request is about."""
    rows = getattr(request, "groups", None) or [request]
    names = getattr(rows[0], "group_id", None), getattr(request, "transactional_id", None)
    return tuple(name for name in names if name)


class Target(Protocol):
    """What a run is played against."""

    is_other: bool

    def connect(self, broker: int) -> socket.socket:
        """A connection to what stands for this broker of the recording."""

    def go_to(self, at_ms: int) -> None:
        """Let time pass, where it can be let: until so many Unix milliseconds."""

    def pass_waits(self, until_ms: int) -> None:
        """Let Fetches wait on, where they wait by a clock that stands: so many milliseconds beyond it in all."""

    def settle(self) -> None:
        """Whatever was sent has been read when this returns, or most likely so."""

    def call(self, method: str, path: str, body: dict[str, Any]) -> str | None:
        """Repeat a call of the control plane. Returns why it cannot be repeated, or was refused; None: it was done."""


class Found(NamedTuple):
    """The first answer that differs."""

    number: int  # of the request, counted from 1
    api: str
    version: int
    client_id: str
    at_ms: int  # when it was sent in the recording
    path: str  # the field
    recorded: object
    found: object
    names: tuple[str, ...] = ()  # the group and the transactional id that the request was about

    def sentence(self) -> str:
        """In words."""
        return (
            f"request {self.number}, {self.api} v{self.version} of {self.client_id or 'a client without id'}:"
            f" {self.path} was {self.recorded!r:.200} in the recording, and is {self.found!r:.200} now"
        )


class Asked(NamedTuple):
    """A request that waits for its answer."""

    number: int
    api_key: int
    api_version: int
    correlation_id: int
    client_id: str
    at_ms: int
    data: bytes  # as it was sent
    names: tuple[str, ...]


class Link:
    """One connection of the recording, in this run."""

    def __init__(self, connection: socket.socket) -> None:
        self.socket = connection
        self.asked: deque[Asked] = deque()
        self.is_late = False  # an answer is yet to come, and all others come after it


class Player:
    """One run, played once."""

    def __init__(self, target: Target) -> None:
        self._target = target
        self._mapping = Mapping(is_other=target.is_other)
        self._links: dict[int, Link] = {}
        self._unsettled: int | None = None  # the connection of a request that may not have been read yet
        self.requests = 0
        self.answers = 0  # that were compared
        self.last = ""  # request, in words
        self._retries = 0
        self.notes: list[str] = []  # what could not be repeated, or compared

    def play(self, events: Iterable[Event]) -> Found | None:
        """All events, or up to the first answer that differs. Errors: OSError."""
        try:
            for event in events:
                found = self.step(event)
                if found is not None:
                    return found
        finally:
            for link in self._links.values():
                link.socket.close()
        return None

    def step(self, event: Event) -> Found | None:
        """Play one event. Returns the first difference of its answers. Errors: OSError."""
        if event.kind == FULL:
            self.notes.append("the recording ends here: it had reached its limit")
            return None
        self._target.go_to(event.at_ms)
        if event.kind == WAITED:
            self._settle(None)
            self._target.pass_waits(int.from_bytes(event.data, "big"))
        elif event.kind == CALLED:
            self._settle(None)
            call = json.loads(event.data)
            if refused := self._target.call(call["method"], call["path"], call["body"]):
                self.notes.append(f"not repeated: {refused}")
        elif event.kind == TOOK:
            self._settle(event.connection)
            self._send(event)
        elif event.kind == SENT:
            return self._receive(event)
        elif event.kind == CLOSED and (link := self._links.pop(event.connection, None)) is not None:
            self._settle(None)
            link.socket.close()
        return None

    def _settle(self, connection: int | None) -> None:
        """Before something happens elsewhere: the last request has been read."""
        if self._unsettled not in (None, connection):
            self._target.settle()
            self._unsettled = None

    def _send(self, event: Event) -> None:
        link = self._links.get(event.connection)
        if link is None:
            link = self._links[event.connection] = Link(self._target.connect(event.broker))
        out = []
        for frame in frames(event.data):
            self.requests += 1
            if self._is_left_out(event.connection, frame):
                continue
            data = self._request(frame, link, event.at_ms)
            if data:
                out.append(len(data).to_bytes(4, "big") + data)
        try:
            link.socket.sendall(b"".join(out))
        except OSError:
            return  # it was closed, by a fault for example: a missing answer is reported where it is missed
        self._unsettled = event.connection

    def _is_left_out(self, connection: int, frame: bytes) -> bool:
        """Whether a request is not sent: a Judge leaves out what the other cluster was not ready for."""
        return False

    def _request(self, frame: bytes, link: Link, at_ms: int) -> bytes:
        try:
            header, start = decode_request_header(frame, 0)
        except UNREADABLE:  # malformed on purpose: as it was
            return frame
        key, version, correlation_id = header.api_key, header.api_version, header.correlation_id
        data = b"" if key in SASL else frame
        names: tuple[str, ...] = ()
        try:
            coder = codec(request_class(key), version)
            message, _ = coder.decode(frame, start)
        except UNREADABLE:
            pass
        else:
            names = names_of(message)
            self._mapping.translate(message)
            if data:
                data = encode_request_header(key, version, correlation_id, header.client_id) + coder.encode(message)
        self.last = f"{api_label(key)} v{version} of {header.client_id or 'a client without id'}"
        client_id = header.client_id or ""
        link.asked.append(Asked(self.requests, key, version, correlation_id, client_id, at_ms, data, names))
        return data

    def _receive(self, event: Event) -> Found | None:
        link = self._links.get(event.connection)
        if link is None:
            return None
        if self._unsettled == event.connection:
            self._unsettled = None  # its answer shows that it was read
        for frame in frames(event.data):
            correlation_id = correlation_id_of(frame)
            if not any(asked.correlation_id == correlation_id for asked in link.asked):
                continue  # of a request before the recording
            while (asked := link.asked.popleft()).correlation_id != correlation_id:
                pass  # a request without an answer, as acks=0
            if asked.api_key in SASL:
                continue
            found = self._compare(asked, frame, link, event.at_ms)
            if found is not None and not self._goes_on(found, event.connection):
                return found
            if event.connection not in self._links:
                break  # it is given up, with the other answers of this moment
        return None

    def _goes_on(self, found: Found, connection: int) -> bool:
        """Whether a difference does not end the run: a Judge takes it down, and goes on."""
        return False

    def _waits_for_others(self, asked: Asked, link: Link) -> bool:
        """Whether an answer that has not come may come later, when others ask: a Judge goes on without it."""
        return False

    def _next_answer(self, asked: Asked, link: Link, at_ms: int) -> bytes:
        """The next answer of a connection; b"" at its end, LATE: it waits for others. Errors: OSError.

        One that a deadline brings may be due a moment later than its recorded time: that is cut to milliseconds, as the
        time of the request was, from which the deadline counts."""
        for later_ms in LATE_MS if self._target.is_other else ROUNDING_MS:
            if select.select([link.socket], [], [], SOON_S)[0]:
                break
            self._target.go_to(at_ms + later_ms)
        else:
            if self._waits_for_others(asked, link):
                self._target.settle()
                if not select.select([link.socket], [], [], SOON_S)[0]:
                    return LATE
        return read_frame(link.socket)

    def _compare(self, asked: Asked, recorded: bytes, link: Link, event_ms: int) -> Found | None:
        def differs(path: str, ours: object, theirs: object) -> Found:
            number, api_key, version, _, client_id, at_ms, _, names = asked
            return Found(number, api_label(api_key), version, client_id, at_ms, path, ours, theirs, names)

        try:
            answer = self._next_answer(asked, link, event_ms)
            if not answer:
                return differs("the connection", "open", "closed")
            while answer != LATE and (came := correlation_id_of(answer)) != asked.correlation_id:
                if came not in [each.correlation_id for each in link.asked]:
                    # of a request that was not answered in the recording
                    answer = self._next_answer(asked, link, event_ms)
                    if answer:
                        continue
                return differs("the order of answers", asked.correlation_id, came)
        except OSError as error:
            return differs("the answer", "there", f"missing: {error}")
        link.is_late = answer == LATE
        if link.is_late:
            self.answers += 1
            return differs("the answer", "there", LATE.decode())
        ours, theirs = self._decoded(asked, recorded), self._decoded(asked, answer)
        if ours is None or theirs is None:
            if recorded != answer and not self._target.is_other:
                self.notes.append(f"request {asked.number}: its answer cannot be read, and was not compared")
            return None
        difference = self._mapping.compare(ours, theirs)
        if difference is not None and self._is_not_ready(asked, difference):
            time.sleep(RETRY_S)
            link.socket.sendall(len(asked.data).to_bytes(4, "big") + asked.data)
            return self._compare(asked, recorded, link, event_ms)
        self.answers += 1
        return None if difference is None else differs(*difference)

    def _is_not_ready(self, asked: Asked, difference: Difference) -> bool:
        """Whether another broker asks to try again, as one that has just been started does. A client would."""
        if not self._target.is_other or not difference.path.endswith("error_code"):
            return False
        if difference.recorded in NOT_READY or difference.found not in NOT_READY:
            return False
        self._retries += 1
        return self._retries <= MOST_RETRIES

    def _decoded(self, asked: Asked, frame: bytes) -> Any:
        key, version = asked.api_key, asked.api_version
        if key in SECRET_APIS:  # what the recording has not
            frame = without_secrets(len(frame).to_bytes(4, "big") + frame, key, version, is_reply=True)[4:]
        try:
            _, start = decode_response_header(frame, key, 0 if key == ApiKey.API_VERSIONS else version)
            message, end = codec(response_class(key), version).decode(frame, start)
        except UNREADABLE:
            return None
        return message if end == len(frame) else None
