"""Serves repeats of earlier requests from their bytes, for every API in this room.

The first request of its kind takes the general way: it is decoded, decided and answered. If the rule says that a repeat
may be served from its bytes (`Decision.repeats`), request and reply are cut by their declarations (protocol/shape.py)
into bytes that stay the same and fields that differ. The next request is compared with these bytes; its fields go into
the Ask that was kept, the same rule decides, and the reply is the earlier one with new fields.

What is kept is on the connection, in one Table an API, and is dropped in one place: `Connection.forget`, when the
generation in turn/learned.py has moved. Nothing is served here that the general way would not serve alike; a request
that is refused, or has to wait for something out of the ordinary, is decided again there, and nothing has changed yet.
"""

from __future__ import annotations

from collections.abc import Callable
from struct import error as StructError  # noqa: N812  # the name that other modules give it
from typing import TYPE_CHECKING, Any, ClassVar, Final

from broker.turn.decision import AGAIN, LATER
from broker.wire.parked import ParkedRequest
from broker.wire.route import REPLY_HEAD
from broker.wire.service import TAKEN
from protocol.errors import KafkaError, MalformedError
from protocol.shape import Finder, OpenCut, OpenShape, Shape
from storage.files.errors import StorageError

if TYPE_CHECKING:
    from broker.base.context import Context
    from broker.turn.decision import Decision
    from broker.turn.durability import Held
    from broker.turn.executor import Executor
    from broker.turn.turn import Turn
    from broker.wire.connection import Connection
    from broker.wire.parked import ParkedRequests
    from broker.wire.reply_stream import Reply
    from broker.wire.route import Route

BODY: Final = 12  # where the request header's client id is in a frame
MOST_BYTES: Final = 65_536  # of a request and its reply that are kept, without a field of any length
MOST_KEPT: Final = 1024  # requests a connection and API
MOST_ALIKE: Final = 4  # of them with the same prefix: fetches of one session that name different partitions
KEPT_BYTES: Final = 1 << 20  # of the requests and replies of a connection and API
PATIENCE: Final = 8  # requests without a repeat between them after which fewer are kept


class Kept:
    """One request that was served, ready for its repeats."""

    __slots__ = (
        "after",
        "ask",
        "ctx",
        "other",
        "pack",
        "reply",
        "reply_size",
        "rest",
        "statics",
        "tail",
        "unpack",
        "values",
        "width",
    )

    def __init__(self, ask: Any, ctx: Context) -> None:
        self.ask = ask
        self.ctx = ctx
        self.unpack: Any = None
        self.statics: tuple[bytes, ...] = ()
        self.width = 0
        self.after = slice(0, None, 1)  # where the bytes are that must be the same
        self.tail = b""  # what follows the field of any length, where there is one
        self.reply = b""  # the reply after its correlation id, up to the first field that differs
        self.reply_size = 0
        self.pack: Any = None  # packs the rest of the reply
        self.values: list[Any] = []  # what it packs; empty: nothing differs
        self.rest = b""  # the rest of the last reply
        self.other: Kept | None = None  # another one with the same prefix and other bytes after it


class Form:
    """The requests kept of one version and size: how long their prefix is, and each by its prefix.

    Where a field is of any length, it is all of one version, and `find` finds the end of the prefix and the field.
    """

    __slots__ = ("find", "kept", "prefix_bytes")

    def __init__(self, prefix_bytes: int, find: Finder | None) -> None:
        self.prefix_bytes = prefix_bytes
        self.find = find
        self.kept: dict[bytes, Kept] = {}


class Table:
    """The requests kept on one connection for one API."""

    __slots__ = ("count", "forms", "held_bytes", "misses")

    def __init__(self) -> None:
        self.forms: dict[int, Form] = {}  # by size and version, or by version
        self.count = 0
        self.held_bytes = 0
        self.misses = 0  # requests without a repeat since the last one

    def is_worth_keeping(self) -> bool:
        """Whether another request is kept: where no repeats come, only the 8th, 16th, 32nd ... is."""
        self.misses = misses = self.misses + 1
        return misses <= PATIENCE or not misses & (misses - 1)

    def keep(self, key: int, prefix: bytes, kept: Kept, size: int, find: Finder | None) -> None:
        """Add a request. A full table is emptied first."""
        if self.count >= MOST_KEPT or self.held_bytes + size > KEPT_BYTES:
            self.forms.clear()
            self.count = self.held_bytes = 0
        form = self.forms.get(key)
        if form is None or (find is None and form.prefix_bytes != len(prefix)):
            form = self.forms[key] = Form(len(prefix), find)
        alike, each, is_new = [kept], form.kept.get(prefix), True
        while each is not None:
            if each.statics == kept.statics and each.tail == kept.tail:
                is_new = False
            elif len(alike) < MOST_ALIKE:
                alike.append(each)
            each = each.other
        for at, each in enumerate(alike):
            each.other = alike[at + 1] if at + 1 < len(alike) else None
        form.kept[prefix] = kept
        if is_new:
            self.count += 1
            self.held_bytes += size


def _found(find: Finder, data: bytes, start: int) -> tuple[int, int, int]:
    """Where the prefix ends, and the field of any length begins and ends. A frame that is too short has no prefix."""
    try:
        return find(data, start)
    except (IndexError, MalformedError, StructError):
        return start, 0, 0


class HotRequest:
    """One API: its rule, its general codec, and the repeats of its requests. A subclass a file of this room.

    REQUEST, REPLY  name the fields that differ from one request to the next. An OpenShape names one of any length.
    HAS_TEMPLATE    whether the reply to a repeat is the earlier one with other fields. Elsewhere `write_reply` makes
                    it, and requests that had to wait or whose reply has slices of files are kept too.
    """

    REQUEST: ClassVar[Shape | OpenShape]
    REPLY: ClassVar[Shape]
    HAS_TEMPLATE: ClassVar[bool] = True

    def __init__(self, broker: Any) -> None:
        self.api_key: int = self.REQUEST.cls.API_KEY
        self.turn: Turn = broker.turn
        self.durability = self.turn.durability
        self.executor: Executor = broker.router.executor
        self.parked: ParkedRequests = broker.router.parked
        self.route: Route = broker.router.routes[self.api_key]
        self.is_open = isinstance(self.REQUEST, OpenShape)
        self._finders: dict[int, Finder] = {}  # by version

    # -- what a file of this room says about its API

    def message(self, ctx: Context, request: Any) -> Decision:
        """The general codec: decide on a declared message. The Decision's reply is a message."""
        raise NotImplementedError

    def decide(self, ask: Any, ctx: Context) -> Decision:
        """The rule. `Decision.repeats`: the Ask, or AGAIN, if repeats of the request may be served from its bytes."""
        raise NotImplementedError

    def fill(self, ask: Any, fields: tuple[Any, ...], width: int) -> None:
        """Put the fields of a repeat into the Ask: `fields[i :: width + 1]` are those that differ.

        Of an OpenShape it is one, a memoryview: it must not be kept when the request is served.
        """
        raise NotImplementedError

    def values(self, kept: Kept, decision: Decision, reply: Any) -> bool:
        """Put what differs in the reply into `kept.values[i :: width + 1]`. False: it is as in the reply before."""
        raise NotImplementedError

    def prepare(self, kept: Kept, decision: Decision) -> None:
        """A request is kept: derive once what its repeats need, from the decision on it.

        What the Ask keeps may not refer to the Ask: it is given up often, and is to be freed at once.
        """

    def write_reply(self, kept: Kept, reply: Any, correlation_id: int) -> Reply:
        """The whole reply, where it has no template. None: `reply` is a message with errors, and answered as such."""
        raise NotImplementedError

    def answered(self, decision: Decision, respond: Callable[[Any], Any]) -> Decision:
        """Make the reply of a Decision, or of the one that follows it, a message."""
        follow = decision.follow
        if follow is not None:
            decision.follow = lambda durable: self.answered(follow(durable), respond)
        elif decision.reply is not LATER:
            decision.reply = respond(decision.reply)
        return decision

    # -- serving

    def serve(self, connection: Connection, data: bytes, position: int, stop: int, correlation_id: int) -> bytes | None:
        """Serve a repeat; see service.Shortcut."""
        table: Table | None = connection.learned.get(self.api_key)
        if table is None:
            return None
        version = data[position + 6] << 8 | data[position + 7]
        form = table.forms.get(version if self.is_open else (stop - position) << 16 | version)
        if form is None:
            return None
        start, find = position + BODY, form.find
        if find is None:
            end = start + form.prefix_bytes
        else:
            end, begin, last = _found(find, data, start)
        kept = form.kept.get(data[start:end])
        if kept is None:
            return None
        if kept.width:
            fields = kept.unpack(data, end)
            while fields[kept.after] != kept.statics:
                kept = kept.other
                if kept is None:
                    return None
                fields = kept.unpack(data, end)
            self.fill(kept.ask, fields, kept.width)
        elif find is not None:
            if begin > last or data[last:stop] != kept.tail or last + len(kept.tail) != stop:
                return None
            self.fill(kept.ask, (memoryview(data)[begin:last],), 1)
        ask, ctx = kept.ask, kept.ctx
        table.misses = 0
        ctx.now_ms = self.turn.now_ms
        slot = connection.base + len(connection.out)
        ctx.token = (connection, slot)
        held = (connection, slot, data, position, stop)
        try:
            decision = self.decide(ask, ctx)
        except (KafkaError, StorageError):
            return None
        if decision.repeats is None:
            return None
        try:
            reply = self.executor.carry_out(decision, ctx.now_ms, held)
        except (KafkaError, StorageError) as error:
            is_begun = decision.follow is not None and isinstance(error, KafkaError)
            return self._refuse(kept, held, correlation_id, error) if is_begun else None
        if reply is not LATER and self.HAS_TEMPLATE:
            if kept.values and self.values(kept, decision, reply):
                kept.rest = kept.pack(*kept.values)
            return REPLY_HEAD.pack(kept.reply_size, correlation_id) + kept.reply + kept.rest
        return self._without_template(kept, reply, held, correlation_id)

    def _without_template(self, kept: Kept, reply: Any, held: Held, correlation_id: int) -> bytes:
        """A reply that is written again, or a request that waits."""
        whole = None if reply is LATER else self.write_reply(kept, reply, correlation_id)
        if isinstance(whole, bytes):
            return whole
        connection = held[0]
        if whole is not None:
            connection.out.append(None)
            connection.fill(held[1], whole)
            return TAKEN
        self._park(kept, held, correlation_id)
        if reply is not LATER:
            self.parked.answer(kept.ctx.token, reply)
        return TAKEN

    def _refuse(self, kept: Kept, held: Held, correlation_id: int, error: Any) -> bytes:
        """A step after the first write has failed: something was written, so it cannot be decided again."""
        self._park(kept, held, correlation_id)
        self.parked.refuse(kept.ctx.token, error.code)
        return TAKEN

    def _park(self, kept: Kept, held: Held, correlation_id: int) -> None:
        connection, _, data, position, stop = held
        ctx = kept.ctx
        connection.out.append(None)
        self.parked.park(ctx.token, ParkedRequest(self.route, ctx.api_version, correlation_id, data, position, stop))

    # -- keeping

    def keep(
        self, connection: Connection, frame: tuple[bytes, int, int], ctx: Context, decision: Decision, reply: Reply
    ) -> None:
        """Keep a request that the general handler has served, with its reply, for its repeats. None: it is parked."""
        data, position, stop = frame
        ask = decision.repeats
        template = reply if self.HAS_TEMPLATE else b""
        if not isinstance(template, bytes) or connection.generation != self.turn.learned.generation:
            return  # in the second case the connection is about to drop what it has kept
        table: Table = connection.learned.get(self.api_key) or Table()
        connection.learned[self.api_key] = table
        if not table.is_worth_keeping():
            return
        version, start = ctx.api_version, position + BODY
        find, key = None, stop - position << 16 | version
        kept = Kept(ask, ctx)
        replied = None
        try:
            asked = self.REQUEST.cut(data, start, stop, version, header="request")
            if template:
                replied = self.REPLY.cut(template, REPLY_HEAD.size, len(template), version, header="tags")
            if isinstance(asked, OpenCut):
                find, key, kept.tail = self.finder(version), version, asked.tail
                if find(data, start)[0] != start + len(asked.prefix):
                    return
                size = len(asked.prefix) + len(asked.tail) + len(template)
            else:
                kept.unpack, kept.statics, kept.width = asked.unpack, asked.statics, asked.width
                kept.after = slice(asked.width, None, asked.width + 1)
                size = stop - position + len(template)
        except (IndexError, ValueError, StructError):  # of a form that cannot be cut
            return
        if size > MOST_BYTES:
            return
        if replied is not None:
            kept.reply, kept.reply_size = replied.prefix, len(template) - 4
            if replied.statics:
                at = REPLY_HEAD.size + len(replied.prefix)
                kept.pack, kept.values, kept.rest = replied.pack, list(replied.unpack(template, at)), template[at:]
        decision.reply, decision.repeats = None, AGAIN
        self.prepare(kept, decision)
        table.keep(key, asked.prefix, kept, size, find)

    def finder(self, version: int) -> Finder:
        """The function that finds the field of any length in a request of a version, made when first needed."""
        found = self._finders.get(version)
        if found is None:
            assert isinstance(self.REQUEST, OpenShape)
            found = self._finders[version] = self.REQUEST.finder(version)
        return found
