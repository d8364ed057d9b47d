"""What has to be done with the reply to each API: nothing, look for addresses at its end, or read all of it."""

from __future__ import annotations

from typing import Final

from broker.proxy.varint import CUT, after_tags, varint
from protocol.api import ApiKey, response_class
from protocol.errors import MalformedError

PASSES: Final = 0  # the reply passes as bytes
ENDS_WITH_ADDRESSES: Final = 1  # of nodes, in its last tagged fields, and seldom: they are looked for there
HAS_ADDRESSES: Final = 2  # it is read, changed and written again
KNOWN_KEYS: Final = 128  # of APIs: 0 and below this; they are counted
REPLY_WITH_ADDRESSES: Final = (
    ApiKey.METADATA,
    ApiKey.FIND_COORDINATOR,
    ApiKey.DESCRIBE_CLUSTER,
    ApiKey.DESCRIBE_QUORUM,
    ApiKey.SHARE_FETCH,
    ApiKey.SHARE_ACKNOWLEDGE,
    ApiKey.API_VERSIONS,  # what of it the proxy cannot read is taken out
)
ADDRESSES_SINCE: Final = {int(ApiKey.PRODUCE): 10, int(ApiKey.FETCH): 16}  # KIP-951
CREATE_TOPICS: Final = int(ApiKey.CREATE_TOPICS)
FETCH: Final = int(ApiKey.FETCH)
PRODUCE: Final = int(ApiKey.PRODUCE)
API_VERSIONS: Final = int(ApiKey.API_VERSIONS)
SASL_HANDSHAKE: Final = int(ApiKey.SASL_HANDSHAKE)
SASL_AUTHENTICATE: Final = int(ApiKey.SASL_AUTHENTICATE)


def readable() -> dict[int, tuple[int, int]]:
    """First and last version that can be read, of each API whose replies may have addresses."""
    found = {}
    for key in (*REPLY_WITH_ADDRESSES, *ADDRESSES_SINCE):
        declared = response_class(key)
        found[int(key)] = declared.MIN_VERSION, declared.MAX_VERSION
    return found


def kind_of(api_key: int, version: int) -> int:
    """One of the three above."""
    if api_key in ADDRESSES_SINCE:
        return ENDS_WITH_ADDRESSES if version >= ADDRESSES_SINCE[api_key] else PASSES
    return HAS_ADDRESSES if api_key in REPLY_WITH_ADDRESSES else PASSES


def is_answered(data: bytes, position: int, stop: int, version: int) -> tuple[bool, int]:
    """Whether a Produce request, a frame with its size field, asks for an answer: its acks are not 0; where they end.

    Errors: MalformedError: the frame ends before its acks.
    """
    at = position + 14  # after size, API key, version, correlation id and the size of the client id
    if at > stop:
        raise MalformedError("a Produce request without a header")
    at += max(0, int.from_bytes(data[at - 2 : at], "big", signed=True))
    if version >= 9:
        count, at = varint(data, at, stop)
        at = after_tags(data, at, stop, count) if at != CUT else CUT
        size, at = varint(data, at, stop) if at != CUT else (0, CUT)
        at = at + max(0, size - 1) if at != CUT else stop
    elif version >= 3:
        at += 2 + max(0, int.from_bytes(data[at : at + 2], "big", signed=True))
    if at + 2 > stop:
        raise MalformedError("a Produce request ends before its acks")
    return data[at] != 0 or data[at + 1] != 0, at + 2
