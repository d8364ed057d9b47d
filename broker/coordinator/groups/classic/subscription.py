"""Reads the subscribed topics from the metadata of classic consumers; the broker reads nothing else of it."""

from __future__ import annotations

from collections.abc import Iterable


def subscribed_topics(subscriptions: Iterable[bytes]) -> frozenset[str] | None:
    """The topics of all subscriptions together; None if one of them cannot be read.

    Shape:   ConsumerProtocolSubscription: i16 version, then [string] topics. New versions only append fields, so the
             version does not matter.
    Source:  ConsumerProtocolSubscription.json; Kafka's ClassicGroup.computeSubscribedTopics.
    """
    topics: set[str] = set()
    try:
        for subscription in subscriptions:
            count, position = _int(subscription, 2, 4), 6
            if not 0 <= count <= len(subscription):
                return None
            for _ in range(count):
                start = position + 2
                position = start + _int(subscription, position, 2)
                if not start <= position <= len(subscription):
                    return None
                topics.add(subscription[start:position].decode())
            _int(subscription, position, 4)  # the length of the user data; if it is missing, the bytes are truncated
    except (IndexError, UnicodeDecodeError):
        return None
    return frozenset(topics)


def _int(buffer: bytes, position: int, size: int) -> int:
    if position + size > len(buffer):
        raise IndexError(position)
    return int.from_bytes(buffer[position : position + size], "big", signed=True)
