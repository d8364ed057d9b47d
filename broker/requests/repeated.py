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
from struct import Struct
from struct import error as StructError  # noqa: N812  # the name that other modules give it
from typing import TYPE_CHECKING, Any, ClassVar, Final

from broker.requests.kept import Form, Kept, Table
from broker.turn.decision import AGAIN, LATER
from broker.wire.parked import ParkedRequest
from broker.wire.route import REPLY_HEAD
from broker.wire.service import TAKEN
from protocol.codec_support import read_uvarint
from protocol.errors import KafkaError, MalformedError
from protocol.shape import OpenCut, OpenShape, Shape
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
INT32: Final = Struct(">i")
MOST_BYTES: Final = 65_536  # of a request and its reply that are kept, without a field of any length


def long_size(data: bytes, at: int, is_compact: bool) -> tuple[int, int]:
    """Of a field of bytes: its length plus one, and where it begins, by the length at `at` in four bytes or a varint.

    0: it is null, or the length is not valid.
    """
    try:
        if is_compact:
            return read_uvarint(data, at)
        return max(INT32.unpack_from(data, at)[0] + 1, 0), at + 4
    except (IndexError, MalformedError, StructError):
        return 0, at


def _correlation_id(held: Held) -> int:
    _, _, data, position, _ = held
    found: int = INT32.unpack_from(data, position + KEY_END)[0]
    return found


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

    def serve(self, form: Form, connection: Connection, data: bytes, position: int, stop: int) -> bytes | None:
        """Serve a repeat; see service.Shortcut."""
        start = position + BODY
        if form.frame_bytes:
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
            kept = self._find_open(form, data, start, stop)
            if kept is None:
                return None
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
            return self._refuse(kept, held, error) if is_begun else None
        if reply is LATER or not self.has_template:
            return self._without_template(kept, reply, held)
        if reply is not None and kept.values and self.values(kept, decision, reply):
            kept.whole = kept.reply + kept.pack(*kept.values)
        return kept.size + data[position + KEY_END : start] + kept.whole

    def _find_open(self, form: Form, data: bytes, start: int, stop: int) -> Kept | None:
        """The request of a field of any length that this one repeats; its Ask is filled."""
        for prefix_bytes in form.prefix_sizes:
            end = start + prefix_bytes
            kept = form.kept.get(data[start:end])
            if kept is not None:
                break
        else:
            return None
        if end >= stop:
            return None
        size, begin = data[end], end + 1
        if size > 127 or not kept.is_compact:
            size, begin = long_size(data, end, kept.is_compact)
        last = begin + size - 1
        if not size or data[last:stop] != kept.tail or last + len(kept.tail) != stop:
            return None
        self.fill(kept.ask, (memoryview(data)[begin:last],), 1)
        return kept

    def _without_template(self, kept: Kept, reply: Any, held: Held) -> bytes:
        """A reply that is written again, or a request that waits."""
        if reply is LATER:
            self._park(kept, held)
            return TAKEN
        whole = self.write_reply(kept, reply, _correlation_id(held))
        if isinstance(whole, bytes):
            return whole
        if whole is not None:
            connection = held[0]
            connection.out.append(None)
            connection.fill(held[1], whole)
            return TAKEN
        self._park(kept, held)
        self.parked.answer(held[:2], reply)
        return TAKEN

    def _refuse(self, kept: Kept, held: Held, error: Any) -> bytes:
        """A step after the first write has failed: something was written, so it cannot be decided again."""
        self._park(kept, held)
        self.parked.refuse(held[:2], error.code)
        return TAKEN

    def _park(self, kept: Kept, held: Held) -> None:
        held[0].out.append(None)
        parked = ParkedRequest(self.route, kept.ctx.api_version, _correlation_id(held), held[2:])
        self.parked.park(held[:2], parked)

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
        table: Table = connection.learned.get(self.api_key) or Table(self.api_key, connection.forms)
        connection.learned[self.api_key] = table
        if not table.is_worth_keeping():
            return
        version, start = ctx.api_version, position + BODY
        key = data[position + self.key_at : position + KEY_END]
        kept = Kept(ask, ctx)
        replied = None
        try:
            asked = self.REQUEST.cut(data, start, stop, version, header="request")
            if template:
                replied = self.REPLY.cut(template, REPLY_HEAD.size, len(template), version, header="tags")
            if isinstance(asked, OpenCut):
                kept.tail, kept.is_compact = asked.tail, version >= self.REQUEST.cls.FLEXIBLE_SINCE
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
        table.keep(key, asked.prefix, kept, size, 0 if isinstance(asked, OpenCut) else stop - position)
