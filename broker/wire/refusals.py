"""Refuses requests by their frames: those whose effects were thrown away, parked ones, unknown versions; says why one
is malformed."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from struct import Struct
from typing import TYPE_CHECKING, Any, Final

from broker.wire.error_counts import settle_errors
from broker.wire.errors import error_response, lost_code
from broker.wire.route import REPLY_HEAD, Route, encode_reply
from protocol.api import ApiKey
from protocol.errors import ErrorCode, MalformedError
from protocol.header import decode_request_header
from storage.files.errors import StorageError

if TYPE_CHECKING:
    from broker.turn.flush_state import Held
    from broker.turn.turn import Turn
    from broker.wire.reply_stream import Reply

_FRAME_HEAD: Final = Struct(">ihhi")  # size, api key, api version, correlation id
PRODUCE: Final = int(ApiKey.PRODUCE)
IN_PARTS: Final = (ApiKey.SHARE_FETCH, ApiKey.SHARE_ACKNOWLEDGE)  # a part of their replies may be refused


def explain_malformed(frame: memoryview, error: MalformedError) -> str:
    """Which field of a request is malformed, at which byte and why; for a large frame, the codec's message."""
    try:
        from protocol.tree import explain_request  # with construct 12 ms, and few brokers meet a malformed frame
    except (ImportError, OSError):  # out of descriptors, say
        return str(error)
    return explain_request(frame) or str(error)


class Refusals:
    """Makes the replies that refuse requests."""

    def __init__(self, routes: dict[int, Route], turn: Turn) -> None:
        self.routes = routes
        self._turn = turn
        self.decode_header: Any = decode_request_header

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
        header, at = self.decode_header(frame, 4)
        route = self.routes[header.api_key]
        request, _ = route.codec(route.request, header.api_version).decode(frame, at)
        try:
            parts = [reply] if isinstance(reply, bytes) else reply
            data = b"".join([part if isinstance(part, bytes) else part.read() for part in parts])
        except (OSError, StorageError):  # of the records, say
            return None
        response, _ = route.codec(route.response, header.api_version).decode(data, REPLY_HEAD.size + 1)
        without(request, response)
        settle_errors(self._turn.metrics, header.api_key, header.api_version, response)
        return encode_reply(route, header.api_version, header.correlation_id, response)

    def refusal(self, frame: bytes, code: ErrorCode | None) -> Reply:
        """The reply that refuses a request. `frame` includes the size field."""
        header, at = self.decode_header(frame, 4)
        route = self.routes[header.api_key]
        route.load()
        view = memoryview(frame) if header.api_key == PRODUCE else frame
        request, _ = route.codec(route.request, header.api_version).decode(view, at)
        if header.api_key == PRODUCE and request.acks == 0:
            return b""
        if code is None:
            code = lost_code(header.api_key)
        response = error_response(request, header.api_key, header.api_version, code)
        settle_errors(self._turn.metrics, header.api_key, header.api_version, response)
        return encode_reply(route, header.api_version, header.correlation_id, response)

    def unknown_version(self, route: Route, correlation_id: int) -> Reply:
        """The reply to ApiVersions of a newer, unknown version: version 0, with the supported range.

        Source: KIP-511.
        """
        from protocol.messages.cluster import ApiVersion, ApiVersionsResponse  # 1 ms

        route.load()
        key = ApiVersion(api_key=route.api_key, min_version=route.min_version, max_version=route.max_version)
        response = ApiVersionsResponse(error_code=ErrorCode.UNSUPPORTED_VERSION, api_keys=[key])
        settle_errors(self._turn.metrics, route.api_key, 0, response)
        return encode_reply(route, 0, correlation_id, response)
