"""A search over the partitions of a topic as a stream: how far it is, and each record that fits, as it is found.

Lines of JSON: {"begin": {partitions, records}}, {"progress": ...}, {"hit": a message as GET .../messages has it}, and
{"end": "all" or "most"} or {"error": why} at last. As an export: the file. Hanging up ends the search and its process.
"""

from __future__ import annotations

import asyncio
import base64
import json
import os
import sys
from collections.abc import AsyncGenerator, AsyncIterator
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from broker.shell.control.routes import Call, RefusedError, Stream
from broker.shell.page.messages import Seen, registry_of, texts
from broker.shell.page.search.follow import texts_of
from broker.shell.page.search.wanted import Job, Wanted
from broker.shell.page.search.worker import ABOUT, FILE, PIECE, Begin
from broker.shell.page.windows import number
from protocol.errors import KafkaError
from storage.files.errors import StorageError

if TYPE_CHECKING:
    from asyncio.subprocess import Process as Child

    from broker.cluster.topics import Topic
    from broker.partitions.partition import Partition
    from broker.shell.cluster_server import ClusterServer

WHOLE_BYTES: Final = 1 << 62
MOST_LENT: Final = 64  # descriptors of files
PIECE_BYTES: Final = 1 << 18  # what clients wait for at most, while it is read
USUAL: Final = 200
MOST_HITS: Final = 5000  # that a page is sent
MOST_EXPORTED: Final = 10_000_000
MOST_SEARCHES: Final = 4  # at once
LINE_BYTES: Final = 256 << 20  # a record in base64, with its headers
FORMS: Final = {"page": "application/x-ndjson", "lines": "application/x-ndjson", "load": "application/json"}
START: Final = "from broker.shell.page.search.begin import main; main()"

_running: set[object] = set()  # searches of this process


class Lent(NamedTuple):
    """Whole batches of a partition in a file, which the process reads."""

    partition: int
    descriptor: int
    position: int
    size: int
    end_offset: int


async def search(cluster: ClusterServer, call: Call) -> Stream:
    """Start a search. Errors: RefusedError: no such topic; the search is none; too many are running."""
    topic = cluster.broker.metadata.topics.get(call.words["topic"])
    if topic is None:
        raise RefusedError(404, f"no such topic: {call.words['topic']:.100}")
    form = call.query.get("form", "page")
    if form not in FORMS:
        raise RefusedError(400, f'"form" takes one of {", ".join(FORMS)}')
    most, usual = (MOST_HITS, USUAL) if form == "page" else (MOST_EXPORTED, MOST_EXPORTED)
    limit, is_aborted = number(call, "limit", usual, most, 1), call.query.get("aborted") == "yes"
    job: Job = {**texts_of(call), "form": form, "most": limit, "aborted": is_aborted}
    try:
        Wanted(job)
    except ValueError as error:
        raise RefusedError(400, str(error)) from None
    if len(_running) >= MOST_SEARCHES:
        raise RefusedError(503, f"{MOST_SEARCHES} searches are running already")
    places = _places(topic, call.query.get("partitions", ""))
    return Stream(FORMS[form], _pieces(cluster, topic, places, job))


def _places(topic: Topic, text: str) -> list[int]:
    """The partitions that are searched: those named, "0,2", or all. Errors: RefusedError."""
    if not text:
        return list(range(len(topic.partitions)))
    named = text.split(",")
    if not all(each.isascii() and each.isdigit() and int(each[:9]) < len(topic.partitions) for each in named):
        raise RefusedError(404, f"no such partitions of {topic.name:.100}: {text:.60}")
    return sorted({int(each) for each in named})


async def _pieces(cluster: ClusterServer, topic: Topic, places: list[int], job: Job) -> AsyncGenerator[bytes, None]:
    """What the client reads."""
    token = object()
    _running.add(token)
    child: Child | None = None
    feeding: asyncio.Future[None] | None = None
    try:
        partitions = [each for index in places if (each := _opened(cluster, topic, index)) is not None]
        lent: list[Lent] = []
        try:
            for each in partitions:
                lent += _lent(each, job, MOST_LENT - len(lent))
            child = await asyncio.create_subprocess_exec(
                *(sys.executable, "-c", START),
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                limit=LINE_BYTES,
                env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
                pass_fds=[part.descriptor for part in lent],
            )
        finally:
            for part in lent:
                os.close(part.descriptor)
        feeding = asyncio.ensure_future(_feed(child, partitions, lent, job))
        show = _shown if job["form"] == "page" else _exported
        async for piece in show(cluster, topic, child, partitions, job):
            yield piece
        error = await _outcome(feeding)
        if error and job["form"] == "page":
            yield _line({"error": error})
    finally:
        _running.discard(token)
        if feeding is not None:
            feeding.cancel()
        if child is not None and child.returncode is None:
            child.kill()
            await child.wait()


def _opened(cluster: ClusterServer, topic: Topic, index: int) -> Partition | None:
    """A partition that has files; None: it has none yet. Errors: KafkaError, StorageError, OSError."""
    broker = cluster.broker
    return broker.partitions.get(topic, index) if broker.partitions.has(topic, index) else None


async def _outcome(feeding: asyncio.Future[None]) -> str:
    """Why not all was searched; "": it was, or the process had enough."""
    try:
        await feeding
    except (KafkaError, StorageError) as error:
        return str(error) or type(error).__name__
    except OSError as error:
        return "" if isinstance(error, (BrokenPipeError, ConnectionResetError)) else str(error)
    return ""


def _start(partition: Partition, job: Job) -> int:
    """The first offset that is searched. Errors: as those of a read."""
    position = partition.log_start_offset
    if "from_ms" in job:
        found = partition.log.offset_for_timestamp(job["from_ms"])
        position = partition.high_watermark if found is None else max(position, found[1])
    return position


def _lent(partition: Partition, job: Job, most: int) -> list[Lent]:
    """The parts of a partition from its start on that the process can read by itself: the broker need not."""
    found = list[Lent]()
    if not most or not hasattr(os, "pread"):  # on Windows a process inherits no descriptors
        return found
    try:
        position = _start(partition, job)
        while len(found) < most:
            part = partition.log.read(position, WHOLE_BYTES, limit_offset=partition.high_watermark)
            if part is None:
                break
            found.append(Lent(partition.index, part.lend(), part.position, len(part), part.end_offset))
            position = part.end_offset
    except (KafkaError, StorageError, OSError):
        pass  # in memory, or no more descriptors: the rest is sent, or there it is told why it cannot be
    return found


async def _feed(child: Child, partitions: list[Partition], lent: list[Lent], job: Job) -> None:
    """Give the process all that is to be searched. Errors: OSError: it has ended; KafkaError, StorageError."""
    pipe = child.stdin
    assert pipe is not None
    pipe.transport.set_write_buffer_limits(high=2 * PIECE_BYTES)
    pipe.write(json.dumps(job).encode() + b"\n")
    for partition in partitions:
        position, end = _start(partition, job), partition.high_watermark
        about: Begin = {
            "start": position,
            "begins": [(first, producer) for producer, first in partition.aborted_transactions(position, 1 << 62)],
            "open": [(producer, first) for producer, first in partition.producers.open.items()],
        }
        pipe.write(_framed(ABOUT, json.dumps(about).encode()))
        for part in lent:
            if part.partition == partition.index:
                pipe.write(_framed(FILE, json.dumps(part[:-1]).encode()))
                position = part.end_offset
        while (position := max(position, partition.log_start_offset)) < end:  # retention goes on meanwhile
            found_slice = partition.log.read(position, PIECE_BYTES, limit_offset=end)
            if found_slice is None:
                break
            pipe.write(_framed(partition.index, found_slice.read()))
            position = found_slice.end_offset
            await pipe.drain()
            await asyncio.sleep(0)
    pipe.close()


def _framed(partition: int, data: bytes) -> bytes:
    return PIECE.pack(partition, len(data)) + data


async def _shown(
    cluster: ClusterServer, topic: Topic, child: Child, partitions: list[Partition], job: Job
) -> AsyncIterator[bytes]:
    """The lines of a page: hits as texts, decoded by their schemas."""
    schemas, output = await registry_of(cluster), child.stdout
    assert output is not None
    bounds = [(each.index, each.log_start_offset, each.high_watermark) for each in partitions]
    about = [{"partition": index, "start": start, "end": end} for index, start, end in bounds]
    yield _line({"begin": {"partitions": about, "records": sum(end - start for _, start, end in bounds)}})
    while line := await output.readline():
        said = json.loads(line)
        if "hit" in said:
            row = said["hit"]
            row["key"], row["value"] = _bytes(row["key"]), _bytes(row["value"])
            row["headers"] = [(name, _bytes(value)) for name, value in row["headers"]]
            line = _line({"hit": await texts(topic.name, Seen(batch=row["offset"], **row), "auto", schemas)})
        yield line


async def _exported(
    cluster: ClusterServer, topic: Topic, child: Child, partitions: list[Partition], job: Job
) -> AsyncIterator[bytes]:
    """The bytes of a file, in which a topic has as many partitions as here."""
    output, is_load = child.stdout, job["form"] == "load"
    assert output is not None
    if is_load:
        head = json.dumps({"name": topic.name, "partitions": len(topic.partitions)}, ensure_ascii=False)[:-1]
        yield f'{{"topics": [{head}, "records": [\n'.encode()
    while piece := await output.read(1 << 16):
        yield piece
    if is_load:
        yield b"\n]}]}\n"


def _bytes(text: str | None) -> bytes | None:
    return None if text is None else base64.b64decode(text)


def _line(value: Any) -> bytes:
    return json.dumps(value).encode() + b"\n"
