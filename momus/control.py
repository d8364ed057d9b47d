"""The control endpoint of a running broker, from Python: its clock, and its virtual brokers.

    with Broker(brokers=3) as broker:
        broker.clock.advance(days=8)
        broker.stop_broker(2)

Nothing of the broker is imported; it is HTTP with JSON on loopback.
"""

from __future__ import annotations

import json
import os
import socket
import weakref
from copy import copy
from datetime import UTC, datetime, timedelta

from momus.kit.hidden import hides as __tracebackhide__  # noqa: F401  # pytest looks for it
from momus.kit.words import quoted, unknown

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Unpack

    from momus.kit.typed import Units

LIMIT_S = 30.0
MOST_HEAD = 1 << 16  # bytes of an answer
MILLISECOND = timedelta(milliseconds=1)
UNITS = ("weeks", "days", "hours", "minutes", "seconds", "milliseconds")


NOT_IMPLEMENTED = 501


class ControlError(RuntimeError):
    """The broker refused, and says why."""


class NotOnUpstreamError(ControlError):
    """This is a proxy, and what was asked for is inside the cluster that it stands before (docs/proxy.md)."""


class BrokerDiedError(ControlError, ConnectionError):
    """The process has ended, and was not told to. Says how, and what it logged last."""


class BadAnswerError(OSError):
    """What answers is no control endpoint, or has hung up in the middle of an answer."""


class Line:
    """One connection, for one request at a time: HTTP/1.1 as the endpoint speaks it. Errors of all calls: OSError.

    Python's own client takes 15 ms to import.
    """

    def __init__(self, host: str, port: int, limit_s: float) -> None:
        self._socket = socket.create_connection((host, port), timeout=limit_s)
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._host = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"

    def exchange(self, method: str, path: str, data: bytes | None, headers: str) -> tuple[int, bytes, bool]:
        """Send a request. Returns the status, the body, and whether the connection stays open.

        headers   further ones, each with its end of line.
        Errors:   ConnectionResetError: it was closed before any answer. BadAnswerError. OSError.
        """
        length = "" if data is None else f"Content-Length: {len(data)}\r\n"
        head = f"{method} {path} HTTP/1.1\r\nHost: {self._host}\r\n{headers}{length}\r\n"
        self._socket.sendall(head.encode() + (data or b""))
        got = self._socket.recv(MOST_HEAD)
        if not got:
            raise ConnectionResetError("the endpoint has hung up")
        while (end := got.find(b"\r\n\r\n")) < 0:
            got += self._more()
            if len(got) > MOST_HEAD:
                raise BadAnswerError("no end of the answer's head")
        first, *lines = got[:end].decode("latin-1").split("\r\n")
        words = first.split(" ", 2)
        if not first.startswith("HTTP/1.") or len(words) < 2 or not words[1].isdigit():
            raise BadAnswerError(f"no control endpoint: {first:.60}")
        fields = {name.strip().lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
        body, length = bytearray(got[end + 4 :]), fields.get("content-length", "")
        if not length.isdigit():
            raise BadAnswerError("an answer without its length")
        while len(body) < int(length):
            body += self._more()
        return int(words[1]), bytes(body), fields.get("connection", "").lower() != "close"

    def _more(self) -> bytes:
        found = self._socket.recv(1 << 20)
        if not found:
            raise BadAnswerError("the endpoint has hung up in the middle of an answer")
        return found

    def close(self) -> None:
        """Close it."""
        self._socket.close()


class Control:
    """One endpoint, HOST:PORT, and one cluster of it: the first, unless `of_cluster` has named another."""

    def __init__(self, address: str, token: str | None = None) -> None:
        self.address = address
        self.prefix = "/_admin"  # of the cluster's paths
        self.clock = Clock(self)
        self.death: Callable[[], str | None] | None = None  # why nothing answers; None: unknown
        self._headers = f"Authorization: Bearer {token}\r\n" if token else ""
        self._unused: list[Line] = []  # open, kept for the next request; each serves one thread at a time
        self._pid = os.getpid()
        self._owner: Control | None = None  # whose connections these are; None: this object's
        # Not __del__: where objects refer to each other in a circle, that may come after the sockets' own
        weakref.finalize(self, _close_all, self._unused)

    def ask(self, method: str, path: str, body: object = None) -> object:
        """One request and its answer. Errors: ControlError; BrokerDiedError; OSError: nothing answers."""
        data = None if body is None else json.dumps(body).encode()
        status, answer = self._exchange(method, path, data)
        if status != 200:
            kind = NotOnUpstreamError if status == NOT_IMPLEMENTED else ControlError
            raise kind(json.loads(answer)["error"])
        return json.loads(answer)

    def read(self, path: str) -> str:
        """What is answered as text: /metrics. Errors: as `ask`."""
        status, answer = self._exchange("GET", path, None)
        if status != 200:
            raise ControlError(json.loads(answer)["error"])
        return answer.decode()

    def of_cluster(self, name: str) -> Control:
        """The same endpoint for another cluster of the process."""
        other = copy(self)
        other.prefix = f"/_admin/clusters/{quoted(name)}"
        other.clock = Clock(other)
        other._owner = self._owner or self
        return other

    @property
    def cluster(self) -> str:
        """The name of the cluster, as it is in paths."""
        return self.prefix.removeprefix("/_admin").removeprefix("/clusters/") or "default"

    def close(self) -> None:
        """Close the connections that are kept."""
        _close_all(self._unused)

    def _exchange(self, method: str, path: str, data: bytes | None) -> tuple[int, bytes]:
        if self._pid != os.getpid():  # a forked child may not write between its parent's requests
            self.close()
            self._pid = os.getpid()
        while True:
            try:
                line, is_kept = self._unused.pop(), True
            except IndexError:
                line, is_kept = None, False
            try:
                if line is None:
                    host, _, port = self.address.rpartition(":")
                    line = Line(host.strip("[]"), int(port), LIMIT_S)
                status, answer, is_open = line.exchange(method, path, data, self._headers)
            except OSError as error:
                if line is not None:
                    line.close()
                if is_kept and isinstance(error, ConnectionError):
                    continue  # it was closed between two requests: this one has not been read
                if self.death is not None and (sentence := self.death()) is not None:
                    raise BrokerDiedError(sentence) from error
                raise
            except BaseException:
                if line is not None:
                    line.close()
                raise
            if is_open:
                self._unused.append(line)
            else:
                line.close()
            return status, answer

    def brokers(self) -> list[dict[str, object]]:
        """The virtual brokers: `id`, `up`, `lags`, `paused`, and `listeners` by name."""
        answer = self.ask("GET", f"{self.prefix}/brokers")
        assert isinstance(answer, list)
        return answer

    def stop_broker(self, node_id: int) -> None:
        """Stop a virtual broker: its clients are cut off, the others lead what it led."""
        self.ask("POST", f"{self.prefix}/brokers/{node_id}/stop")

    def start_broker(self, node_id: int) -> None:
        """Start it again, on the same port; it takes back what it led."""
        self.ask("POST", f"{self.prefix}/brokers/{node_id}/start")

    def lag_follower(self, node_id: int) -> None:
        """Let a virtual broker fetch nothing of what others lead."""
        self.ask("POST", f"{self.prefix}/brokers/{node_id}/lag")

    def release_follower(self, node_id: int) -> None:
        """Let it catch up."""
        self.ask("POST", f"{self.prefix}/brokers/{node_id}/release")

    def pause_broker(self, node_id: int) -> None:
        """Let a virtual broker read and answer nothing, with its connections open."""
        self.ask("POST", f"{self.prefix}/brokers/{node_id}/pause")

    def resume_broker(self, node_id: int) -> None:
        """Let it go on."""
        self.ask("POST", f"{self.prefix}/brokers/{node_id}/resume")


def _close_all(connections: list[Line]) -> None:
    while connections:
        connections.pop().close()


class Clock:
    """What time it is for a broker. It moves forward only."""

    def __init__(self, control: Control) -> None:
        self._control = control

    def now(self) -> datetime:
        """The broker's time."""
        return datetime.fromtimestamp(self._field("GET", None, "now_ms") / 1000, UTC)

    def stands(self) -> bool:
        """Whether it has been told to stand still."""
        return bool(self._field("GET", None, "stands"))

    def advance(self, by: timedelta | None = None, **units: Unpack[Units]) -> None:
        """Let time pass: `advance(days=8)`, `advance(seconds=45)`, or a timedelta.

        Returns when what became due has been done: members have timed out, offsets and transactions have
        expired, and connections that are idle for longer than connections.max.idle.ms are closed.
        Errors:  ControlError: that takes longer than 25 s; the clock has moved.
                 ValueError: a number without its unit, an unknown unit, or a time that would go back.
        """
        if by is not None and not isinstance(by, timedelta):
            raise ValueError(f"advance({by!r}): of which unit? advance(seconds={by}), or a timedelta")
        if wrong := unknown("advance takes no unit", units, UNITS):
            raise ValueError(wrong)
        delta = (by or timedelta()) + timedelta(**units)
        if delta < timedelta():
            raise ValueError(f"advance by {delta.total_seconds():g} s: a cluster's time does not go back")
        self._move({"advance_ms": delta // MILLISECOND})

    def set(self, at: datetime) -> None:
        """Go to a moment that has not passed, and stand there until `resume`, or until it is moved on.

        Returns, and fails, as `advance` does.
        """
        epoch = datetime.fromtimestamp(0, UTC)
        self._move({"set": (at.astimezone(UTC) - epoch) // MILLISECOND})

    def freeze(self) -> None:
        """Stand still at the present moment, until `resume`, or until it is moved on."""
        self._move({"freeze": True})

    def resume(self) -> None:
        """Run on from here."""
        self._field("POST", {"resume": True}, "now_ms")

    def _move(self, body: object) -> None:
        if not self._field("POST", body, "settled"):
            raise ControlError("the clock has moved, but not all that became due was done in time")

    def _field(self, method: str, body: object, name: str) -> int:
        answer = self._control.ask(method, f"{self._control.prefix}/clock", body)
        assert isinstance(answer, dict)
        value: int = answer[name]
        return value
