"""Why a topic or a partition was refused as unknown: there is no such topic, or it has fewer partitions."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Final

from protocol.errors import ErrorCode
from protocol.shown import shown

if TYPE_CHECKING:
    from broker.cluster.metadata import ClusterMetadata

UNKNOWN: Final = frozenset({ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.UNKNOWN_TOPIC_ID})
MOST_NAMED: Final = 5


def explain_topics(metadata: ClusterMetadata, response: Any) -> str:
    """A sentence for each topic and partition that is unknown; "" where they are there by now, or not told by name."""
    found = list(dict.fromkeys(_sentences(metadata, response)))
    more = f", and {len(found) - MOST_NAMED} more" if len(found) > MOST_NAMED else ""
    return ", ".join(found[:MOST_NAMED]) + more


def _sentences(metadata: ClusterMetadata, response: Any) -> Iterator[str]:
    for topic in getattr(response, "topics", None) or getattr(response, "responses", None) or ():
        name = getattr(topic, "name", None) or getattr(topic, "topic", None)
        topic_id = getattr(topic, "topic_id", bytes(16))
        known = metadata.topics.get(name) if name else metadata.topics_by_id.get(topic_id)
        for index in _unknown(topic):
            if known is None:
                yield f"there is no topic {shown(name)}" if name else f"no topic has the id {topic_id.hex()}"
            elif index >= len(known.partitions):
                count = len(known.partitions)
                has = f"{count} partition{'s' if count > 1 else ''}"
                yield f"topic {shown(known.name)} has {has}, and none with the number {index}"


def _unknown(topic: Any) -> Iterator[int]:
    """The partitions that are refused as unknown; -1: the topic as a whole."""
    if getattr(topic, "error_code", 0) in UNKNOWN:
        yield -1
    for each in getattr(topic, "partitions", None) or getattr(topic, "partition_responses", None) or ():
        if getattr(each, "error_code", 0) in UNKNOWN:
            yield getattr(each, "partition_index", getattr(each, "index", -1))
