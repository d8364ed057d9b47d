"""A table of producers with batches appended to it, and what it decides about the next one."""

from __future__ import annotations

from broker.partitions.producer_table import add_to_sequence
from broker.partitions.producers import Producers
from protocol.errors import ErrorCode, KafkaError

PID = 7
OUT_OF_ORDER = ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
DUPLICATE = ErrorCode.DUPLICATE_SEQUENCE_NUMBER
APPEND, STORED = "append", "stored"


def appended(*batches: tuple[int, int], epoch: int = 0, mode: bool = False) -> Producers:
    """A producer that has appended batches (base sequence, records), one after the other from offset 100 on."""
    producers = Producers(batches=mode)
    offset = 100
    for base, count in batches:
        producers.replay(
            PID, epoch, base, add_to_sequence(base, count - 1), offset, offset + count - 1, timestamp_ms=offset
        )
        offset += count
    return producers


def outcome(producers: Producers, first: int, last: int, epoch: int = 0) -> object:
    try:
        found = producers.decide(PID, epoch, first, last)
    except KafkaError as error:
        return error.code
    return APPEND if found is None else STORED
