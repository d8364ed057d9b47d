"""From a frame to its handler and back: versions, decoding, errors. It holds no other rule of Kafka."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from struct import Struct
from typing import TYPE_CHECKING, Any, Final, Protocol

from broker.base.context import Context
from broker.turn.decision import LATER, NO_REPLY, Decision
from broker.turn.executor import Executor
from broker.wire.error_counts import settle_errors
from broker.wire.errors import Answered, empty_group_id_code, error_response, lost_code
from broker.wire.parked import ParkedRequest, ParkedRequests, chain
from broker.wire.refusals import Refusals, explain_malformed
from broker.wire.route import GROUP, HOT, Route, encode_reply
from broker.wire.shared_replies import SHARED, SharedReplies
from protocol.api import ApiKey
from protocol.declare import Message
from protocol.errors import ErrorCode, KafkaError, MalformedError
from protocol.header import decode_request_header
from storage.files.errors import StorageError

if TYPE_CHECKING:
    from broker.turn.flush_state import FlushState, Held
    from broker.turn.turn import Turn
    from broker.wire.connection import Connection
    from broker.wire.reply_stream import Reply
    from broker.wire.service import Shortcut

logger: Final = logging.getLogger("momus.router")

_FRAME_HEAD: Final = Struct(">ihhi")  # size, api key, api version, correlation id
PRODUCE: Final = int(ApiKey.PRODUCE)
METADATA: Final = int(ApiKey.METADATA)
JOIN_GROUP: Final = int(ApiKey.JOIN_GROUP)
API_VERSIONS: Final = int(ApiKey.API_VERSIONS)
METADATA_BYTES: Final = 1 << 20  # of a Metadata request: 40,000 topics; a million would block the loop for seconds


class Groups(Protocol):
    """Finds the shard of a group."""

    def require(self, group_id: str, ctx: Context) -> Any:
        """The loaded shard. Errors: NOT_COORDINATOR, COORDINATOR_LOAD_IN_PROGRESS."""


class Broker(Protocol):
    """What handlers are called with. The router itself uses only these two parts."""

    @property
    def groups(self) -> Groups:
        """The shards of the group coordinator."""

    @property
    def metadata_flush(self) -> FlushState:
        """The flush state of the metadata log."""


class Router:
    """Serves the requests that no shortcut serves."""

    def __init__(self, broker: Broker, routes: Iterable[Route], turn: Turn) -> None:
        self._broker = broker
        self._turn = turn
        self._metrics = turn.metrics
        self.routes = {route.api_key: route for route in routes}
        self.refusals = Refusals(self.routes, turn)
        self.refusal = self.refusals.refusal
        self.parked = ParkedRequests(turn, self.refusal, self._refused_later)
        self.executor = Executor(turn, self.parked)
        self._hots: dict[int, Any] = {}  # the classes of broker/requests, by API
        self.repeats: dict[int, Shortcut] | None = {}  # what serves repeats, by API; None: nothing does
        # is told of responses with errors: (connection, correlation id, request, response, the handler's words)
        self.refused: Callable[[Connection, int, Any, Any, str | None], None] | None = None
        # (Context, request) -> what puts refused parts into the response; None: no authorizer
        self.guard: Any = None
        self.quotas: Any = None  # the same for those who exceed a quota; None: there are no quotas
        self._decode_header = decode_request_header
        self.shared: SharedReplies | None = SharedReplies(turn)

    def use_construct(self) -> None:
        """Read every request and write every response with construct instead of generated functions."""
        from protocol import construct_codec  # 12 ms that serving otherwise saves

        self.repeats = self.shared = None
        self._decode_header = self.refusals.decode_header = construct_codec.decode_request_header
        for route in self.routes.values():
            route.codec = construct_codec.construct_codec

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
        """Serve one frame. Its slot is filled now, or later if it is parked."""
        route = self.routes.get(api_key)
        if route is None or not route.min_version <= api_version <= route.max_version:
            if api_key != API_VERSIONS or route is None:
                connection.refuse(f"API {api_key} version {api_version} is not served")
                return
            connection.out.append(self.refusals.unknown_version(route, correlation_id))
            self._turn.durability.speaks(connection)
            return
        self._accept(route, connection, data, position, stop, api_version, correlation_id)

    def dispatch_ours(
        self,
        connection: Connection,
        data: bytes,
        position: int,
        stop: int,
        api_key: int,
        api_version: int,
        correlation_id: int,
    ) -> None:
        """Serve one frame of a client of our own, in any version, also where a release is imitated."""
        self._accept(self.routes[api_key], connection, data, position, stop, api_version, correlation_id)

    def _accept(
        self,
        route: Route,
        connection: Connection,
        data: bytes,
        position: int,
        stop: int,
        api_version: int,
        correlation_id: int,
    ) -> None:
        api_key = route.api_key
        if api_key == METADATA and stop - position > METADATA_BYTES:
            connection.refuse(
                f"Metadata request of {stop - position} bytes, above {METADATA_BYTES}; name no topic to get all"
            )
            return
        if route.request is None:
            try:
                route.load()
            except (ImportError, OSError) as error:  # out of descriptors, say
                connection.refuse(f"API {api_key} cannot be served now: {error}")
                return
        shared, key = self.shared, None
        if shared is not None and api_key in shared.wanted and self.guard is None and self.quotas is None:
            if self._turn.durability.is_settled(self._broker.metadata_flush):
                key = shared.key(connection, self._decode_header, data, position, stop)
            if key is not None and shared.send(connection, api_key, key, correlation_id):
                return
        try:
            request, ctx = self._decode(connection, route, data, position, stop, api_version)
        except MalformedError as error:
            connection.refuse(f"malformed {explain_malformed(memoryview(data)[position + 4 : stop], error)}")
            return
        generation = self._turn.learned.generation
        if connection.generation != self._turn.learned.generation:
            connection.forget(self._turn.learned.generation)
        slot = connection.next_slot
        connection.out.append(None)
        self._metrics.counts[api_key] += 1
        reply = self._serve(connection, slot, route, request, ctx, api_version, correlation_id, data, position, stop)
        if shared is not None and api_key in SHARED:
            shared.keep(api_key, key, request, reply, generation)

    def _serve(
        self,
        connection: Connection,
        slot: int,
        route: Route,
        request: Any,
        ctx: Context,
        api_version: int,
        correlation_id: int,
        data: bytes,
        position: int,
        stop: int,
    ) -> Reply:
        """Decide and reply. Returns the reply; None: it comes later, or has errors."""
        api_key = route.api_key
        ctx.token = (connection, slot)
        parked = ParkedRequest(route, api_version, correlation_id, (data, position, stop))
        held = (connection, slot, data, position, stop)
        decision = self._decide(route, ctx, request, parked, held)
        response = decision.reply
        has_errors = isinstance(response, Message) and settle_errors(self._metrics, api_key, api_version, response)
        if has_errors and self.refused is not None:
            self.refused(connection, correlation_id, request, response, decision.why)
        if decision.close:
            connection.refuse(f"{type(request).__name__} is refused, which its client learns by this alone")
        elif response is LATER:
            if decision.repeats is not None:
                self._keep(route, (data, position, stop), ctx, decision, None)
        elif response is NO_REPLY:
            connection.fill(slot, b"")
        else:
            self._turn.durability.speaks(connection)
            reply = encode_reply(route, api_version, correlation_id, response)
            connection.fill(slot, reply)
            if not has_errors:
                if decision.repeats is not None:
                    self._keep(route, (data, position, stop), ctx, decision, reply)
                return reply
        return None

    def _keep(
        self, route: Route, frame: tuple[bytes, int, int], ctx: Context, decision: Decision, reply: Reply
    ) -> None:
        """Keep a request, which may be parked, for its repeats, unless its topics may be lost with a failed write."""
        if self.repeats is None or not self._turn.durability.is_settled(self._broker.metadata_flush):
            return
        hot = self._hot(route)
        if route.api_key not in self.repeats:
            self.repeats[route.api_key] = hot.serve
        hot.keep(ctx.connection, frame, ctx, decision, reply)

    def _hot(self, route: Route) -> Any:
        """The object of a file in broker/requests, made when first needed."""
        hot = self._hots.get(route.api_key)
        if hot is None:
            hot = self._hots[route.api_key] = route.handler(self._broker)
        return hot

    def _decode(
        self, connection: Connection, route: Route, data: bytes, position: int, stop: int, api_version: int
    ) -> tuple[Any, Context]:
        size = stop - position
        frame: bytes | memoryview
        if route.api_key == PRODUCE or size > 4096:
            frame = memoryview(data)[position + 4 : stop]
        else:
            frame = data[position + 4 : stop]
        header, at = self._decode_header(frame, 0)
        connection.client = header.client_id or ""
        # bytes after the request are ignored, as in Kafka: librdkafka sends some with Metadata v13
        request, _ = route.codec(route.request, api_version).decode(frame, at)
        turn = self._turn
        ctx = Context(
            turn.now_ms,
            turn.env.rng,
            api_key=route.api_key,
            api_version=api_version,
            client_id=connection.client,
            client_host=connection.host,
            node_id=connection.node_id,
            listener=connection.listener,
        )
        ctx.connection = connection
        ctx.local_host = connection.local_host
        return request, ctx

    def _decide(self, route: Route, ctx: Context, request: Any, parked: ParkedRequest, held: Held) -> Decision:
        """Ask the guard, if there is one, and the handler, and carry out the decision; its reply is the final one."""
        quotas = self.quotas
        if self.guard is None and quotas is None:
            return self._call(route, ctx, request, parked, held)
        try:
            merges = [each.check(ctx, request) for each in (self.guard, quotas) if each is not None]
        except KafkaError as error:
            return self._refuse(route, ctx, request, held, error.code, error.message)
        except Answered as answered:
            decision = Decision(answered.response)
            self.executor.hold(decision, held)
            return decision
        merge = parked.merge = chain([each for each in merges if each is not None])
        clock = self._turn.env.clock
        began_us = clock.monotonic_us()
        decision = self._call(route, ctx, request, parked, held)
        if quotas is not None:
            quotas.took(ctx, clock.monotonic_us() - began_us)
            decision.repeats = None  # served from its bytes, it would not be measured
        if merge is not None:
            decision.repeats = None
            if decision.reply is not LATER and decision.reply is not NO_REPLY:
                decision.reply = merge(decision.reply)
        access = ctx.access
        if access is not None:
            decision.why = decision.why or access.why
            decision.close = decision.close or access.closes
        return decision

    def _call(self, route: Route, ctx: Context, request: Any, parked: ParkedRequest, held: Held) -> Decision:
        """Call the handler and carry out its decision."""
        broker = self._broker
        try:
            if route.target == HOT:
                decision: Decision = self._hot(route).message(ctx, request)
            elif route.target != GROUP:
                decision = route.handler(broker, ctx, request)
            else:
                if not request.group_id:
                    code = empty_group_id_code(request, route.api_key, ctx.api_version)
                    raise KafkaError(code, "GroupId can't be empty.")
                shard = self._shard_of(route, ctx, request)
                decision = route.handler(shard.machine, ctx, request)
                decision.shard = shard
                if decision.reply is LATER:
                    shard.parked.add(ctx.token)
            waits = decision.reply is LATER
            if waits:  # park it first: the same decision may wake it
                self.parked.park(ctx.token, parked)
            # Kafka's join does not wait for its record
            reply = self.executor.carry_out(decision, ctx.now_ms, held, is_clients=route.api_key != JOIN_GROUP)
            if reply is LATER and not waits:
                self.parked.park(ctx.token, parked)
            decision.reply = reply
        except KafkaError as error:
            return self._refuse(route, ctx, request, held, error.code, error.message)
        except (OSError, StorageError) as error:
            logger.error("%s v%d failed: %s", type(request).__name__, ctx.api_version, error)
            return self._refuse(route, ctx, request, held, lost_code(route.api_key))
        except Exception:
            logger.exception("%s v%d failed", type(request).__name__, ctx.api_version)
            return self._refuse(route, ctx, request, held, ErrorCode.UNKNOWN_SERVER_ERROR)
        return decision

    def _refuse(
        self, route: Route, ctx: Context, request: Any, held: Held, code: ErrorCode, message: str | None = None
    ) -> Decision:
        """The whole request is refused. A Produce with acks=0 has no reply: its connection is closed."""
        access = ctx.access
        decision = Decision(
            error_response(request, route.api_key, ctx.api_version, code, message),
            close=route.api_key == PRODUCE and request.acks == 0,
            why=message or (None if access is None else access.why),
        )
        self.executor.hold(decision, held)
        return decision

    def _shard_of(self, route: Route, ctx: Context, request: Any) -> Any:
        """The shard of the request's group. What is wrong with the request itself is told before NOT_COORDINATOR."""
        try:
            return self._broker.groups.require(request.group_id, ctx)
        except KafkaError:
            if route.check:
                route.check(self._broker, ctx, request)
            raise

    def _refused_later(self, connection: Connection, parked: ParkedRequest, response: Any) -> None:
        """A parked request is answered with errors."""
        if self.refused is not None:
            data, position, stop = parked.frame
            request, _ = self._decode(connection, parked.route, data, position, stop, parked.api_version)
            self.refused(connection, parked.correlation_id, request, response, None)
