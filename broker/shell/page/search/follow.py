"""The live tail of a topic: the newest messages of all partitions that fit, and from then on those that come."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Final, TypedDict
from urllib.parse import quote, urlencode

from broker.shell.asking import Asking
from broker.shell.control.routes import Call, RefusedError
from broker.shell.page.messages import MessageRow, Seen, read, registry_of, texts
from broker.shell.page.search.wanted import TEXTS, Texts, Wanted
from broker.shell.page.topics import UNREADABLE
from broker.shell.page.windows import number
from protocol.record import Record

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable

    from broker.shell.cluster_server import ClusterServer

USUAL: Final = 100
MOST: Final = 500
MOST_LOOKED_AT: Final = 2000  # of the newest records of each partition, in one look
FIRST: Final = 200  # of each partition, when it begins


class TopicTail(TypedDict):
    """The newest messages, oldest first, how many were not looked at, and the path of what comes after them."""

    messages: list[MessageRow]
    not_shown: int
    next: str


class Look:
    """One look at the newest messages of a topic: what a call asks for, and what is found. Errors: RefusedError."""

    def __init__(self, call: Call) -> None:
        try:
            self._wanted = Wanted(texts_of(call))
        except ValueError as error:
            raise RefusedError(400, str(error)) from None
        self._limit, self._since = number(call, "limit", USUAL, MOST, 1), _places(call.query.get("since", ""))
        self._only = {int(each) for each in call.query.get("partitions", "").split(",") if each.isdecimal()}
        self._with_aborted = call.query.get("aborted") == "yes"
        self._query = call.query
        self._rows: list[Seen] = []
        self._ends: dict[int, int] = {}
        self._left_out: dict[int, int] = {}

    def covers(self, index: int) -> bool:
        """Whether a partition is asked for."""
        return not self._only or index in self._only

    async def read(self, index: int, first: int, end: int, records: Callable[[int], AsyncIterator[Seen]]) -> None:
        """Take what fits of a partition. `records`: those from an offset on."""
        since = self._since
        start = max(first, end - FIRST) if since is None else max(first, since.get(index, first))
        left_out = max(0, end - MOST_LOOKED_AT - start) if since is not None else 0
        async for row in records(start + left_out):
            end = max(end, row.offset + 1)
            if not row.is_dropped or (self._with_aborted and not row.is_control):
                record = Record(row.offset, row.timestamp_ms, row.key, row.value, tuple(row.headers))
                if self._wanted.fits(record):
                    self._rows.append(row)
        self._ends[index], self._left_out[index] = end, left_out

    def unreadable(self, index: int) -> None:
        """The next look begins a partition where this one would have."""
        self._ends[index] = 0 if self._since is None else self._since.get(index, 0)

    async def answer(self, cluster: ClusterServer, name: str) -> TopicTail:
        """The messages, oldest first, and where the next look goes on."""
        rows, limit = self._rows, self._limit
        rows.sort(key=lambda row: (row.timestamp_ms, row.partition, row.offset))
        schemas = await registry_of(cluster) if rows else None
        words = {**self._query, "since": ",".join(f"{index}:{end}" for index, end in self._ends.items())}
        return {
            "messages": [await texts(name, row, "auto", schemas) for row in rows[-limit:]],
            "not_shown": sum(self._left_out.values()) + max(0, len(rows) - limit),
            "next": f"/_admin/clusters/{quote(cluster.name)}/topics/{quote(name, safe='')}/tail?{urlencode(words)}",
        }


async def show_tail(cluster: ClusterServer, call: Call) -> TopicTail:
    """Messages since a look before, oldest first, and how many older ones were not looked at. Errors: RefusedError."""
    name, broker = call.words["topic"], cluster.broker
    topic = broker.metadata.topics.get(name)
    if topic is None:
        raise RefusedError(404, f"no such topic: {name:.100}")
    look = Look(call)
    with Asking(cluster) as asking:
        for index in range(len(topic.partitions)):
            if not look.covers(index) or not broker.partitions.has(topic, index):
                continue
            try:
                partition = broker.partitions.get(topic, index)
                first, end = partition.log_start_offset, partition.high_watermark
                await look.read(index, first, end, partial(read, asking, partition))
            except UNREADABLE:
                look.unreadable(index)
    return await look.answer(cluster, name)


def texts_of(call: Call) -> Texts:
    """What the records that a call asks for must fit. Errors: RefusedError."""
    query, found = call.query, Texts()
    for name in TEXTS:
        if query.get(name):
            found[name] = query[name]
    if query.get("path"):
        found["path"] = query["path"]
    if query.get("from_ms"):
        found["from_ms"] = number(call, "from_ms", 0)
    if query.get("to_ms"):
        found["to_ms"] = number(call, "to_ms", 0)
    return found


def _places(text: str) -> dict[int, int] | None:
    """Partition -> offset, of 0:12,1:7; None: it begins. Errors: RefusedError."""
    if not text:
        return None
    pairs = [each.split(":") for each in text.split(",")]
    if not all(len(pair) == 2 and all(each.isascii() and each.isdigit() for each in pair) for pair in pairs):
        raise RefusedError(400, f'"since" is PARTITION:OFFSET, as `next` has it, not {text:.40}')
    return {int(index): int(offset) for index, offset in pairs}
