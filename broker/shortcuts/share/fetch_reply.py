"""Builds the reply of a ShareFetch with records of one partition: the bytes that the codec would make of it."""

from __future__ import annotations

from struct import Struct
from typing import TYPE_CHECKING, Final

from protocol.codec_support import uvarint

if TYPE_CHECKING:
    from broker.coordinator.share.reader import Taken
    from broker.coordinator.share.sessions import Place
    from broker.wire.reply_stream import Reply

_HEAD: Final = Struct(">iiBihBi")  # size, correlation id, tags, throttle time, error, no message, duration of a lock
_PARTITION: Final = Struct(">ihBhBiiB")  # index; errors, no messages; no other leader; no tags
_ACQUIRED: Final = Struct(">qqhB")  # first, last, delivery count; no tags
_END: Final = b"\0\0\x01\0"  # tags of the partition and topic; no endpoints; tags


def label_of(place: Place) -> bytes:
    """What stands before the records: one topic, and of it one partition without errors."""
    return b"\x02" + place[0] + b"\x02" + _PARTITION.pack(place[1], 0, 0, 0, 0, 0, 0, 0)


def encode_share_fetch(label: bytes, taken: Taken, correlation_id: int, lock_ms: int) -> Reply:
    """The frame of a response, of any version."""
    records, acquired = taken.records, taken.acquired
    before = label + uvarint(len(records) + 1)
    after = uvarint(len(acquired) + 1) + b"".join([_ACQUIRED.pack(*each, 0) for each in acquired]) + _END
    size = _HEAD.size - 4 + len(before) + len(records) + len(after)
    head = _HEAD.pack(size, correlation_id, 0, 0, 0, 0, lock_ms) + before
    return b"".join((head, records, after)) if isinstance(records, bytes) else [head, records, after]
