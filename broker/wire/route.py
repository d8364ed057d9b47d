"""A line of the routing table, and how a response becomes a reply."""

from __future__ import annotations

import importlib
from contextlib import suppress
from struct import Struct
from typing import TYPE_CHECKING, Any, Final

from protocol.api import ApiKey, request_class, response_class
from protocol.codegen import codec
from storage.files.errors import StorageError

if TYPE_CHECKING:
    from collections.abc import Iterable

    from broker.config.releases import Release
    from broker.wire.reply_stream import Reply

REPLY_HEAD: Final = Struct(">ii")  # size, correlation id
BROKER: Final = "broker"  # handler(broker, ctx, request)
HOT: Final = "hot"  # a class of broker/requests, made with the broker; its message(ctx, request) is called
GROUP: Final = "group"  # handler(machine of request.group_id's shard, ctx, request)
NULL_PROTOCOL_SINCE: Final = 7  # JoinGroup
_WITH_RECORDS: Final = (ApiKey.FETCH, ApiKey.SHARE_FETCH)  # in their responses, as slices of files
MOST_INT32: Final = 2**31 - 1
SMALL_RECORDS_BYTES: Final = 1 << 15
SMALL_FETCH_BYTES: Final = 1 << 16  # up to this size, reading the records at once is faster than streaming them
# whose replies may be large however small the request is; where a client waits for one, it waits for no other
LARGE_REPLIES: Final = frozenset(
    (
        ApiKey.METADATA,
        ApiKey.DESCRIBE_CONFIGS,
        ApiKey.DESCRIBE_TOPIC_PARTITIONS,
        ApiKey.DESCRIBE_LOG_DIRS,
        ApiKey.DESCRIBE_ACLS,
        ApiKey.LIST_GROUPS,
        ApiKey.DESCRIBE_GROUPS,
        ApiKey.LIST_TRANSACTIONS,
        ApiKey.DESCRIBE_PRODUCERS,
    )
)


class Route:
    """One API: its versions, its handler, and what the handler is called with."""

    __slots__ = (
        "api_key",
        "check",
        "codec",
        "flexible_since",
        "handler",
        "max_version",
        "min_version",
        "request",
        "response",
        "target",
    )

    def __init__(
        self, api_key: int, min_version: int, max_version: int, handler: str, target: str = BROKER, check: str = ""
    ) -> None:
        self.api_key = api_key
        self.min_version = min_version
        self.max_version = max_version
        self.target = target
        self.handler: Any = handler  # "module:function" until first used, to start faster
        self.check: Any = check  # of a GROUP handler: (broker, ctx, request) -> None, what it refuses for any group
        self.request: Any = None
        self.response: Any = None
        self.flexible_since = 0
        self.codec: Any = codec  # (message class, version) -> its codec

    def clip(self, release: Release) -> None:
        """Serve clients no version that this release does not know."""
        self.min_version, self.max_version = release.clip(self.api_key, self.min_version, self.max_version)

    def load(self) -> None:
        """Import the handler and the messages, once.

        Errors: ImportError, OSError; LookupError: no module of protocol/messages declares the request or the response.
        """
        if self.request is not None:
            return
        path, _, name = self.handler.partition(":")
        module = importlib.import_module(f"broker.{'requests' if self.target == HOT else 'handlers'}.{path}")
        handler = getattr(module, name)
        if self.check:
            self.check = getattr(module, self.check)
        request, self.response = request_class(self.api_key), response_class(self.api_key)
        self.handler = handler
        self.flexible_since = request.FLEXIBLE_SINCE
        self.request = request


def offered(routes: Iterable[Route]) -> list[tuple[int, int, int]]:
    """API key, first and last version of what is served."""
    return [
        (each.api_key, each.min_version, each.max_version) for each in routes if each.min_version <= each.max_version
    ]


def encode_reply(
    route: Route, api_version: int, correlation_id: int, response: Any, records_bytes: int = MOST_INT32
) -> Reply:
    """A whole frame: size, response header, body. ApiVersions has the old header in every version.

    records_bytes   of all slices of files in it, or more, where that is known: few are read at once.
    """
    tags = b"\x00" if api_version >= route.flexible_since and route.api_key != ApiKey.API_VERSIONS else b""
    message = route.codec(route.response, api_version)
    if records_bytes <= SMALL_RECORDS_BYTES:
        try:
            body: bytes = message.encode(response)
        except (OSError, StorageError):  # the connection handles it when it sends the parts
            pass
        else:
            return REPLY_HEAD.pack(4 + len(tags) + len(body), correlation_id) + tags + body
    if route.api_key in _WITH_RECORDS:
        parts = message.encode_parts(response)
        size = 4 + len(tags) + sum(map(len, parts))
        head = REPLY_HEAD.pack(size, correlation_id) + tags
        if size <= SMALL_FETCH_BYTES:
            with suppress(OSError, StorageError):  # the connection handles it when it sends the parts
                return head + b"".join([part if isinstance(part, bytes) else part.read() for part in parts])
        return [head, *parts]
    if route.api_key == ApiKey.JOIN_GROUP and api_version >= NULL_PROTOCOL_SINCE and not response.protocol_name:
        response.protocol_name = None  # none, as in an error, is null where a version has it (KIP-559)
    body = message.encode(response)
    return REPLY_HEAD.pack(4 + len(tags) + len(body), correlation_id) + tags + body
