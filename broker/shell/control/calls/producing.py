"""The handler of produced records: it chooses their partitions, appends them, and says where they are."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, Final, TypedDict

from broker.asks.records import produce as append
from broker.asks.topics import leaders_of
from broker.load.values import data_of
from broker.shell.asking import Asking
from broker.shell.control.calls.records import bytes_of
from broker.shell.control.routes import SLICE, Call, RefusedError
from protocol.partitioner import choose_partition
from protocol.record_batch import build_batch

if TYPE_CHECKING:
    from broker.shell.cluster_server import ClusterServer

LONG_KEY: Final = 4096  # bytes, which take 0.5 ms to look through
FIELDS: Final = ("key", "value", "headers", "partition", "timestamp_ms")

Row = tuple[bytes | None, bytes | None, list[tuple[str, bytes | None]], int | None]  # as build_batch takes it


class ProducedAt(TypedDict):
    """Where a record is."""

    partition: int
    offset: int


async def produce(cluster: ClusterServer, call: Call) -> list[ProducedAt]:
    """Append records, acks=all; the topic is made as for any producer. Errors: RefusedError."""
    topic = call.words["topic"]
    given = []
    for index, record in enumerate(call.body["records"], 1):
        given.append(_record(f"records[{index - 1}]", record))
        if index % SLICE == 0:  # others have their turn, here and below
            await asyncio.sleep(0)
    by_partition: dict[int, list[Row]] = {}
    order: list[tuple[int, int]] = []
    bases = {}
    with Asking(cluster) as asking:
        leaders = await asking.ask(leaders_of(topic, create=True))
        await _place_keys(given, len(leaders))
        for partition, (_, row) in zip(_places(cluster, topic, given, leaders), given, strict=True):
            rows = by_partition.setdefault(partition, [])
            order.append((partition, len(rows)))
            rows.append(row)
        for partition, rows in by_partition.items():
            now_ms = cluster.broker.turn.env.clock.now_ms()
            if len(rows) > SLICE:
                batch = await asyncio.to_thread(build_batch, rows, timestamp_ms=now_ms)
            else:
                batch = build_batch(rows, timestamp_ms=now_ms)
            bases[partition] = await asking.ask(append(topic, partition, batch))
    return [{"partition": partition, "offset": bases[partition] + place} for partition, place in order]


async def _place_keys(given: list[tuple[int | None, Row]], count: int) -> None:
    """Put records with a key and without a partition where Java's producer sends the key, of `count` partitions."""
    for index, (partition, row) in enumerate(given):
        key = row[0]
        if partition is None and key is not None:
            is_long = len(key) > LONG_KEY
            place = (
                await asyncio.to_thread(choose_partition, key, count, 0) if is_long else choose_partition(key, count, 0)
            )
            given[index] = place, row
        if index % SLICE == SLICE - 1:
            await asyncio.sleep(0)


def _places(
    cluster: ClusterServer, topic: str, given: list[tuple[int | None, Row]], leaders: dict[int, int]
) -> list[int]:
    """The partition of each record. Those without one go on where the call before has ended.

    Errors: RefusedError: a partition that is named is not there; the turn stays where it was.
    """
    found = cluster.broker.metadata.topics.get(topic)
    topic_id = b"" if found is None else found.topic_id
    known, turn = cluster.turns.get(topic, (b"", 0))
    if known != topic_id:
        turn = 0
    places = []
    for partition, _ in given:
        if partition is None:
            partition = choose_partition(None, len(leaders), turn)
            turn += 1
        if partition not in leaders:
            raise RefusedError(404, f"{topic} has no partition {partition}, but 0 to {len(leaders) - 1}")
        places.append(partition)
    cluster.turns[topic] = topic_id, turn
    return places


def _record(where: str, given: dict[str, Any]) -> tuple[int | None, Row]:
    """The partition that is asked for, and the record. Errors: RefusedError."""
    unknown = given.keys() - FIELDS
    if unknown:
        raise RefusedError(400, f'no such field: "{where}.{min(unknown)}"')
    headers = given.get("headers", [])
    is_list = isinstance(headers, list) and all(
        isinstance(each, list) and len(each) == 2 and isinstance(each[0], str) for each in headers
    )
    partition, timestamp_ms = given.get("partition"), given.get("timestamp_ms")
    if not is_list:
        raise RefusedError(400, f'"{where}.headers" takes a list of [name, value]')
    if not all(each is None or type(each) is int for each in (partition, timestamp_ms)):
        raise RefusedError(400, f'"{where}.partition" and "{where}.timestamp_ms" take whole numbers')
    pairs = [(name, bytes_of(f"{where}.headers", value)) for name, value in headers]
    key, value = bytes_of(f"{where}.key", given.get("key")), _value(f"{where}.value", given.get("value"))
    return partition, (key, value, pairs, timestamp_ms)


def _value(where: str, value: Any) -> bytes | None:
    """A list, or an object that is not {"base64": ...}, is JSON. Errors: RefusedError."""
    if not isinstance(value, (dict, list)):
        return bytes_of(where, value)
    try:
        return data_of(value)
    except ValueError as error:
        raise RefusedError(400, f'"{where}": {error}') from None
