"""Builds the reply of a Fetch without errors: the bytes that the codec would make of a FetchResponse.

Records are slices of segment files; only those of a small reply are read here.
"""

from __future__ import annotations

from itertools import pairwise
from struct import Struct
from typing import TYPE_CHECKING, Final, TypeAlias

from broker.partitions.fetch_session import Wanted
from broker.shortcuts.fetch_shape import FLEXIBLE_SINCE
from broker.wire.route import SMALL_FETCH_BYTES
from protocol.codec_support import uvarint
from storage.files.errors import StorageError

if TYPE_CHECKING:
    from broker.partitions.partition import Partition
    from broker.wire.reply_stream import Reply
    from storage.log.log import FileSlice

Found: TypeAlias = "list[tuple[Wanted, Partition, FileSlice | None]]"

_HEAD: Final = Struct(">iiihi")  # size, correlation id, throttle time, error, session id
_FLEXIBLE_HEAD: Final = Struct(">iiBihi")
_PARTITION: Final = Struct(">ihqqq")  # index, error, high watermark, last stable offset, log start offset
_INT32: Final = Struct(">i")
_TWO_INT64: Final = Struct(">qq")
_NO_PREFERENCE: Final = b"\xff\xff\xff\xff"  # of a replica to read from


def encode_fetch(
    found: Found, version: int, correlation_id: int, session_id: int, *, by_id: bool, committed: bool
) -> Reply:
    """The frame of a response without errors, of version 7 or later."""
    flexible = version >= FLEXIBLE_SINCE
    parts: list[bytes | FileSlice] = []
    size = 0
    after = _topic_starts(found)
    piece = _count(len(after) - 1, flexible)
    for first, end in pairwise(after):
        piece += _label(found[first][0], by_id, flexible) + _count(end - first, flexible)
        for wanted, partition, records in found[first:end]:
            aborted: bytes
            if not committed:
                aborted = b"\0" if flexible else _NO_PREFERENCE  # null
            elif records is None:
                aborted = _count(0, flexible)
            else:
                aborted = _aborted(partition, wanted.fetch_offset, records.end_offset, flexible)
            piece += (
                _PARTITION.pack(
                    wanted.partition,
                    0,
                    partition.high_watermark,
                    partition.last_stable_offset,
                    partition.log.log_start_offset,
                )
                + aborted
            )
            if version >= 11:
                piece += _NO_PREFERENCE
            piece += _count(0 if records is None else len(records), flexible)
            if records is not None:
                parts.append(piece)
                parts.append(records)
                size += len(piece) + len(records)
                piece = b""
            if flexible:
                piece += b"\0"
        if flexible:
            piece += b"\0"
    if flexible:
        piece += b"\0"
    size += len(piece)
    parts.append(piece)
    if flexible:
        head = _FLEXIBLE_HEAD.pack(size + 15, correlation_id, 0, 0, 0, session_id)
    else:
        head = _HEAD.pack(size + 14, correlation_id, 0, 0, session_id)
    if size + len(head) - 4 <= SMALL_FETCH_BYTES:
        try:
            return head + b"".join([part if isinstance(part, bytes) else part.read() for part in parts])
        except (OSError, StorageError):  # the connection handles it when it sends the parts
            pass
    return [head, *parts]


def _topic_starts(found: Found) -> list[int]:
    """Where each topic's partitions begin, and where the last one's end."""
    starts: list[int] = []
    last: Wanted | None = None
    for at, (wanted, _, _) in enumerate(found):
        if last is None or last.topic != wanted.topic:
            starts.append(at)
        last = wanted
    starts.append(len(found))
    return starts


def _label(wanted: Wanted, by_id: bool, flexible: bool) -> bytes:
    if by_id:
        return wanted.topic_id
    name = wanted.topic.encode()
    return _count(len(name), True) + name if flexible else len(name).to_bytes(2, "big") + name


def _aborted(partition: Partition, from_offset: int, end_offset: int, flexible: bool) -> bytes:
    pairs = partition.aborted_transactions(from_offset, end_offset)
    tags = b"\0" if flexible else b""
    return _count(len(pairs), flexible) + b"".join([_TWO_INT64.pack(*pair) + tags for pair in pairs])


def _count(count: int, flexible: bool) -> bytes:
    """The length of an array, a string or of records."""
    return uvarint(count + 1) if flexible else _INT32.pack(count)
