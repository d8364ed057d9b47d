"""Maps a group or transactional id to its shard by Kafka's hash, so that Kafka's tools find the same partition."""

from __future__ import annotations

from functools import lru_cache


def java_string_hash(text: str) -> int:
    """String.hashCode of Java over UTF-16 code units, as a signed 32-bit number."""
    if text.isascii():
        units: bytes | list[int] = text.encode("ascii")
    else:
        wide = text.encode("utf-16-be", "surrogatepass")
        units = [wide[i] << 8 | wide[i + 1] for i in range(0, len(wide), 2)]
    h = 0
    for unit in units:
        h = (31 * h + unit) & 0xFFFFFFFF
    return h - 0x100000000 if h & 0x80000000 else h


@lru_cache(maxsize=10_000)
def shard_index(key: str, shards: int) -> int:
    """The partition of `__consumer_offsets` (or `__transaction_state`) that owns a key.

    Source: Kafka's Utils.abs and GroupCoordinator.partitionFor: abs(-2^31) is 0.
    """
    h = java_string_hash(key)
    return (0 if h == -0x80000000 else abs(h)) % shards


def hash_slot(name: str) -> int:
    """The bucket of a name in a small java.util.HashMap: Kafka gives a tied vote to the first name in that order.

    The rule must not depend on the order of the members: replacing a static member must not change a tied vote.
    """
    h = java_string_hash(name) & 0xFFFFFFFF
    return (h ^ h >> 16) & 15
