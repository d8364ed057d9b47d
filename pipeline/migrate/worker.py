"""What a Spark task does with a source partition: copy it by one idempotent producer, or compare it with the target.

A killed task leaves the beginning of its partition in the target. The next one skips as many records as the target has,
after checking that the last of those are the source's. So no record is written twice, and a target that holds other
records is refused.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from hashlib import sha256
from itertools import groupby
from struct import Struct
from typing import Any, Final

from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition

TAIL: Final = 1000  # number of records before the point of resumption that are checked
SETTLED_S: Final = 1.0  # by then the log has what a killed task had sent
WAIT_S: Final = 60.0
_I64: Final = Struct(">q")
_I32: Final = Struct(">i")
_NULL: Final = _I32.pack(-1)

Row = Any  # log, topic, partition, offset, timestamp_ms, key, value, headers


@dataclass(frozen=True, slots=True)
class Copied:
    """The result of copying one partition; error: why it was refused, in a sentence.

    source_sha256: over the digests of all records, those that the target had included.
    """

    log: str
    already: int = 0
    written: int = 0
    source_sha256: str | None = None
    error: str | None = None


@dataclass(frozen=True, slots=True)
class Held:
    """What a partition of the target holds: the SHA-256 is over the digests of all records.

    is_dense: their offsets start at 0 and have no gaps.
    """

    log: str
    records: int
    sha256: str
    is_dense: bool


@dataclass(frozen=True, slots=True)
class Compared:
    """The result of comparing one partition with the target's; each SHA-256 is over the digests of all records."""

    log: str
    records: int
    source_sha256: str
    target_records: int
    target_sha256: str
    difference: str | None = None


class RefusedError(Exception):
    """The target partition holds other records than the source's."""


def digest(timestamp_ms: int, key: bytes | None, value: bytes | None, headers: Iterable[tuple[str, Any]]) -> bytes:
    """SHA-256 over everything of a record that a consumer can see except its offset."""
    parts = [_I64.pack(timestamp_ms), *_field(key), *_field(value)]
    for name, content in headers:
        parts += _field(name.encode())
        parts += _field(content)
    return sha256(b"".join(parts)).digest()


def _field(content: bytes | None) -> tuple[bytes, bytes]:
    return (_NULL, b"") if content is None else (_I32.pack(len(content)), content)


def of_row(row: Row) -> bytes:
    """The digest of a source record."""
    return digest(row.timestamp_ms, _bytes(row.key), _bytes(row.value), _headers(row))


def of_message(message: Any) -> bytes:
    """The digest of a record read from the target."""
    return digest(message.timestamp()[1], message.key(), message.value(), message.headers() or ())


def _headers(row: Row) -> list[tuple[str, bytes | None]]:
    return [(each.key, _bytes(each.value)) for each in row.headers or ()]


def _bytes(content: bytearray | None) -> bytes | None:
    return None if content is None else bytes(content)


def copier(client: Mapping[str, Any]) -> Callable[[Iterable[Row]], Iterator[Copied]]:
    """A function for mapPartitions that copies every log of a task. client: settings of confluent-kafka.

    Errors, in the task: RuntimeError: the target does not answer or refuses a record.
    """

    def copy(rows: Iterable[Row]) -> Iterator[Copied]:
        for log, records in groupby(rows, key=lambda row: str(row.log)):
            try:
                yield _copy(dict(client), log, records)
            except RefusedError as refused:
                yield Copied(log, error=str(refused))

    return copy


def _copy(client: dict[str, Any], log: str, records: Iterator[Row]) -> Copied:
    first = next(records)
    partition = first.topic, first.partition
    ours = sha256()
    already = _skip(client, partition, first, records, ours.update)
    failed: list[str] = []

    def delivered(error: Any, _: Any) -> None:
        if error is not None and not failed:
            failed.append(str(error))

    producer = Producer({
        "linger.ms": 20,
        "message.max.bytes": 100_000_000,
        **client,
        "enable.idempotence": True,
        "acks": "all",
    })  # fmt: skip  # one argument, no indent of its own
    written = 0
    for row in already.rest:
        ours.update(of_row(row))
        message = {
            "value": _bytes(row.value),
            "key": _bytes(row.key),
            "partition": row.partition,
            "timestamp": row.timestamp_ms,
            "headers": _headers(row),
            "on_delivery": delivered,
        }
        while True:
            try:
                producer.produce(row.topic, **message)
                break
            except BufferError:
                producer.poll(0.5)
        producer.poll(0)
        written += 1
        if failed:
            break
    if producer.flush(300) or failed:
        raise RuntimeError(f"{log}: {failed[0] if failed else 'the target does not answer'}")
    return Copied(log, already=already.count, written=written, source_sha256=ours.hexdigest())


@dataclass(slots=True)
class _Rest:
    count: int
    rest: Iterator[Row]


def _skip(
    client: dict[str, Any],
    partition: tuple[str, int],
    first: Row,
    records: Iterator[Row],
    passed_on: Callable[[bytes], None],
) -> _Rest:
    """Skip the records that the target has; passed_on gets their digests.

    Errors:  RefusedError: those are not the source's.
    """
    consumer, name = _consumer(client), f"{partition[0]}-{partition[1]}"
    try:
        count = _count(consumer, partition)
        tail: deque[tuple[int, bytes]] = deque(maxlen=TAIL)
        rows = _chain(first, records)
        for passed in range(count):
            row = next(rows, None)
            if row is None:
                raise RefusedError(f"{name} of the target has {count} records, the source only {passed}")
            digested = of_row(row)
            passed_on(digested)
            tail.append((row.offset, digested))
        there = _read(consumer, partition, count - len(tail), count)
        for number, ((offset, wanted), message) in enumerate(zip(tail, there, strict=True), count - len(tail)):
            if of_message(message) != wanted:
                raise RefusedError(
                    f"{name} of the target holds something else: its record {number} is not the source's at offset "
                    f"{offset}"
                )
        return _Rest(count, rows)
    finally:
        consumer.close()


def _chain(first: Row, rest: Iterator[Row]) -> Iterator[Row]:
    yield first
    yield from rest


def _count(consumer: Consumer, partition: tuple[str, int]) -> int:
    """The number of records in a target partition, once it stops changing."""
    target, name = TopicPartition(*partition), f"{partition[0]}-{partition[1]}"
    low, high = consumer.get_watermark_offsets(target, timeout=WAIT_S)
    while high:
        time.sleep(SETTLED_S)
        before = high
        low, high = consumer.get_watermark_offsets(target, timeout=WAIT_S)
        if high == before:
            break
    if low:
        raise RefusedError(f"{name} of the target starts at offset {low}: it has held other records")
    return int(high)


def _consumer(client: Mapping[str, Any]) -> Consumer:
    return Consumer({
        **client,
        "group.id": "momus-migrate",  # never joined, never committed to
        "enable.auto.commit": False,
        "enable.partition.eof": True,
        "isolation.level": "read_committed",
        "auto.offset.reset": "error",
    })  # fmt: skip  # one argument, no indent of its own


def _read(consumer: Consumer, partition: tuple[str, int], begin: int, end: int | None) -> Iterator[Any]:
    """The messages from offset begin to offset end, or to the partition's end."""
    if end is not None and begin >= end:
        return
    last = None if end is None else end - 1
    consumer.assign([TopicPartition(*partition, begin)])
    while True:
        first = consumer.poll(WAIT_S)
        if first is None:
            raise RuntimeError(f"{partition[0]}-{partition[1]}: the target does not answer")
        # Without a timeout: consume returns what has arrived, and would wait out a timeout for a thousandth message.
        for message in [first, *consumer.consume(999, timeout=0)]:
            error = message.error()
            if error is not None:
                if error.name() == "_PARTITION_EOF":
                    return
                raise KafkaException(error)
            yield message
            if message.offset() == last:
                return


def first_differs(client: Mapping[str, Any], row: Row) -> bool:
    """Whether the first record of the target's partition is another one than this of the source."""
    consumer = _consumer(client)
    try:
        return of_message(next(_read(consumer, (row.topic, row.partition), 0, 1))) != of_row(row)
    finally:
        consumer.close()


def reader(client: Mapping[str, Any]) -> Callable[[Iterable[tuple[str, str, int]]], Iterator[Held]]:
    """A function for mapPartitions that reads partitions (log, topic, partition) of the target. client: see copier."""

    def read(places: Iterable[tuple[str, str, int]]) -> Iterator[Held]:
        for log, topic, partition in places:
            theirs, count, is_dense = sha256(), 0, True
            consumer = _consumer(client)
            try:
                for message in _read(consumer, (topic, partition), 0, None):
                    theirs.update(of_message(message))
                    is_dense = is_dense and message.offset() == count
                    count += 1
            finally:
                consumer.close()
            yield Held(log, count, theirs.hexdigest(), is_dense)

    return read


def comparer(client: Mapping[str, Any]) -> Callable[[Iterable[Row]], Iterator[Compared]]:
    """A function for mapPartitions that compares every log of a task with the target's. client: see copier."""

    def compare(rows: Iterable[Row]) -> Iterator[Compared]:
        for log, records in groupby(rows, key=lambda row: str(row.log)):
            yield _compare(dict(client), log, records)

    return compare


def _compare(client: dict[str, Any], log: str, records: Iterator[Row]) -> Compared:
    first = next(records)
    consumer = _consumer(client)
    ours, theirs = sha256(), sha256()
    count = others = 0
    difference: str | None = None
    try:
        messages = _read(consumer, (first.topic, first.partition), 0, None)
        for row in _chain(first, records):
            wanted = of_row(row)
            ours.update(wanted)
            count += 1
            message = next(messages, None)
            if message is None:
                difference = difference or f"the source's record at offset {row.offset} is missing"
                continue
            found = of_message(message)
            theirs.update(found)
            others += 1
            if difference is None and (found != wanted or message.offset() != count - 1):
                difference = f"offset {message.offset()} is not the source's record at offset {row.offset}"
        for message in messages:
            theirs.update(of_message(message))
            others += 1
            difference = difference or f"the record at offset {message.offset()} is not the source's"
    finally:
        consumer.close()
    return Compared(log, count, ours.hexdigest(), others, theirs.hexdigest(), difference)
