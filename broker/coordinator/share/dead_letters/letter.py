"""What a dead-letter queue gets for each record that a share group gave up: headers, and a copy where it is wanted.

Differs:   a copy that is too large for a batch of the queue with its headers is left out; Kafka sends it, and when the
           queue refuses it, archives what is left of its range of offsets without a record in the queue.
Source:    KIP-1191; Kafka's ShareGroupDLQStateManager, whose names of headers and texts of causes these are.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final, NamedTuple, TypeAlias

from protocol.record import RecordTuple, encode_record
from protocol.record_batch import HEADER_BYTES, build_batch

REJECTED: Final = "Offset rejected by client."
TOO_OFTEN: Final = "Offset delivery count exceeded the threshold."

# offset -> key and value; (None, None): there is no copy
Original: TypeAlias = Callable[[int], tuple["bytes | None", "bytes | None"]]


class Letter(NamedTuple):
    """Records first..last of a partition, given up after so many deliveries for this cause."""

    first: int
    last: int
    delivery_count: int
    cause: str


class Sender(NamedTuple):
    """The partition that records come from, and the group that gave them up."""

    group_id: str
    topic: str
    partition: int


def no_copy(_offset: int) -> tuple[None, None]:
    """The Original of a group that wants headers only."""
    return None, None


def headers_of(sender: Sender, letter: Letter, offset: int) -> list[tuple[str, bytes | None]]:
    """The headers of a record in the queue, in Kafka's order; all values are text."""
    return [
        ("__dlq.errors.topic", sender.topic.encode()),
        ("__dlq.errors.partition", b"%d" % sender.partition),
        ("__dlq.errors.offset", b"%d" % offset),
        ("__dlq.errors.group", sender.group_id.encode()),
        ("__dlq.errors.delivery.count", b"%d" % letter.delivery_count),
        ("__dlq.errors.message", letter.cause.encode()),
    ]


def next_batch(
    sender: Sender, letters: Sequence[Letter], original: Original, most_bytes: int, now_ms: int
) -> tuple[bytes, int, list[Letter]]:
    """A batch of the first letters, how many records it has, and what is left of the letters.

    `most_bytes`: of a batch of the queue. A copy that would make a batch larger is left out; a record without one is
    written in a batch of its own in any case, and refused by the queue.
    """
    records: list[RecordTuple] = []
    size = HEADER_BYTES
    for number, letter in enumerate(letters):
        for offset in range(letter.first, letter.last + 1):
            headers = headers_of(sender, letter, offset)
            key, value = original(offset)
            length = len(encode_record(len(records), 0, key, value, headers))
            if HEADER_BYTES + length > most_bytes and not key is value is None:
                key = value = None
                length = len(encode_record(len(records), 0, None, None, headers))
            if records and size + length > most_bytes:
                left = [letter._replace(first=offset), *letters[number + 1 :]]
                return build_batch(records, timestamp_ms=now_ms), len(records), left
            records.append((key, value, headers))
            size += length
    return build_batch(records, timestamp_ms=now_ms), len(records), []
