"""From a frame to its handler and back: versions, decoding, errors. It holds no other rule of Kafka."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from struct import Struct
from typing import TYPE_CHECKING, Any, Final, Protocol

from broker.base.result import PARKED, Context, Result
from broker.wire.error_counts import count_errors
from broker.wire.errors import Answered, empty_group_id_code, error_response, lost_code
from broker.wire.parked import ParkedRequest, ParkedRequests
from broker.wire.route import GROUP, REPLY_HEAD, Route, encode_reply
from protocol.api import ApiKey
from protocol.declare import Message
from protocol.errors import ErrorCode, KafkaError, MalformedError
from protocol.header import decode_request_header
from storage.files.errors import StorageError

if TYPE_CHECKING:
    from broker.turn.durability import FlushState, Held
    from broker.turn.turn import Turn
    from broker.wire.connection import Connection
    from broker.wire.reply_stream import Reply

logger = logging.getLogger("momus.router")

_FRAME_HEAD: Final = Struct(">ihhi")  # size, api key, api version, correlation id
PRODUCE: Final = int(ApiKey.PRODUCE)
METADATA: Final = int(ApiKey.METADATA)
API_VERSIONS: Final = int(ApiKey.API_VERSIONS)
IN_PARTS: Final = (ApiKey.SHARE_FETCH, ApiKey.SHARE_ACKNOWLEDGE)  # a part of their replies may be refused
METADATA_BYTES = 1 << 20  # of a Metadata request: 40,000 topics; a million would block the loop for seconds


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


def _explain(frame: memoryview, error: MalformedError) -> str:
    """Which field of a request is malformed, at which byte and why; for a large frame, the codec's message."""
    try:
        from protocol.tree import explain_request  # with construct 12 ms, and few brokers meet a malformed frame
    except (ImportError, OSError):  # out of descriptors, say
        return str(error)
    return explain_request(frame) or str(error)


def _chain(merges: list[Callable[[Any], Any]]) -> Callable[[Any], Any] | None:
    """Several of what changes a response, one after the other."""
    if len(merges) < 2:
        return merges[0] if merges else None

    def merge(response: Any) -> Any:
        for each in merges:
            response = each(response)
        return response

    return merge


class Router:
    """Serves the requests that no shortcut serves."""

    def __init__(self, broker: Broker, routes: Iterable[Route], turn: Turn) -> None:
        self._broker = broker
        self._turn = turn
        self._metrics = turn.metrics
        self.parked = ParkedRequests(turn, self.refusal, self._refused_later)
        self.routes = {route.api_key: route for route in routes}
        # gives a reply to the shortcut that may repeat it: (connection, request body, version, sources, reply)
        self.keep: Callable[[Connection, bytes, int, Any, bytes], None] | None = None
        # is told of responses with errors: (connection, correlation id, request, response, the handler's words)
        self.refused: Callable[[Connection, int, Any, Any, str | None], None] | None = None
        # (Context, request) -> what puts refused parts into the response; None: no authorizer
        self.guard: Any = None
        self.quotas: Any = None  # the same for those who exceed a quota; None: there are no quotas
        self._decode_header = decode_request_header

    def use_construct(self) -> None:
        """Read every request and write every response with construct instead of generated functions."""
        from protocol import construct_codec  # 12 ms that serving otherwise saves

        self.keep = None
        self._decode_header = construct_codec.decode_request_header
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
            self._answer_unknown_version(connection, route, correlation_id)
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
        try:
            request, ctx = self._decode(connection, route, data, position, stop, api_version)
        except MalformedError as error:
            connection.refuse(f"malformed {_explain(memoryview(data)[position + 4 : stop], error)}")
            return
        slot = connection.next_slot
        connection.out.append(None)
        self._metrics.counts[api_key] += 1
        self._serve(connection, slot, route, request, ctx, api_version, correlation_id, data, position, stop)

    def again(
        self, connection: Connection, slot: int, data: bytes, position: int, stop: int, edit: Callable[[Any], None]
    ) -> None:
        """Serve a frame whose slot a shortcut has taken and cannot fill. `edit` changes the request first."""
        _, api_key, api_version, correlation_id = _FRAME_HEAD.unpack_from(data, position)
        route = self.routes[api_key]
        route.load()
        request, ctx = self._decode(connection, route, data, position, stop, api_version)
        edit(request)
        self._turn.begin()
        self._serve(connection, slot, route, request, ctx, api_version, correlation_id, data, position, stop)

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
    ) -> None:
        api_key = route.api_key
        ctx.token = (connection, slot)
        parked = ParkedRequest(route, api_version, correlation_id, data, position, stop)
        response = self._handle(route, ctx, request, parked)
        has_errors = isinstance(response, Message) and count_errors(self._metrics, api_key, response)
        if has_errors and self.refused is not None:
            self.refused(connection, correlation_id, request, response, ctx.why)
        if ctx.close_connection:
            connection.refuse(f"{type(request).__name__} is refused, which its client learns by this alone")
        elif response is PARKED:
            return
        elif response is None:  # acks=0: nothing is sent
            connection.fill(slot, b"")
        else:
            self._hold(ctx, (connection, slot, data, position, stop), api_key)
            reply = encode_reply(route, api_version, correlation_id, response)
            connection.fill(slot, reply)
            if ctx.sources is not None and self.keep is not None and not has_errors and isinstance(reply, bytes):
                self.keep(connection, data[position + 12 : stop], api_version, ctx.sources, reply[8:])

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

    def _handle(self, route: Route, ctx: Context, request: Any, parked: ParkedRequest) -> Any:
        """Ask the guard, if there is one, and the handler. Answers the response, PARKED, or None for no reply."""
        quotas = self.quotas
        if self.guard is None and quotas is None:
            return self._call(route, ctx, request, parked)
        try:
            merges = [each.check(ctx, request) for each in (self.guard, quotas) if each is not None]
        except KafkaError as error:
            return error_response(request, route.api_key, ctx.api_version, error.code, error.message)
        except Answered as answered:
            return answered.response
        merge = parked.merge = _chain([each for each in merges if each is not None])
        clock = self._turn.env.clock
        began_us = clock.monotonic_us()
        response = self._call(route, ctx, request, parked)
        if quotas is not None:
            quotas.took(ctx, clock.monotonic_us() - began_us)
        return response if merge is None or response is PARKED else merge(response)

    def _call(self, route: Route, ctx: Context, request: Any, parked: ParkedRequest) -> Any:
        """Call the handler and carry out its result."""
        broker = self._broker
        try:
            if route.target == GROUP:
                if not request.group_id:
                    code = empty_group_id_code(request, route.api_key, ctx.api_version)
                    raise KafkaError(code, "GroupId can't be empty.")
                shard = self._shard_of(route, ctx, request)
                result = route.handler(shard.machine, ctx, request)
                ctx.shard = None if result.appends else shard
                if result.response is PARKED:  # park it first: the same result may wake it
                    self.parked.park(ctx.token, parked)
                    shard.parked.add(ctx.token)
                if result.records and route.api_key != ApiKey.JOIN_GROUP:  # Kafka's join does not wait for its record
                    shard.apply_of_client(result, ctx.now_ms)
                else:
                    shard.apply(result, ctx.now_ms)
                return result.response
            result = route.handler(broker, ctx, request)
            if result is PARKED:
                self.parked.park(ctx.token, parked)
            elif isinstance(result, Result):
                for shard, _ in (*result.appends, *result.commits):
                    shard.check_replicas()
                for shard, records in result.appends:
                    shard.append(records, ctx.now_ms)
                for shard, commit in result.commits:
                    commit.append_to(shard, ctx.now_ms)
                return result.response
            return result
        except KafkaError as error:
            ctx.why = error.message or ctx.why
            return error_response(request, route.api_key, ctx.api_version, error.code, error.message)
        except (OSError, StorageError) as error:
            logger.error("%s v%d failed: %s", type(request).__name__, ctx.api_version, error)
            return error_response(request, route.api_key, ctx.api_version, lost_code(route.api_key))
        except Exception:
            logger.exception("%s v%d failed", type(request).__name__, ctx.api_version)
            code = ErrorCode.UNKNOWN_SERVER_ERROR
            return error_response(request, route.api_key, ctx.api_version, code)

    def _shard_of(self, route: Route, ctx: Context, request: Any) -> Any:
        """The shard of the request's group. What is wrong with the request itself is told before NOT_COORDINATOR."""
        try:
            return self._broker.groups.require(request.group_id, ctx)
        except KafkaError:
            if route.check:
                route.check(self._broker, ctx, request)
            raise

    def _hold(self, ctx: Context, held: Held, api_key: int) -> None:
        """Hold the reply until the logs that it depends on are durable: shards, and partitions it wrote to."""
        durability = self._turn.durability
        if api_key == PRODUCE:
            for flush_state in ctx.flush_states:
                durability.touch(flush_state)
                durability.hold(flush_state, held)
            metadata = self._broker.metadata_flush
            if not durability.is_settled(metadata):  # the topic itself may not be durable yet
                durability.hold(metadata, held)
        elif ctx.shard is not None:  # it depends on its group and the metadata only
            durability.hold(ctx.shard.flush_state, held)
            durability.hold(self._broker.metadata_flush, held)
        else:
            for flush_state in (*ctx.flush_states, *durability.unsettled_shards()):
                durability.hold(flush_state, held)
        durability.speaks(held[0])

    def _answer_unknown_version(self, connection: Connection, route: Route, correlation_id: int) -> None:
        """Answer ApiVersions of a newer, unknown version in version 0, with the supported range.

        Source: KIP-511.
        """
        from protocol.messages.cluster import ApiVersion, ApiVersionsResponse  # 1 ms

        route.load()
        keys = [ApiVersion(api_key=API_VERSIONS, min_version=route.min_version, max_version=route.max_version)]
        response = ApiVersionsResponse(error_code=ErrorCode.UNSUPPORTED_VERSION, api_keys=keys)
        count_errors(self._metrics, API_VERSIONS, response)
        connection.out.append(encode_reply(route, 0, correlation_id, response))
        self._turn.durability.speaks(connection)

    # -- refusing

    def _refused_later(self, connection: Connection, parked: ParkedRequest, response: Any) -> None:
        """A parked request is answered with errors."""
        if self.refused is not None:
            data, position, stop = parked.frame
            request, ctx = self._decode(connection, parked.route, data, position, stop, parked.api_version)
            self.refused(connection, parked.correlation_id, request, response, ctx.why)

    def refuse_held(self, held: Iterable[Held], without: Callable[[Any, Any], None] | None = None) -> None:
        """Answer requests whose effects were thrown away with a retriable error.

        `without`: (request, response) -> None, takes out of the response what was thrown away.
        """
        for connection, slot, data, position, stop in held:
            if not connection.closed and slot >= connection.base:
                frame, reply = data[position:stop], None
                if without is not None and _FRAME_HEAD.unpack_from(frame)[1] in IN_PARTS:
                    reply = self._refused_part(frame, connection.out[slot - connection.base], without)
                connection.fill(slot, self.refusal(frame, None) if reply is None else reply)
                self._turn.durability.speaks(connection)

    def _refused_part(self, frame: bytes, reply: Reply, without: Callable[[Any, Any], None]) -> Reply:
        """A reply that was to be sent, but for a part. None: all of it is to be refused."""
        if reply is None:
            return None
        header, at = self._decode_header(frame, 4)
        route = self.routes[header.api_key]
        request, _ = route.codec(route.request, header.api_version).decode(frame, at)
        try:
            parts = [reply] if isinstance(reply, bytes) else reply
            data = b"".join([part if isinstance(part, bytes) else part.read() for part in parts])
        except (OSError, StorageError):  # of the records, say
            return None
        response, _ = route.codec(route.response, header.api_version).decode(data, REPLY_HEAD.size + 1)
        without(request, response)
        count_errors(self._metrics, header.api_key, response)
        return encode_reply(route, header.api_version, header.correlation_id, response)

    def refusal(self, frame: bytes, code: ErrorCode | None) -> Reply:
        """The reply that refuses a request. `frame` includes the size field."""
        header, at = self._decode_header(frame, 4)
        route = self.routes[header.api_key]
        route.load()
        view = memoryview(frame) if header.api_key == PRODUCE else frame
        request, _ = route.codec(route.request, header.api_version).decode(view, at)
        if header.api_key == PRODUCE and request.acks == 0:
            return b""
        if code is None:
            code = lost_code(header.api_key)
        response = error_response(request, header.api_key, header.api_version, code)
        count_errors(self._metrics, header.api_key, response)
        return encode_reply(route, header.api_version, header.correlation_id, response)
