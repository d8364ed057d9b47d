"""What survives a compaction: the last offset of each key, aborted transactions, what producers need.

Pure over the batches of segments; every function that may take long is a generator that yields now and then.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterator
from itertools import islice
from typing import Final, TypeAlias

from protocol.record import Record, decode_keys, decode_records
from protocol.record_batch import (
    ABORT,
    MAX_RECORD_BYTES,
    TRANSACTIONAL,
    BatchHeader,
    control_type,
    records_of,
)
from storage.segments.segment import Segment
from storage.segments.spans import TXID, Runs, span_of

# One slice: 0.1 to 0.3 ms of records at 4 us each, of keys at 3 us, of headers at 1 us, or of offsets put into a set.
SLICE_RECORDS: Final = 64
SLICE_KEYS: Final = 32
_SLICE_HEADERS: Final = 128
_SLICE_OFFSETS: Final = 4096
# About 200 bytes a key: a pass needs 50 MB at most, and the next pass goes on where it stopped.
MAX_KEYS: Final = 250_000
_KEY_BYTES: Final = 64  # a digest of a shorter one takes longer than what it saves is worth
_DIGEST_BYTES: Final = 16
_TXID: Final = TXID.encode()

LastBatchOf: TypeAlias = "Callable[[int], tuple[int, int] | None]"


class Plan:
    """What survives, as far as one pass can know it: everything below end_offset."""

    __slots__ = (
        "aborted",
        "commits",
        "dirty_offset",
        "empty_markers",
        "end_offset",
        "held_tombstones",
        "last_by_key",
        "last_by_producer",
        "now_ms",
        "partial",
        "survivors",
        "tombstones_end",
        "whole",
    )

    def __init__(self, now_ms: int, end_offset: int, *, commits: bool = False) -> None:
        self.now_ms = now_ms
        self.tombstones_end = 2**63 - 1  # those from here on stay
        self.held_tombstones = False  # whether one was due and stayed
        self.commits = commits  # a coordinator's log: a batch, or a run of them, is one commit (spans.py)
        self.end_offset = end_offset
        self.last_by_key: dict[bytes, int] = {}
        self.dirty_offset = 2**63 - 1  # last_by_key knows every key from here to end_offset
        self.survivors: set[int] = set()  # the offsets in last_by_key
        # producer id -> (first, last) offsets of its aborted transactions
        self.aborted: dict[int, list[tuple[int, int]]] = {}
        # base offsets of markers that end a transaction of which no record is left
        self.empty_markers: set[int] = set()
        self.last_by_producer: dict[int, int] = {}  # producer id -> last offset of the batch that holds its state
        # base offsets of the batches of commits over several batches: of those that are all there, and of parts
        self.whole: set[int] = set()
        self.partial: set[int] = set()

    def is_aborted(self, header: BatchHeader) -> bool:
        """Whether a batch of records belongs to an aborted transaction."""
        if not header.attributes & TRANSACTIONAL or header.is_control:
            return False
        spans = self.aborted.get(header.producer_id)
        if not spans:
            return False
        at = bisect_right(spans, header.base_offset, key=_first) - 1  # a producer has one at a time
        return at >= 0 and header.base_offset < spans[at][1]

    def is_superseded(self, header: BatchHeader) -> bool:
        """Whether nothing is left of a batch, as its header tells; most of what clients write again and again.

        Each of its records is aborted, without a key, or followed by one with the same key: else it had survived.
        """
        base_offset, next_offset = header.base_offset, header.next_offset
        if base_offset < self.dirty_offset or next_offset >= self.end_offset or header.is_control:
            return False
        if next_offset - base_offset > _SLICE_OFFSETS:  # too many for one step
            return False
        if header.producer_id >= 0 and self.last_by_producer.get(header.producer_id) == header.last_offset:
            return False
        return self.survivors.isdisjoint(range(base_offset, next_offset))

    def keeps(self, offset: int, key: bytes | None) -> bool:
        """The last of its key; a compacted log has no use for a record without one."""
        if key is None:
            return False
        return self.last_by_key.get(key if len(key) <= _KEY_BYTES else digest(key), -1) <= offset


def digest(key: bytes) -> bytes:
    """The key, or 16 bytes in its place: a map of long keys stays small."""
    if len(key) <= _KEY_BYTES:
        return key
    from hashlib import blake2b  # 1.2 ms, for keys of over 64 bytes

    return blake2b(key, digest_size=_DIGEST_BYTES).digest()


class ProducersInLog:
    """Which batch of a producer must stay, as a bare header if need be, because it holds the producer's state.

    `last_batch_of` answers (last offset of the last batch of records, or -1, and epoch) of an active producer, and None
    for any other. Without it the log alone decides: a producer is active until `expiration_ms` after its last batch.
    """

    __slots__ = ("_data", "_expiration_ms", "_last_batch_of", "_markers", "_times")

    def __init__(self, last_batch_of: LastBatchOf | None = None, expiration_ms: int | None = None) -> None:
        self._last_batch_of = last_batch_of
        self._expiration_ms = expiration_ms
        self._data: dict[int, int] = {}
        self._markers: dict[int, tuple[int, int]] = {}  # offset and epoch
        self._times: dict[int, int] = {}

    def add(self, header: BatchHeader) -> None:
        """Note a batch of a producer."""
        producer_id = header.producer_id
        if header.is_control:
            self._markers[producer_id] = header.last_offset, header.producer_epoch
        else:
            self._data[producer_id] = header.last_offset
        self._times[producer_id] = header.max_timestamp

    def kept(self, now_ms: int) -> Iterator[tuple[int, int]]:
        """(producer id, last offset of the batch that must stay). Source: Kafka's Cleaner.checkBatchRetention."""
        for producer_id, time_ms in self._times.items():
            marker_offset, marker_epoch = self._markers.get(producer_id, (-1, -1))
            if self._last_batch_of is not None:
                known = self._last_batch_of(producer_id)
                if known is not None:
                    last_offset, epoch = known
                    if last_offset >= 0:
                        yield producer_id, last_offset
                    elif marker_epoch == epoch:  # the marker alone has the epoch that fences older instances
                        yield producer_id, marker_offset
            elif self._expiration_ms is None or now_ms - time_ms < self._expiration_ms:
                yield producer_id, self._data.get(producer_id, marker_offset)


def plan_transactions(plan: Plan, segments: list[Segment], producers: ProducersInLog) -> Iterator[None]:
    """Aborted transactions, markers of empty ones, the batches that hold producers' state; from headers alone.

    Records of a transaction that is still undecided at the end may not be judged: the pass ends before them. A batch
    that the cleaner has emptied still needs its marker: Kafka would take it for an open transaction.
    """
    open_since: dict[int, int] = {}
    with_batches: set[int] = set()
    seen = 0
    for segment in segments:
        for position, header in segment.headers(0):
            seen += 1
            if seen % _SLICE_HEADERS == 0:
                yield
            if header.producer_id < 0 or header.base_offset >= plan.end_offset:
                continue
            producers.add(header)
            producer_id = header.producer_id
            if header.is_control:
                first = open_since.pop(producer_id, None)
                if producer_id not in with_batches:
                    plan.empty_markers.add(header.base_offset)
                with_batches.discard(producer_id)
                if first is not None and header.record_count and _is_abort(segment, position, header):
                    plan.aborted.setdefault(producer_id, []).append((first, header.base_offset))
            elif header.is_transactional:
                with_batches.add(producer_id)
                if header.record_count:
                    open_since.setdefault(producer_id, header.base_offset)
    for producer_id, offset in producers.kept(plan.now_ms):
        plan.last_by_producer[producer_id] = offset
        seen += 1
        if seen % _SLICE_HEADERS == 0:
            yield
    if open_since:
        plan.end_offset = min(plan.end_offset, *open_since.values())


def _is_abort(segment: Segment, position: int, header: BatchHeader) -> bool:
    batch = segment.file.pread(header.size, position)
    for record in raw_records(section_of(batch, header), header):
        return record.key is not None and control_type(record.key) == ABORT
    return False


def plan_keys(plan: Plan, segments: list[Segment], dirty_offset: int, max_keys: int, most_bytes: int) -> Iterator[None]:
    """The last offset of each key from dirty_offset on, until there are max_keys of them."""
    last_by_key = plan.last_by_key
    runs: Runs[tuple[bytes, int, int]] = Runs()  # digest of the key, offset, base offset of the batch
    keys = 0
    for segment, after in zip(segments, [*segments[1:], None], strict=True):
        if after is not None and after.base_offset <= dirty_offset:
            continue
        for _, header, batch in segment.batches(segment.position_of(dirty_offset)):
            if header.base_offset >= plan.end_offset:
                break
            if len(last_by_key) >= max_keys:  # never within a commit: its keys come in at its end
                plan.end_offset = header.base_offset
                break
            if header.is_control or plan.is_aborted(header):
                continue
            section = section_of(batch, header, most_bytes)
            if not plan.commits or _TXID not in section:  # a commit of its own
                if runs.is_open and header.record_count:
                    _close(plan, runs)
                for offset, key, _ in decode_keys(section, header.record_count, header.base_offset):
                    keys += 1
                    if keys % SLICE_KEYS == 0:
                        yield
                    if key is not None:
                        last_by_key[key if len(key) <= _KEY_BYTES else digest(key)] = offset
                continue
            yield from _plan_span(plan, runs, header, section)
    _close(plan, runs)
    offsets = iter(last_by_key.values())
    while some := tuple(islice(offsets, _SLICE_OFFSETS)):
        plan.survivors.update(some)
        yield
    plan.dirty_offset = dirty_offset


def _plan_span(plan: Plan, runs: Runs[tuple[bytes, int, int]], header: BatchHeader, section: bytes) -> Iterator[None]:
    """The keys of a batch that may be a part of a commit over several batches."""
    for count, record in enumerate(raw_records(section, header), 1):
        if count % SLICE_RECORDS == 0:
            yield
        if record.key is None:
            continue
        span = span_of(record.headers) if record.headers else None
        if runs.is_open and not (span and runs.goes_on(record.headers)):
            _close(plan, runs)
        if span is None:
            plan.last_by_key[digest(record.key)] = record.offset
        else:
            runs.add(span, (digest(record.key), record.offset, header.base_offset))
            plan.partial.add(header.base_offset)  # until the run is seen to be whole


def _close(plan: Plan, runs: Runs[tuple[bytes, int, int]]) -> None:
    """A commit over several batches ends: its keys count if all of it is there."""
    items, whole = runs.close()
    if whole:
        plan.last_by_key.update((key, offset) for key, offset, _ in items)
        bases = {base_offset for _, _, base_offset in items}
        plan.partial -= bases
        plan.whole |= bases


def section_of(batch: bytes | memoryview, header: BatchHeader, most_bytes: int = MAX_RECORD_BYTES) -> bytes:
    """The uncompressed record section of a batch. Errors: as records_of."""
    return bytes(records_of(batch, header, most_bytes=most_bytes))


def raw_records(section: bytes, header: BatchHeader) -> Iterator[Record]:
    """Records with the times they were written with, whatever LogAppendTime makes of them."""
    return decode_records(section, header.record_count, header.base_offset, header.base_timestamp)


def _first(span: tuple[int, int]) -> int:
    return span[0]
