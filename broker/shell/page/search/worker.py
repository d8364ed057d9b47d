"""The process of a search: batches come by standard input, what fits goes to standard output, a JSON object a line.

in    a line: the job; then pieces: partition and length (int32 both, big-endian), and that many bytes of whole
      batches. Partition -1: JSON about the partition that follows, {partition, start, begins, open}: where its
      search starts, and (first offset, producer) of its aborted and its open transactions. Partition -2: JSON about
      where whole batches are, [partition, descriptor, position, size]: in a file that this process has inherited.
out   {"hit": ...}: a record, in base64; {"progress": ...} after each 4 MB or 20,000 records; {"end": why} at last:
      "all", or "most" where as many as the job wants were found; or {"error": why}. With "form" lines or load: the
      export, and nothing else.
"""

from __future__ import annotations

import base64
import json
import os
import sys
from collections.abc import Callable
from struct import Struct
from typing import IO, Any, Final, TypedDict

from broker.asks.records import ABORTED, MARKER, Outcomes
from broker.shell.page.search.wanted import Job, Wanted
from protocol.compression import decompress
from protocol.errors import KafkaError
from protocol.record import Record, decode_records
from protocol.record_batch import (
    CODEC_MASK,
    HEADER_BYTES,
    LOG_APPEND_TIME,
    MAX_INFLATED_BYTES,
    BatchHeader,
    iter_batches,
)

PIECE: Final = Struct(">ii")
ABOUT: Final = -1
FILE: Final = -2
READ_BYTES: Final = 1 << 18
PROGRESS_BYTES: Final = 1 << 22
PROGRESS_RECORDS: Final = 20_000


class Begin(TypedDict):
    """Where the search of a partition starts, and (first offset, producer) of its transactions."""

    start: int
    begins: list[tuple[int, int]]
    open: list[tuple[int, int]]


class Search:
    """One job, with what it has seen."""

    def __init__(self, job: Job, out: IO[bytes], pause: Callable[[], None]) -> None:
        self.wanted = Wanted(job)
        self.most = job["most"]
        self.with_aborted = job["aborted"]
        self.form = job["form"]
        self.hits = self.records = self.bytes = self.unreadable = 0
        self._out = out
        self._pause = pause
        self._tell_at = (PROGRESS_BYTES, PROGRESS_RECORDS)
        self._start = 0
        self._outcomes = Outcomes()

    def begin(self, about: Begin) -> None:
        """A partition follows."""
        self._start = about["start"]
        self._outcomes = Outcomes(
            [(first, producer) for first, producer in about["begins"]],
            {producer: first for first, producer in about["open"]},
        )

    def look(self, partition: int, data: bytes) -> bool:
        """Go through whole batches. Returns whether to go on."""
        view = memoryview(data)
        self.bytes += len(data)
        offset = 0
        for place, header in iter_batches(data):
            offset = header.base_offset + header.last_offset_delta
            batch = view[place : place + header.size]
            try:
                self._batch(partition, header, batch, self._outcomes.of(header, batch))
            except (KafkaError, ValueError):
                self.unreadable += 1
            if self.hits >= self.most:
                return False
            self._pause()
        if self.form == "page" and (self.bytes >= self._tell_at[0] or self.records >= self._tell_at[1]):
            self._tell_at = (self.bytes + PROGRESS_BYTES, self.records + PROGRESS_RECORDS)
            self._write({"progress": {"partition": partition, "offset": offset, **self._counts()}})
        self._out.flush()
        return True

    def look_into(self, partition: int, descriptor: int, position: int, size: int) -> bool:
        """Go through whole batches of a file. Returns whether to go on. Errors: OSError: it cannot be read."""
        end, wanted = position + size, READ_BYTES
        while position < end:
            data = os.pread(descriptor, min(wanted, end - position), position)
            whole = sum(header.size for _, header in iter_batches(data))
            if not whole:
                if len(data) < min(wanted, end - position) or wanted >= end - position:
                    raise OSError(f"A log of partition {partition} ends {end - position} bytes too early")
                wanted *= 2  # a batch is larger
                continue
            if not self.look(partition, data[:whole]):
                return False
            position, wanted = position + whole, READ_BYTES
        return True

    def end(self, why: str, what: str = "end") -> None:
        """The last line."""
        if self.form == "page":
            self._write({what: why, **self._counts()})
        self._out.flush()

    def _counts(self) -> dict[str, int]:
        return {"records": self.records, "bytes": self.bytes, "hits": self.hits, "unreadable": self.unreadable}

    def _batch(self, partition: int, header: BatchHeader, batch: memoryview, outcome: str) -> None:
        """Errors: KafkaError, ValueError: it cannot be read."""
        self.records += header.record_count
        if outcome == MARKER or not self.wanted.may_be_in(header) or (outcome == ABORTED and not self.with_aborted):
            return
        codec = header.attributes & CODEC_MASK
        section = bytes(decompress(codec, batch[HEADER_BYTES:], MAX_INFLATED_BYTES) if codec else batch[HEADER_BYTES:])
        among = self.wanted.among(section, header.record_count) if self.wanted.may_hold(section) else ()
        if among is not None and not among:
            return
        append_time = header.max_timestamp if header.attributes & LOG_APPEND_TIME else None
        records = decode_records(section, header.record_count, header.base_offset, header.base_timestamp, append_time)
        for at, record in enumerate(records):
            if record.offset >= self._start and (among is None or at in among) and self.wanted.fits(record):
                self._found(partition, header, record, outcome)
                if self.hits >= self.most:
                    return

    def _found(self, partition: int, header: BatchHeader, record: Record, outcome: str) -> None:
        self.hits += 1
        if self.form == "page":
            self._write({"hit": {
                "partition": partition,
                "offset": record.offset,
                "timestamp_ms": record.timestamp,
                "key": _base64(record.key),
                "value": _base64(record.value),
                "headers": [[name, _base64(value)] for name, value in record.headers],
                "outcome": outcome,
                "producer_id": header.producer_id,
                "producer_epoch": header.producer_epoch,
            }})  # fmt: skip  # one object
            return
        row: dict[str, object] = {"partition": partition}
        if self.form == "lines":
            row["offset"] = record.offset
        row |= {"timestamp": record.timestamp, "key": _text(record.key), "value": _text(record.value)}
        if record.headers:
            row["headers"] = [[name, _text(value)] for name, value in record.headers]
        if self.form == "load" and self.hits > 1:
            self._out.write(b",\n")
        self._write(row, b"" if self.form == "load" else b"\n")

    def _write(self, value: Any, after: bytes = b"\n") -> None:
        self._out.write(json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode() + after)


def _base64(data: bytes | None) -> str | None:
    return None if data is None else base64.b64encode(data).decode()


def _text(data: bytes | None) -> Any:
    """Bytes as a load file has them: a text where that gives the same bytes again."""
    if data is None:
        return None
    try:
        return data.decode()
    except UnicodeDecodeError:
        return {"base64": _base64(data)}


def run(job: Job, source: IO[bytes], out: IO[bytes], pause: Callable[[], None] = lambda: None) -> None:
    """Search what comes until it ends, or enough is found. `pause` is called between two batches."""
    search = Search(job, out, pause)
    try:
        while head := source.read(PIECE.size):
            partition, length = PIECE.unpack(head)
            data = source.read(length)
            if len(data) < length:
                return  # the broker has ended
            if partition == ABOUT:
                search.begin(json.loads(data))
            elif not (search.look_into(*json.loads(data)) if partition == FILE else search.look(partition, data)):
                search.end("most")
                return
        search.end("all")
    except BrokenPipeError:
        raise
    except OSError as error:
        search.end(str(error), "error")


def main(pause: Callable[[], None]) -> None:
    """Read the job, and do it."""
    source, out = sys.stdin.buffer, sys.stdout.buffer
    try:
        run(json.loads(source.readline()), source, out, pause)
    except (BrokenPipeError, KeyboardInterrupt):  # the request was given up
        os._exit(0)
