"""Which partition a record goes to that names none: by its key as Java's producer, else each in turn."""

from __future__ import annotations

_MASK = 0xFFFFFFFF
_MULTIPLIER = 0x5BD1E995
_SEED = 0x9747B28C


def choose_partition(key: bytes | None, count: int, turn: int) -> int:
    """The partition of a record among `count`.

    key    bytes, also none at all (b""): the partition that Java's clients choose. None: round robin from 0.
    turn   how many records without a key came before this one.
    """
    return turn % count if key is None else partition_of_key(key, count)


def partition_of_key(key: bytes, count: int) -> int:
    """The partition that Java's clients choose for a key.

    Source: murmur2 with Kafka's seed, as org.apache.kafka.common.utils.Utils documents it; its sign bit is dropped.
    """
    length = len(key)
    found = _SEED ^ length
    for at in range(0, length - 3, 4):
        k = int.from_bytes(key[at : at + 4], "little") * _MULTIPLIER & _MASK
        k = (k ^ k >> 24) * _MULTIPLIER & _MASK
        found = found * _MULTIPLIER & _MASK ^ k
    rest = key[length & ~3 :]
    if rest:
        found = (found ^ int.from_bytes(rest, "little")) * _MULTIPLIER & _MASK
    found = (found ^ found >> 13) * _MULTIPLIER & _MASK
    return ((found ^ found >> 15) & 0x7FFFFFFF) % count
