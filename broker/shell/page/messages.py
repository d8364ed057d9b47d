"""Messages of a partition, from an offset or a time on, decoded, each with the outcome of its transaction."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from broker.asks.records import ABORTED, MARKER, NO_OFFSET, Outcomes
from broker.shell.control.calls.records import offset_at
from broker.shell.control.routes import Call, RefusedError
from broker.shell.local_client import LocalClient
from broker.shell.page.texts import FORMS, internal, marker, shown
from broker.shell.page.windows import number
from protocol.errors import ErrorCode, KafkaError
from protocol.messages.fetch import (
    FetchPartition,
    FetchRequest,
    FetchTopic,
)
from protocol.record_batch import iter_batches, iter_records

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from broker.partitions.partition import Partition
    from broker.shell.cluster_server import ClusterServer
    from broker.shell.page.registry import Registry

FETCH_VERSION = 12  # by topic name
PIECE_BYTES: Final = 1 << 20
MOST: Final = 200
USUAL: Final = 50
MOST_HEADERS: Final = 50
SLICE: Final = 100  # records that are left out, before clients are served again


class Asked(NamedTuple):
    """How messages are to be shown."""

    form: str
    with_aborted: bool
    limit: int


def asked_of(call: Call) -> Asked:
    """What a call asks for. Errors: RefusedError."""
    form = call.query.get("form", "auto")
    if form not in FORMS:
        raise RefusedError(400, f'"form" takes one of {", ".join(FORMS)}')
    return Asked(form, call.query.get("aborted", "") == "yes", number(call, "limit", USUAL, MOST, 1))


async def show_messages(cluster: ClusterServer, call: Call) -> dict[str, Any]:
    """Messages from an offset or a time on; without either the newest. Errors: RefusedError."""
    broker, name = cluster.broker, call.words["topic"]
    topic, index = broker.metadata.topics.get(name), number(call, "partition", 0)
    if topic is None or index >= len(topic.partitions):
        raise RefusedError(404, f"no such partition: {name:.100}-{index}")
    wanted = asked_of(call)
    try:
        partition = broker.partitions.get(topic, index)
    except KafkaError as error:
        raise RefusedError(409, f"{name}-{index}: {error}") from None
    leader = topic.partitions[index].leader
    client = LocalClient(broker, cluster.config)
    first, end = partition.log_start_offset, partition.high_watermark
    try:
        start = await start_of(call, client, (name, index), leader, first, end, wanted.limit)
        rows, position = await page_of(cluster, name, wanted, start, read(client, partition, leader, start))
    finally:
        client.close()
    return {
        "topic": name,
        "partition": index,
        "from": start,
        "next_offset": position,
        "start": partition.log_start_offset,
        "end": partition.high_watermark,
        "messages": rows,
    }


async def page_of(
    cluster: ClusterServer, name: str, wanted: Asked, start: int, found: AsyncIterator[dict[str, Any]]
) -> tuple[list[dict[str, Any]], int]:
    """As many records as are asked for, as texts, and the offset after them."""
    schemas = await registry_of(cluster) if wanted.form == "auto" else None
    rows, position = list[dict[str, Any]](), start
    async for row in found:
        position = row["offset"] + 1
        del row["batch"]
        if row.pop("is_dropped") and not wanted.with_aborted:
            continue
        rows.append(await texts(name, row, wanted.form, schemas))
        if len(rows) == wanted.limit:
            break
    return rows, position


async def start_of(
    call: Call, client: LocalClient, place: tuple[str, int], leader: int, first: int, end: int, limit: int
) -> int:
    """The offset to begin with. Errors: RefusedError."""
    if "time_ms" in call.query:
        found = await offset_at(client, *place, leader, number(call, "time_ms", 0))
        return found if found >= 0 else end
    return min(max(first, number(call, "offset", max(first, end - limit))), max(first, end))


class Walk:
    """Walks over the batches of one partition, and tells the outcome of each record's transaction.

    position   the offset of the next record.
    """

    def __init__(self, position: int, outcomes: Outcomes) -> None:
        self.position = position
        self.outcomes = outcomes
        self._taken = 0

    async def rows(self, data: bytes) -> AsyncIterator[dict[str, Any]]:
        """The records of whole batches from the position on, markers included."""
        for place, header in iter_batches(data):
            batch = memoryview(data)[place : place + header.size]
            outcome = self.outcomes.of(header, batch)
            for record in iter_records(batch):
                self._taken += 1
                if self._taken % SLICE == 0:
                    await asyncio.sleep(0)
                if record.offset < self.position:
                    continue
                yield {
                    "offset": record.offset,
                    "batch": header.base_offset,
                    "timestamp_ms": record.timestamp,
                    "key": record.key,
                    "value": record.value,
                    "headers": record.headers,
                    "outcome": marker(record.key) if outcome == MARKER else outcome,
                    "producer_id": header.producer_id,
                    "producer_epoch": header.producer_epoch,
                    "is_control": header.is_control,
                    "is_dropped": outcome in (MARKER, ABORTED),
                }
            # The cleaner may have removed the last records of a batch.
            self.position = max(self.position, header.next_offset)


async def read(client: LocalClient, partition: Partition, leader: int, position: int) -> AsyncIterator[dict[str, Any]]:
    """The records from an offset to the high watermark, markers included. Errors: RefusedError."""
    ahead = ((first, producer) for producer, first in partition.aborted_transactions(position, NO_OFFSET))
    walk = Walk(position, Outcomes(ahead, partition.producers.open))
    while walk.position < partition.high_watermark:
        data = await _fetch(client, partition, leader, walk.position)
        if not data:
            return
        async for row in walk.rows(data):
            yield row


async def _fetch(client: LocalClient, partition: Partition, leader: int, position: int) -> bytes:
    asked = FetchPartition(partition=partition.index, fetch_offset=position, partition_max_bytes=PIECE_BYTES)
    request = FetchRequest(
        max_wait_ms=0,
        min_bytes=0,
        max_bytes=PIECE_BYTES,
        isolation_level=0,
        session_epoch=-1,
        topics=[FetchTopic(topic=partition.topic.name, partitions=[asked])],
    )
    row = (await client.call(request, FETCH_VERSION, leader)).responses[0].partitions[0]
    _check(row.error_code, str(partition))
    return bytes(row.records or b"")


async def registry_of(cluster: ClusterServer) -> Registry | None:
    """The registry that decodes messages: the cluster's own, or the one that is set; None: there is none."""
    if cluster.registry is None and not cluster.config.schema_registry_url:
        return None
    from broker.shell.page.registry import OwnRegistry, Registry  # 30 ms, for its HTTP client: few have a registry

    if cluster.registry is not None:
        return OwnRegistry(await cluster.registry.state())
    return Registry(cluster.config.schema_registry_url, cluster.config.schema_registry_basic_auth_user_info or "")


async def texts(topic: str, row: dict[str, Any], form: str, schemas: Registry | None) -> dict[str, Any]:
    """A row with its bytes as texts."""
    key, value, headers = row["key"], row["value"], row["headers"]
    decoded = internal(topic, key, value) if form == "auto" and not row["is_control"] else None
    if decoded is not None:
        row["key"], row["value"] = decoded
    elif schemas is None or row["is_control"]:
        row["key"], row["value"] = shown(key, form), shown(value, form)
    else:
        row["key"], row["value"] = await _by_schema(key, schemas), await _by_schema(value, schemas)
    row["headers"] = [[shown(name.encode(), "text"), shown(each, form)] for name, each in headers[:MOST_HEADERS]]
    row["more_headers"] = max(0, len(headers) - MOST_HEADERS)
    return row


async def _by_schema(data: bytes | None, schemas: Registry) -> dict[str, Any] | None:
    """Bytes decoded by their schema, or as they are with a note why not."""
    found = await schemas.shown(data)
    return found if found is not None and "text" in found else {**(shown(data) or {}), **(found or {})} or None


def _check(code: int, what: str) -> None:
    if code:
        raise RefusedError(409, f"{what}: {ErrorCode(code).name}")
