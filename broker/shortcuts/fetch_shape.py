"""The frame of a Fetch that a client repeats: which bytes stay the same, and which fields differ.

From one Fetch of a consumer to the next only the session's epoch and the offsets change. The bytes between them are
kept; the next frame is compared with them instead of decoded.
"""

from __future__ import annotations

from struct import Struct
from typing import Final

from broker.partitions.fetch_read import ISOLATION_LEVELS, READ_COMMITTED
from broker.partitions.fetch_session import FINAL_EPOCH, NO_SESSION, Wanted
from broker.shortcuts.head import INT32, Cutter

OLDEST: Final = 7  # the first version with sessions; older clients are rare
NEWEST: Final = 18
FLEXIBLE_SINCE: Final = 12
TOPIC_IDS_SINCE: Final = 13
MOST_PARTITIONS: Final = 64
MOST_BYTES: Final = 8192

_LIMITS: Final = Struct(">iiibii")  # max wait, min bytes, max bytes, isolation level, session id, session epoch
_PLACE: Final = Struct(">iiq")  # partition, leader epoch, offset; from version 9 on
_OLD_PLACE: Final = Struct(">iq")
_REST: Final = Struct(">qi")  # log start offset, most bytes
_FLEXIBLE_REST: Final = Struct(">iqiB")  # with the epoch last fetched, and tags


class Shape:
    """The parts of a Fetch that stay the same."""

    __slots__ = (
        "api_version",
        "by_id",
        "committed",
        "max_bytes",
        "max_wait_ms",
        "min_bytes",
        "session_id",
        "statics",
        "unpack",
        "wanted",
    )

    def __init__(self, data: bytes, position: int, stop: int, api_version: int) -> None:
        """Learn a frame, which begins with its size field. Errors: ValueError: the general handler must serve it."""
        reader = Cutter(data, position, stop)
        flexible = api_version >= FLEXIBLE_SINCE
        reader.client_id()
        if flexible:
            reader.expect_zero()  # header tags
        replica_id = reader.take(INT32)[0] if api_version <= 14 else -1
        limits = reader.take(_LIMITS)
        self.max_wait_ms, self.min_bytes, self.max_bytes, isolation_level, self.session_id, epoch = limits
        if replica_id >= 0 or (self.session_id == NO_SESSION and epoch != FINAL_EPOCH) or epoch == 0:
            raise ValueError("a follower, or a new session")
        if isolation_level not in ISOLATION_LEVELS:
            raise ValueError("an unknown isolation level")
        reader.cut(4, before=reader.at)  # the epoch
        self.api_version = api_version
        self.by_id = api_version >= TOPIC_IDS_SINCE
        self.committed = isolation_level == READ_COMMITTED
        self.wanted: list[Wanted] = []
        for _ in range(reader.count(MOST_PARTITIONS, flexible=flexible)):
            topic, topic_id = "", bytes(16)
            if self.by_id:
                topic_id = reader.piece(16)
            else:
                topic = _topic(reader, flexible=flexible)
            for _ in range(reader.count(MOST_PARTITIONS, flexible=flexible)):
                self.wanted.append(self._partition(reader, topic, topic_id))
            if flexible:
                reader.expect_zero()
        places = {(wanted.topic, wanted.topic_id, wanted.partition) for wanted in self.wanted}
        if not len(places) == len(self.wanted) <= MOST_PARTITIONS or reader.count(MOST_PARTITIONS, flexible=flexible):
            raise ValueError("too many partitions, one of them twice, or forgotten topics")
        if api_version >= 11:
            _topic(reader, flexible=flexible)  # the rack
        if flexible:
            reader.expect_zero()
        if reader.at != stop:
            raise ValueError("bytes after the request")
        self.statics, self.unpack = reader.done()

    def _partition(self, reader: Cutter, topic: str, topic_id: bytes) -> Wanted:
        leader_epoch = -1
        if self.api_version >= 9:
            partition, leader_epoch, offset = reader.take(_PLACE)
        else:
            partition, offset = reader.take(_OLD_PLACE)
        reader.cut(8, before=reader.at)
        last_epoch = -1
        if self.api_version >= FLEXIBLE_SINCE:
            last_epoch, _, most_bytes, tags = reader.take(_FLEXIBLE_REST)
            if tags or last_epoch >= 0:
                raise ValueError("tagged fields, or a last fetched epoch")
        else:
            _, most_bytes = reader.take(_REST)
        return Wanted(topic, topic_id, partition, offset, most_bytes, max(leader_epoch, -1), last_epoch)


def _topic(reader: Cutter, *, flexible: bool) -> str:
    """A topic name."""
    return reader.name() if flexible else reader.old_text()
