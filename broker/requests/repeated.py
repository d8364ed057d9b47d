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
    from broker.turn.executor import Executor
    from broker.turn.flush_state import Held
    from broker.turn.turn import Turn
    from broker.wire.connection import Connection
    from broker.wire.parked import ParkedRequests
    from broker.wire.reply_stream import Reply
    from broker.wire.route import Route

KEY_END: Final = 8  # a frame begins with size, API and version,
BODY: Final = 12  # and a correlation id; the client id follows
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
        "size",
        "statics",
        "tail",
        "unpack",
        "values",
        "whole",
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
        self.size = b""  # of it, as it begins
        self.pack: Any = None  # packs the rest of the reply
        self.values: list[Any] = []  # what it packs; empty: nothing differs
        self.whole = b""  # the last reply after its correlation id
        self.other: Kept | None = None  # another one with the same prefix and other bytes after it


class Misses:
    """How many requests for one API came without a repeat since the last one; of a Table and of its Forms."""

    __slots__ = ("count",)

    def __init__(self) -> None:
        self.count = 0


class Form:
    """The requests kept of one version and size: how long their prefix is, and each by its prefix.

    Where a field is of any length, it is all of one version, and `find` finds the end of the prefix and the field.
    """

    __slots__ = ("find", "kept", "misses", "prefix_bytes")

    def __init__(self, misses: Misses, prefix_bytes: int, find: Finder | None) -> None:
        self.misses = misses
        self.prefix_bytes = prefix_bytes
        self.find = find
        self.kept: dict[bytes, Kept] = {}


class Table:
    """The requests kept on one connection for one API."""

    __slots__ = ("count", "forms", "held_bytes", "misses", "of_connection")

    def __init__(self, of_connection: dict[bytes, Form]) -> None:
        self.forms: dict[bytes, Form] = {}  # by size, API and version as the frame has them, or by API and version
        self.of_connection = of_connection  # the same ones, with those of other APIs
        self.count = 0
        self.held_bytes = 0
        self.misses = Misses()

    def is_worth_keeping(self) -> bool:
        """Whether another request is kept: where no repeats come, only the 8th, 16th, 32nd ... is."""
        self.misses.count = misses = self.misses.count + 1
        return misses <= PATIENCE or not misses & (misses - 1)

    def keep(self, key: bytes, prefix: bytes, kept: Kept, size: int, find: Finder | None) -> None:
        """Add a request. A full table is emptied first."""
        if self.count >= MOST_KEPT or self.held_bytes + size > KEPT_BYTES:
            for each in self.forms:
                del self.of_connection[each]
            self.forms.clear()
            self.count = self.held_bytes = 0
        form = self.forms.get(key)
        if form is None or (find is None and form.prefix_bytes != len(prefix)):
            form = self.forms[key] = self.of_connection[key] = Form(self.misses, len(prefix), find)
        alike, other, is_new = [kept], form.kept.get(prefix), True
        while other is not None:
            if other.statics == kept.statics and other.tail == kept.tail:
                is_new = False
            elif len(alike) < MOST_ALIKE:
                alike.append(other)
            other = other.other
        for at, one in enumerate(alike):
            one.other = alike[at + 1] if at + 1 < len(alike) else None
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
    MAY_WAIT        whether the rule uses `ctx.token`, as one does that parks requests. Elsewhere a repeat has none.
    """

    REQUEST: ClassVar[Shape | OpenShape]
    REPLY: ClassVar[Shape]
    HAS_TEMPLATE: ClassVar[bool] = True
    MAY_WAIT: ClassVar[bool] = True

    def __init__(self, broker: Any) -> None:
        self.api_key: int = self.REQUEST.cls.API_KEY
        self.turn: Turn = broker.turn
        self.durability = self.turn.durability
        self.executor: Executor = broker.router.executor
        self.parked: ParkedRequests = broker.router.parked
        self.route: Route = broker.router.routes[self.api_key]
        self.key_at = 4 if isinstance(self.REQUEST, OpenShape) else 0  # in a frame; it ends where the version does
        # read for each request: as attributes of the object, which the compiled build does not look up by name
        self.has_template, self.may_wait = self.HAS_TEMPLATE, self.MAY_WAIT
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
        """Put what differs in the reply into `kept.values[i :: width + 1]`. False: it is as in the reply before.

        It is not asked where the Decision's reply is None.
        """
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
        form: Form | None = connection.forms.get(data[position + self.key_at : position + KEY_END])
        if form is None:
            return None
        start, find = position + BODY, form.find
        if find is None:
            end = start + form.prefix_bytes
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
        else:
            end, begin, last = _found(find, data, start)
            kept = form.kept.get(data[start:end])
            if kept is None or begin > last or data[last:stop] != kept.tail or last + len(kept.tail) != stop:
                return None
            self.fill(kept.ask, (memoryview(data)[begin:last],), 1)
        form.misses.count = 0
        ctx = kept.ctx
        ctx.now_ms = now_ms = self.turn.now_ms
        held = (connection, connection.base + len(connection.out), data, position, stop)
        if self.may_wait:
            ctx.token = held[:2]
        try:
            decision = self.decide(kept.ask, ctx)
        except (KafkaError, StorageError):
            return None
        if decision.repeats is None:
            return None
        try:
            reply = self.executor.carry_out(decision, now_ms, held)
        except (KafkaError, StorageError) as error:
            is_begun = decision.follow is not None and isinstance(error, KafkaError)
            return self._refuse(kept, held, correlation_id, error) if is_begun else None
        if reply is LATER or not self.has_template:
            return self._without_template(kept, reply, held, correlation_id)
        if reply is not None and kept.values and self.values(kept, decision, reply):
            kept.whole = kept.reply + kept.pack(*kept.values)
        return kept.size + data[position + KEY_END : start] + kept.whole

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
            self.parked.answer(held[:2], reply)
        return TAKEN

    def _refuse(self, kept: Kept, held: Held, correlation_id: int, error: Any) -> bytes:
        """A step after the first write has failed: something was written, so it cannot be decided again."""
        self._park(kept, held, correlation_id)
        self.parked.refuse(held[:2], error.code)
        return TAKEN

    def _park(self, kept: Kept, held: Held, correlation_id: int) -> None:
        connection, _, data, position, stop = held
        version = kept.ctx.api_version
        connection.out.append(None)
        self.parked.park(held[:2], ParkedRequest(self.route, version, correlation_id, data, position, stop))

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
        table: Table = connection.learned.get(self.api_key) or Table(connection.forms)
        connection.learned[self.api_key] = table
        if not table.is_worth_keeping():
            return
        version, start = ctx.api_version, position + BODY
        find, key = None, data[position + self.key_at : position + KEY_END]
        kept = Kept(ask, ctx)
        replied = None
        try:
            asked = self.REQUEST.cut(data, start, stop, version, header="request")
            if template:
                replied = self.REPLY.cut(template, REPLY_HEAD.size, len(template), version, header="tags")
            if isinstance(asked, OpenCut):
                find, kept.tail = self.finder(version), asked.tail
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
            kept.size, kept.reply, kept.whole = template[:4], replied.prefix, template[REPLY_HEAD.size :]
            if replied.statics:
                at = REPLY_HEAD.size + len(replied.prefix)
                kept.pack, kept.values = replied.pack, list(replied.unpack(template, at))
        decision.reply, decision.repeats = None, AGAIN
        if not self.MAY_WAIT:
            ctx.token = None
        self.prepare(kept, decision)
        table.keep(key, asked.prefix, kept, size, find)

    def finder(self, version: int) -> Finder:
        """The function that finds the field of any length in a request of a version, made when first needed."""
        found = self._finders.get(version)
        if found is None:
            assert isinstance(self.REQUEST, OpenShape)
            found = self._finders[version] = self.REQUEST.finder(version)
        return found
