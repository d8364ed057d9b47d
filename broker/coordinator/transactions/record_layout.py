"""The parts of a transaction's record that stay the same from one to the next, made once."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from struct import Struct
from typing import Final

from protocol.codec_support import uvarint
from protocol.record import varint

MOST_KEPT: Final = 1000  # entries of each cache: producers repeat their transactions
HEAD: Final = Struct(">hqhib")  # version, producer id, its epoch, timeout, state
TIMES: Final = Struct(">qq")
_SHORT: Final = Struct(">h")

Partitions = dict[str, tuple[int, ...]]  # by topic; never changed, so that many can share one
# packer, sizes of the record and of its value, tags around the previous producer id
Layout = tuple[Callable[..., bytes], bytes, bytes, bytes, bytes]
# by the sizes of a record up to its value and of its partitions, and the client's version
layouts: dict[tuple[int, int, int], Layout] = {}

NO_PARTITIONS_WIRE: Final = b"\x01"


def new_layout(named_size: int, wire_size: int, client: int) -> Layout:
    """The layout of the batch of one usual record."""
    head, end = (b"\2\0\x08", b"\2\2" + _SHORT.pack(client)) if client else (b"\1\0\x08", b"")
    size = HEAD.size + wire_size + TIMES.size + len(head) + 8 + len(end)
    value_size = varint(size)
    record_size = varint(named_size + len(value_size) + size + 1)
    layout = Struct(f">hiqqqhii{len(record_size)}s{named_size}s{len(value_size)}shqhib{wire_size}sqq3sq{len(end) + 1}s")
    if len(layouts) >= MOST_KEPT:
        layouts.clear()
    made = layout.pack, record_size, value_size, head, end + b"\0"
    layouts[named_size, wire_size, client] = made
    return made


@lru_cache(maxsize=MOST_KEPT)  # producers write to the same groups in every transaction
def group_head(delta: int, key: bytes, value_size: int) -> bytes:
    """A record up to its value, by its place in the batch."""
    head = b"\0\0" + varint(delta) + varint(len(key)) + key + varint(value_size)
    return varint(len(head) + value_size + 1) + head


def wire_partitions(partitions: Partitions) -> bytes:
    """The partitions of a transaction as a compact array of topics, as TransactionLogValue has them."""
    return uvarint(len(partitions) + 1) + b"".join(map(_wire_topic, partitions.items()))


@lru_cache(maxsize=1000)  # producers write to the same partitions in every transaction
def _wire_topic(place: tuple[str, tuple[int, ...]]) -> bytes:
    topic, indexes = place
    name, count = topic.encode(), len(indexes)
    numbers = Struct(f">{count}i").pack(*indexes)
    return b"".join((uvarint(len(name) + 1), name, uvarint(count + 1), numbers, b"\x00"))
