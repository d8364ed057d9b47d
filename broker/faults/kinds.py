"""The kinds of faults: a class says its name, its fields, and what it does to requests, replies, files or letters.

To add a kind, write its class here, list it in KINDS, and give it a method in `momus/faults.py` and a row in
docs/faults.md. A class that does not say what it does cannot be made: its method is abstract.
"""

from __future__ import annotations

import errno
from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any, ClassVar, Final, Protocol

from broker.faults.fields import FILTERS, Field
from storage.files.troubles import SYNC, WRITE, Trouble

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from protocol.errors import ErrorCode

    Values = Mapping[str, Any]  # of a fault, by its fields

BEFORE, AFTER, MIDDLE = "before", "after", "middle"
EVENTS: Final = (  # what the cluster can be made to do; broker/shell/control/calls/events.py does each
    "rebalance",
    "expel_member",
    "expire_offsets",
    "move_coordinator",
    "move_leader",
    "restart",
    "abort_transaction",
    "fence_producer",
)
HEAD_BYTES: Final = 8  # size and correlation id of a reply: left whole, so that the client finds damage in the body
MOST_MS: Final = 86_400_000
MOST_DISK_MS: Final = 10_000  # a write is waited for, and nothing else happens meanwhile


class Request(Protocol):
    """What a fault can do to the request that it meets."""

    def refuse(self) -> None:
        """Answer with the fault's error; the request takes no effect."""

    def keep(self, ms: int | None = None) -> None:
        """Hold the request before it takes effect. `ms`: so long; None: until it is released."""

    def expect_reply(self) -> None:
        """Serve the request; the fault acts on its reply."""

    def cut(self) -> None:
        """Close the connection; the request takes no effect."""

    def serve_twice(self) -> None:
        """Let the request take effect twice; the second reply is sent."""

    def remember(self) -> None:
        """Keep what the request names: an event is about it."""


class Kind:
    """A kind of fault. Its first sentence in the docstring is shown to users."""

    name: ClassVar[str]
    fields: ClassVar[tuple[Field, ...]] = ()
    filters: ClassVar[tuple[Field, ...]] = FILTERS

    def as_json(self) -> dict[str, object]:
        """The kind as `GET /faults/kinds` has it."""
        return {
            "fault": self.name,
            "about": (type(self).__doc__ or "").partition("\n")[0],
            "fields": [each.as_json() for each in self.fields],
            "filters": [each.as_json() for each in self.filters],
        }


class RequestKind(Kind, ABC):
    """A kind that meets requests."""

    swallows: ClassVar[bool] = False  # what it keeps is never served

    @abstractmethod
    def on_request(self, request: Request, values: Values) -> None:
        """What it does to a request that it chose."""


class ReplyKind(RequestKind):
    """A kind that lets the request take effect, and acts on its reply. Use one of the three classes below."""

    needs_bytes: ClassVar[bool] = False  # it does nothing where there is no reply, as for a Produce with acks=0

    def on_request(self, request: Request, values: Values) -> None:
        request.expect_reply()


class ChangesReply(ReplyKind):
    """The reply is sent with other bytes."""

    @abstractmethod
    def changed(self, values: Values, content: bytes, random: Callable[[int], int]) -> bytes:
        """What is sent instead of this reply. `random`: a number from 0 and below the one given."""


class KeepsReply(ReplyKind):
    """The reply is sent later."""

    @abstractmethod
    def keep_ms(self, values: Values, content: Callable[[], bytes]) -> int | None:
        """How long the reply stays, by the cluster's clock. None: until it is released. `content`: reads the reply."""


class CutsReply(ReplyKind):
    """The connection is closed instead of the reply."""

    @abstractmethod
    def last_bytes(self, values: Values, content: bytes) -> bytes:
        """What is still sent of the reply."""


class DiskKind(Kind, ABC):
    """A kind that meets writes and syncs of files."""

    filters = tuple(each for each in FILTERS if each.name in ("topic", "partition"))
    acts_on: ClassVar[tuple[str, ...]]

    @abstractmethod
    def trouble(self, values: Values, size: int, room: int) -> Trouble | None:
        """What goes wrong with a write or sync of `size` bytes; None: nothing. `room`: bytes left of `free_bytes`."""


class LetterKind(Kind, ABC):
    """A kind that meets what the broker itself writes to dead-letter queues of share groups."""

    filters = tuple(each for each in FILTERS if each.name in ("topic", "partition", "group"))

    @abstractmethod
    def error(self, values: Values) -> ErrorCode:
        """What the write meets."""


# -- the schema registry


class OfRegistry(Kind):
    """Refuses, delays, holds or cuts off a request of the schema registry, before or after it takes effect."""

    name = "registry"
    fields = (
        Field("do", "choice", choices=("error", "delay", "hold", "disconnect")),
        Field("when", "choice", BEFORE, choices=(BEFORE, AFTER)),
        Field("status", "number", 500, least=400, most=599),
        Field("code", "number", 50001, least=400, most=59_999),
        Field("ms", "number", 0, most=MOST_MS),
    )
    filters = (Field("route", "text", None), Field("subject", "text", None), Field("principal", "text", None))


# -- requests and replies


class InjectError(RequestKind):
    """Refuses the request with this error; it takes no effect."""

    name = "inject_error"
    fields = (Field("error", "error"),)

    def on_request(self, request: Request, values: Values) -> None:
        request.refuse()


class DelayOn(KeepsReply):
    """Delays the reply (after) or the request (before), by the cluster's clock."""

    name = "delay_on"
    fields = (Field("ms", "number", most=MOST_MS), Field("when", "choice", AFTER, choices=(BEFORE, AFTER)))

    def on_request(self, request: Request, values: Values) -> None:
        if values["when"] == BEFORE:
            request.keep(values["ms"])
        else:
            request.expect_reply()

    def keep_ms(self, values: Values, content: Callable[[], bytes]) -> int | None:
        return int(values["ms"])


class Hold(KeepsReply):
    """Holds the reply (after) or the request (before) until it is released."""

    name = "hold"
    fields = (Field("when", "choice", AFTER, choices=(BEFORE, AFTER)),)

    def on_request(self, request: Request, values: Values) -> None:
        if values["when"] == BEFORE:
            request.keep()
        else:
            request.expect_reply()

    def keep_ms(self, values: Values, content: Callable[[], bytes]) -> int | None:
        return None


class MakeEvent(KeepsReply):
    """Makes an event in the cluster before the request takes effect, or after it; the reply agrees with it."""

    name = "make_event"
    fields = (Field("event", "choice", choices=EVENTS), Field("when", "choice", BEFORE, choices=(BEFORE, AFTER)))

    def on_request(self, request: Request, values: Values) -> None:
        request.remember()
        if values["when"] == BEFORE:
            request.keep()
        else:
            request.expect_reply()

    def keep_ms(self, values: Values, content: Callable[[], bytes]) -> int | None:
        return None  # until the event is made


class DisconnectOn(CutsReply):
    """Closes the connection before or after the request takes effect, or in the middle of its reply."""

    name = "disconnect_on"
    fields = (Field("when", "choice", AFTER, choices=(BEFORE, AFTER, MIDDLE)),)

    def on_request(self, request: Request, values: Values) -> None:
        if values["when"] == BEFORE:
            request.cut()
        else:
            request.expect_reply()

    def last_bytes(self, values: Values, content: bytes) -> bytes:
        return content[: max(1, len(content) // 2)] if values["when"] == MIDDLE else b""


class BlackholeClient(RequestKind):
    """Neither serves nor answers requests; connections stay open until the fault is removed."""

    name = "blackhole_client"
    swallows = True

    def on_request(self, request: Request, values: Values) -> None:
        request.keep()


class Throttle(KeepsReply):
    """Sends each reply when its bytes have had their time."""

    name = "throttle"
    fields = (Field("bytes_per_second", "number", least=1),)
    needs_bytes = True

    def keep_ms(self, values: Values, content: Callable[[], bytes]) -> int | None:
        return len(content()) * 1000 // int(values["bytes_per_second"])


class CorruptReply(ChangesReply):
    """Changes one byte of the reply: the one at this place after the correlation id, else a random one."""

    name = "corrupt_reply"
    fields = (Field("at", "number", None),)
    needs_bytes = True

    def changed(self, values: Values, content: bytes, random: Callable[[int], int]) -> bytes:
        rest, at = len(content) - HEAD_BYTES, values["at"]
        position = HEAD_BYTES + (random(rest) if at is None else min(at, rest - 1))
        return content[:position] + bytes([content[position] ^ 0xFF]) + content[position + 1 :]


class DeliverTwice(RequestKind):
    """Lets the request take effect twice, as after a lost reply; the client gets the second reply."""

    name = "deliver_twice"

    def on_request(self, request: Request, values: Values) -> None:
        request.serve_twice()


# -- files


class SlowDisk(DiskKind):
    """Lets each write and each sync take so much longer, in real time."""

    name = "slow_disk"
    fields = (Field("ms", "number", most=MOST_DISK_MS),)
    acts_on = (WRITE, SYNC)

    def trouble(self, values: Values, size: int, room: int) -> Trouble | None:
        return Trouble(0, delay_ms=values["ms"])


class FullDisk(DiskKind):
    """Fails writes for want of room, once so many bytes have been written."""

    name = "full_disk"
    fields = (Field("free_bytes", "number", 0),)
    acts_on = (WRITE,)

    def trouble(self, values: Values, size: int, room: int) -> Trouble | None:
        return None if size <= room else Trouble(errno.ENOSPC, short_bytes=room)


class FailWrite(DiskKind):
    """Fails writes with an I/O error."""

    name = "fail_write"
    acts_on = (WRITE,)

    def trouble(self, values: Values, size: int, room: int) -> Trouble | None:
        return Trouble(errno.EIO)


class FailFsync(DiskKind):
    """Fails syncs with an I/O error."""

    name = "fail_fsync"
    acts_on = (SYNC,)

    def trouble(self, values: Values, size: int, room: int) -> Trouble | None:
        return Trouble(errno.EIO)


# -- dead letters


class FailDeadLetter(LetterKind):
    """Refuses a write to a dead-letter queue with this error; its records are archived all the same."""

    name = "fail_dead_letter"
    fields = (Field("error", "error"),)

    def error(self, values: Values) -> ErrorCode:
        code: ErrorCode = values["error"]
        return code


KINDS: Final[dict[str, RequestKind | DiskKind | LetterKind | OfRegistry]] = {
    each.name: each
    for each in (
        InjectError(),
        DelayOn(),
        Hold(),
        MakeEvent(),
        DisconnectOn(),
        BlackholeClient(),
        Throttle(),
        CorruptReply(),
        DeliverTwice(),
        SlowDisk(),
        FullDisk(),
        FailWrite(),
        FailFsync(),
        FailDeadLetter(),
        OfRegistry(),
    )
}
