"""Messages of a partition, from an offset or a time on, decoded, each with the outcome of its transaction."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final, NamedTuple, TypedDict

from broker.asks.records import ABORTED, MARKER, NO_OFFSET, Outcomes, fetch
from broker.asks.topics import offset_at
from broker.shell.asking import Asking
from broker.shell.control.calls.records import check_answer
from broker.shell.control.routes import Call, RefusedError
from broker.shell.page.texts import FORMS, TextRow, internal, marker, shown
from broker.shell.page.windows import number
from protocol.errors import KafkaError
from protocol.record_batch import iter_batches, iter_records

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Sequence

    from broker.partitions.partition import Partition
    from broker.shell.cluster_server import ClusterServer
    from broker.shell.page.registry import Registry

MOST: Final = 200
USUAL: Final = 50
MOST_HEADERS: Final = 50
SLICE: Final = 100  # records that are left out, before clients are served again


class Seen(NamedTuple):
    """A record of a log, with the outcome of its transaction: as Outcomes has it, or the kind of a marker."""

    partition: int
    batch: int  # the first offset of its batch
    offset: int
    timestamp_ms: int
    key: bytes | None
    value: bytes | None
    headers: Sequence[tuple[str, bytes | None]]
    outcome: str
    producer_id: int
    producer_epoch: int
    is_control: bool = False

    @property
    def is_dropped(self) -> bool:
        """Whether a consumer does not see it: a marker, or a record of an aborted transaction."""
        return self.is_control or self.outcome == ABORTED


class MessageRow(TypedDict):
    """A message with its bytes as texts."""

    partition: int
    offset: int
    timestamp_ms: int
    key: TextRow | None
    value: TextRow | None
    headers: list[list[TextRow | None]]
    more_headers: int
    outcome: str
    producer_id: int
    producer_epoch: int
    is_control: bool


_From = TypedDict("_From", {"from": int})  # a word of Python


class Messages(_From):
    """Messages of a partition, and where to go on."""

    topic: str
    partition: int
    next_offset: int
    start: int
    end: int
    messages: list[MessageRow]


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


async def show_messages(cluster: ClusterServer, call: Call) -> Messages:
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
    first, end = partition.log_start_offset, partition.high_watermark
    with Asking(cluster) as asking:
        start = await start_of(call, asking, (name, index), first, end, wanted.limit)
        rows, position = await page_of(cluster, name, wanted, start, read(asking, partition, start))
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
    cluster: ClusterServer, name: str, wanted: Asked, start: int, found: AsyncIterator[Seen]
) -> tuple[list[MessageRow], int]:
    """As many records as are asked for, as texts, and the offset after them."""
    schemas = await registry_of(cluster) if wanted.form == "auto" else None
    rows, position = list[MessageRow](), start
    async for row in found:
        position = row.offset + 1
        if row.is_dropped and not wanted.with_aborted:
            continue
        rows.append(await texts(name, row, wanted.form, schemas))
        if len(rows) == wanted.limit:
            break
    return rows, position


async def start_of(call: Call, asking: Asking, place: tuple[str, int], first: int, end: int, limit: int) -> int:
    """The offset to begin with. Errors: RefusedError."""
    if "time_ms" in call.query:
        found = await asking.ask(offset_at(*place, number(call, "time_ms", 0)))
        return found if found >= 0 else end
    return min(max(first, number(call, "offset", max(first, end - limit))), max(first, end))


class Walk:
    """Walks over the batches of one partition, and tells the outcome of each record's transaction.

    position   the offset of the next record.
    """

    def __init__(self, partition: int, position: int, outcomes: Outcomes) -> None:
        self._partition = partition
        self.position = position
        self.outcomes = outcomes
        self._taken = 0

    async def rows(self, data: bytes) -> AsyncIterator[Seen]:
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
                kind = marker(record.key) if outcome == MARKER else outcome
                yield Seen(
                    self._partition,
                    header.base_offset,
                    *record,
                    kind,
                    header.producer_id,
                    header.producer_epoch,
                    header.is_control,
                )
            # The cleaner may have removed the last records of a batch.
            self.position = max(self.position, header.next_offset)


async def read(asking: Asking, partition: Partition, position: int) -> AsyncIterator[Seen]:
    """The records from an offset to the high watermark, markers included. Errors: RefusedError."""
    ahead = ((first, producer) for producer, first in partition.aborted_transactions(position, NO_OFFSET))
    walk = Walk(partition.index, position, Outcomes(ahead, partition.producers.open))
    while walk.position < partition.high_watermark:
        found = await asking.ask(fetch(partition.topic.name, partition.index, walk.position))
        check_answer(found.error_code, str(partition))
        data = bytes(found.records or b"")
        if not data:
            return
        async for row in walk.rows(data):
            yield row


async def registry_of(cluster: ClusterServer) -> Registry | None:
    """The registry that decodes messages: the cluster's own, or the one that is set; None: there is none.

    Errors: RefusedError.
    """
    if cluster.registry is None and not cluster.config.schema_registry_url:
        return None
    from broker.shell.page.registry import OwnRegistry, Registry  # 30 ms, for its HTTP client: few have a registry

    if cluster.registry is not None:
        from broker.shell.page.schemas import state_of  # 1 ms: the same

        return OwnRegistry(await state_of(cluster))
    return Registry(cluster.config.schema_registry_url, cluster.config.schema_registry_basic_auth_user_info or "")


async def texts(topic: str, seen: Seen, form: str, schemas: Registry | None) -> MessageRow:
    """A record with its bytes as texts."""
    decoded = internal(topic, seen.key, seen.value) if form == "auto" and not seen.is_control else None
    if decoded is not None:
        key, value = decoded
    elif schemas is None or seen.is_control:
        key, value = shown(seen.key, form), shown(seen.value, form)
    else:
        key, value = await _by_schema(seen.key, schemas), await _by_schema(seen.value, schemas)
    return {
        "partition": seen.partition,
        "offset": seen.offset,
        "timestamp_ms": seen.timestamp_ms,
        "key": key,
        "value": value,
        "headers": [[shown(name.encode(), "text"), shown(each, form)] for name, each in seen.headers[:MOST_HEADERS]],
        "more_headers": max(0, len(seen.headers) - MOST_HEADERS),
        "outcome": seen.outcome,
        "producer_id": seen.producer_id,
        "producer_epoch": seen.producer_epoch,
        "is_control": seen.is_control,
    }


async def _by_schema(data: bytes | None, schemas: Registry) -> TextRow | None:
    """Bytes decoded by their schema, or as they are with a note why not."""
    found, undecoded = await schemas.shown(data), shown(data)
    if found is None or "text" in found:
        return found or undecoded
    return undecoded and {**undecoded, "note": found["note"]}
