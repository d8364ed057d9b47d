"""A hash of the topics that a group subscribes to; when it changes, the group is assigned again."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from fastcrc.crc64 import xz

if TYPE_CHECKING:
    from broker.cluster.metadata import ClusterMetadata


def metadata_hash(names: Iterable[str], metadata: ClusterMetadata) -> int:
    """The hash of id, name, partition count and racks of every topic that exists; 0 for none.

    Kafka uses XXH3. A broker compares the number only with its own: a group moved from one broker to the other is
    assigned once more.
    """
    topics = metadata.topics
    parts = []
    for name in sorted(names):
        topic = topics.get(name)
        if topic is not None:
            parts.append(topic.topic_id + len(topic.partitions).to_bytes(4, "big") + name.encode() + b"\0")
    if not parts:
        return 0
    number: int = xz(b"".join(parts) + (metadata.config.broker_rack or "").encode())
    return number - (1 << 64) if number >> 63 else number
