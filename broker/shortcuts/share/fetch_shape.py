"""The frame of a ShareFetch that a client repeats: which bytes stay the same, and which fields differ.

From one ShareFetch of a share consumer to the next only the session's epoch and the acknowledged offsets change. The
bytes between them are kept; the next frame is compared with them instead of decoded.
"""

from __future__ import annotations

from struct import Struct
from typing import Final

from broker.coordinator.share.acknowledge import ACCEPT
from broker.coordinator.share.acquire import BATCH_OPTIMIZED
from broker.coordinator.share.sessions import Place
from broker.shortcuts.head import INT32, Cutter

OLDEST: Final = 1
NEWEST: Final = 2
MODE_SINCE: Final = 2
MOST_ACKNOWLEDGED: Final = 64  # batches of offsets
MOST_BYTES: Final = 4096

_LIMITS: Final = Struct(">iiiiii")  # session epoch, max wait, min bytes, max bytes, max records, batch size
_MODE: Final = Struct(">bb")  # acquire mode, whether it renews locks
_OFFSETS: Final = Struct(">qq")
_ONE_TYPE: Final = Struct(">BbB")  # an array of one type; no tags


class ShareShape:
    """The parts of a ShareFetch that stay the same. It names one partition of its session, or none."""

    __slots__ = (
        "api_version",
        "batch_size",
        "group_id",
        "max_bytes",
        "max_records",
        "member_id",
        "min_bytes",
        "place",
        "statics",
        "unpack",
    )

    def __init__(self, data: bytes, position: int, stop: int, api_version: int) -> None:
        """Learn a frame, which begins with its size field. Errors: ValueError: the general handler must serve it."""
        reader = Cutter(data, position, stop)
        reader.client_id()
        reader.expect_zero()  # header tags
        self.api_version = api_version
        self.group_id = reader.name()
        self.member_id = reader.name()
        epoch, _, self.min_bytes, self.max_bytes, self.max_records, self.batch_size = reader.take(_LIMITS)
        reader.cut(4, before=reader.at - 20)  # the epoch
        if api_version >= MODE_SINCE and reader.take(_MODE) != (BATCH_OPTIMIZED, 0):
            raise ValueError("another mode")
        if epoch <= 0 or self.max_records <= 0 or self.max_bytes <= 0:
            raise ValueError("it begins or ends a session, or reads nothing")
        self.place: Place | None = None
        if reader.count(1):
            topic_id = reader.piece(16)
            if reader.count(1) != 1:
                raise ValueError("no partition")
            self.place = topic_id, reader.take(INT32)[0]
            for _ in range(reader.count(MOST_ACKNOWLEDGED)):
                reader.take(_OFFSETS)
                reader.cut(8, before=reader.at - 8)
                reader.cut(8, before=reader.at)
                if reader.take(_ONE_TYPE) != (2, ACCEPT, 0):
                    raise ValueError("not accepted, or not all alike")
            reader.expect_zero()
            reader.expect_zero()
        if reader.count(0):
            raise ValueError("forgotten topics")
        reader.expect_zero()
        if reader.at != stop:
            raise ValueError("bytes after the request")
        self.statics, self.unpack = reader.done()
