"""One .log file of record batches with its sparse index: append, find, walk, cut."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from struct import Struct
from typing import Final

from protocol.record_batch import HEADER_BYTES, LOG_OVERHEAD_BYTES, MAGIC, BatchHeader
from storage.files.env import Buffer, File, Files
from storage.files.errors import StorageError
from storage.segments.batches import read_batches
from storage.segments.file_slice import FileSlice
from storage.segments.index import SparseIndex, decode
from storage.segments.transaction_index import SUFFIX as TRANSACTION_INDEX_SUFFIX

LOG_SUFFIX: Final = ".log"
INDEX_SUFFIX: Final = ".index"
TIME_INDEX_SUFFIX: Final = ".timeindex"
# Suffixes of files that belong to a segment: all of them go when it goes. Not `.snapshot`: it stays true without it.
SEGMENT_SUFFIXES: Final = (LOG_SUFFIX, INDEX_SUFFIX, TIME_INDEX_SUFFIX, TRANSACTION_INDEX_SUFFIX)

MAX_RELATIVE_OFFSET: Final = (1 << 31) - 1
_MAX_HINTS: Final = 64
_WALK_BYTES: Final = 8192
NEVER: Final = 1 << 62
_WALK: Final = Struct(">qi11xi")  # base offset, length, last offset delta
_BASE_OFFSET: Final = Struct(">q")


class Segment:
    """Batches from base_offset on. Positions up to file.size are written, up to size they are promised."""

    __slots__ = (
        "_index",
        "_limit_hint",
        "base_offset",
        "file",
        "files",
        "flushed_max",
        "hints",
        "indexed_position",
        "is_full",
        "is_going",
        "max_bytes",
        "max_offset",
        "max_timestamp",
        "max_timestamp_offset",
        "pending",
        "roll_after_ms",
        "size",
        "stem",
        "undated_since_ms",
        "undated_written_ms",
    )

    def __init__(
        self,
        files: Files,
        directory: str,
        base_offset: int,
        max_bytes: int = MAX_RELATIVE_OFFSET,
        suffix: str = LOG_SUFFIX,
    ) -> None:
        self.files = files
        self.base_offset = base_offset
        self.stem = f"{directory}/{base_offset:020d}"
        self.file: File = files.open_append(self.stem + suffix)
        self.size = self.file.size
        self.pending: list[Buffer] = []
        self._index: SparseIndex | None = None if self.size else SparseIndex()
        self.indexed_position = 0
        self.max_timestamp = -1
        self.max_timestamp_offset = base_offset
        self.flushed_max = (-1, base_offset)
        self.max_bytes = max_bytes
        self.max_offset = base_offset + MAX_RELATIVE_OFFSET
        self.is_full = False  # the next batch begins a new segment
        self.is_going = False  # its file is about to be removed, or is
        self.undated_since_ms: int | None = None  # set where the first batch has no time
        self.undated_written_ms = 0  # when it was written last, by the cluster's clock, while no batch had a time
        # the first append sets the real time; until then every append takes the slow path
        self.roll_after_ms = -NEVER
        # where readers stopped is where they go on: base offset of a batch -> its position
        self.hints: dict[int, int] = {base_offset: 0}
        self._limit_hint = (-1, 0)

    @property
    def index(self) -> SparseIndex:
        """The sparse index, loaded with its first use."""
        if self._index is None:
            self.load_index()
        assert self._index is not None
        return self._index

    @property
    def largest_timestamp(self) -> int:
        """Over all batches; -1 when none has a time."""
        if self._index is None:
            self.load_index()
        return self.max_timestamp

    # -- writing

    def add_index_entry(self, last_offset: int, position: int) -> None:
        """Note the batch at a position in the index, with the largest timestamp so far."""
        index = self.index
        index.add(last_offset - self.base_offset, position)
        index.add_time(self.max_timestamp, self.max_timestamp_offset - self.base_offset)
        self.indexed_position = position

    def flush(self) -> None:
        """One write for everything pending; on OSError the file may have grown by a part."""
        self.file.append(self.pending)
        self.pending.clear()
        self.flushed_max = (self.max_timestamp, self.max_timestamp_offset)

    def drop_pending(self) -> None:
        """Back to what is written; a part that a failed write left is cut off."""
        self.pending.clear()
        position = self.file.size
        self.max_timestamp, self.max_timestamp_offset = self.flushed_max
        if self.size == position:
            return
        self._forget_from(position, self.max_offset + 1)
        self.size = position
        if self.files.exists(self.file.path):
            self.file.truncate(position)

    def cut_back(self, position: int, next_offset: int) -> None:
        """Cut the file at a batch boundary before which all offsets are below next_offset."""
        self.pending.clear()
        if remove_index(self.files, self.stem):  # or a start could take it for what comes in its place
            self.files.sync_dir(self.stem.rpartition("/")[0])
        self.file.truncate(position)
        self.size = position
        self._forget_from(position, next_offset)
        self.measure_max_timestamp()

    def retire(self) -> None:
        """The file is about to be removed; slices that are being sent read on."""
        self.is_going = True  # first: a thread that syncs the log may find the file gone from here on
        self.file.retire()

    def give_up_file(self) -> None:
        """The log is deleted. Slices that are being sent read on; the descriptor closes with the last of them.

        Nothing else may hold the file: what refers to a log refers to one another, and waits for the collector.
        """
        self.retire()
        self.file = self.files.open_append(f"{self.stem}.deleted")  # there is none

    def _forget_from(self, position: int, next_offset: int) -> None:
        index = self.index
        index.cut_back(position, next_offset - self.base_offset)
        if index.time_offsets and index.timestamps[-1] > self.max_timestamp:
            index.cut_back(position, self.max_timestamp_offset - self.base_offset + 1)
        self.indexed_position = index.positions[-1] if index.positions else 0
        self.hints = {self.base_offset: 0}
        self._limit_hint = (-1, 0)
        self.is_full = False

    def measure_max_timestamp(self, end: int = NEVER) -> None:
        """Largest timestamp before a position: by time index, then by the headers after its last entry."""
        index = self.index
        self.max_timestamp, self.max_timestamp_offset = -1, self.base_offset
        start = 0
        if index.timestamps:
            self.max_timestamp = index.timestamps[-1]
            self.max_timestamp_offset = index.time_offsets[-1] + self.base_offset
            start = index.position_before(index.time_offsets[-1])
        for position, header in self.headers(start):
            if position >= end:
                break
            if header.max_timestamp > self.max_timestamp:
                self.max_timestamp, self.max_timestamp_offset = header.max_timestamp, header.last_offset
        self.flushed_max = (self.max_timestamp, self.max_timestamp_offset)

    # -- the index on disk

    def load_index(self) -> None:
        """Read the index files; what is missing or cannot be right is made again from the log."""
        index = None
        with suppress(FileNotFoundError):
            index = decode(
                self.files.read_file(self.stem + INDEX_SUFFIX),
                self.files.read_file(self.stem + TIME_INDEX_SUFFIX),
                self.file.size,
            )
        if index is not None and index.positions and not self._starts_batch(index):
            index = None
        self._index = index or SparseIndex()
        self.indexed_position = self._index.positions[-1] if self._index.positions else 0
        if index is None or (not index.positions and self.file.size):
            self.rebuild_index()
        else:  # neither file is synced: the one of times may be older than the other one, or shorter
            self.measure_max_timestamp()

    def _starts_batch(self, index: SparseIndex) -> bool:
        raw = self.file.pread(HEADER_BYTES, index.positions[-1])
        if len(raw) < HEADER_BYTES:
            return False
        header = BatchHeader.from_buffer(raw)
        return header.magic == MAGIC and header.last_offset - self.base_offset == index.offsets[-1]

    def start_index(self) -> None:
        """Begin an empty index, to be filled by note()."""
        self._index = SparseIndex()
        self.indexed_position = 0
        self.max_timestamp, self.max_timestamp_offset = -1, self.base_offset

    def rebuild_index(self, interval_bytes: int = 4096) -> None:
        """Make the index again from the batches."""
        self.start_index()
        for position, header in self.headers(0):
            self.note(position, header, interval_bytes)
        self.flushed_max = (self.max_timestamp, self.max_timestamp_offset)

    def note(self, position: int, header: BatchHeader, interval_bytes: int) -> None:
        """Take one batch that is already in the file into the index."""
        if header.max_timestamp > self.max_timestamp:
            self.max_timestamp, self.max_timestamp_offset = header.max_timestamp, header.last_offset
        if position - self.indexed_position > interval_bytes:
            self.add_index_entry(header.last_offset, position)

    @property
    def index_is_news(self) -> bool:
        """Whether saving the index would tell the next start anything: an empty one is made again in any case."""
        index = self._index
        if index is None or self.pending or not self.size:
            return False
        return bool(index.offsets) or self.files.exists(self.stem + INDEX_SUFFIX)

    def save_index(self, *, final: bool = False) -> None:
        """Write both index files; final adds the time entry that closes a segment, as Kafka does."""
        index = self.index
        if final:
            index.add_time(self.max_timestamp, self.max_timestamp_offset - self.base_offset)
        self.files.write_file_atomic(self.stem + INDEX_SUFFIX, index.encode_offsets(), sync=False)
        self.files.write_file_atomic(self.stem + TIME_INDEX_SUFFIX, index.encode_times(), sync=False)

    # -- reading

    def headers(self, position: int) -> Iterator[tuple[int, BatchHeader]]:
        """(position, header) of every written batch from a batch start on; bodies are skipped."""
        end = self.file.size
        chunk, chunk_at = b"", position
        while position + HEADER_BYTES <= end:
            at = position - chunk_at
            if at + HEADER_BYTES > len(chunk):
                chunk, chunk_at, at = self.file.pread(_WALK_BYTES, position), position, 0
                if len(chunk) < HEADER_BYTES:
                    return
            header = BatchHeader.from_buffer(chunk, at)
            if header.length < HEADER_BYTES - LOG_OVERHEAD_BYTES or header.magic != MAGIC:
                return
            if position + header.length + LOG_OVERHEAD_BYTES > end:
                return
            yield position, header
            position += header.length + LOG_OVERHEAD_BYTES

    def position_of(self, offset: int) -> int:
        """Position of the first batch whose last offset is not below offset; file.size when there is none."""
        known = self.hints.get(offset)
        if known is not None:
            return known
        position = self.index.position_before(offset - self.base_offset)
        end = self.file.size
        chunk, chunk_at = b"", position
        while position < end:
            at = position - chunk_at
            if at + _WALK.size > len(chunk):
                chunk, chunk_at, at = self.file.pread(_WALK_BYTES, position), position, 0
                if len(chunk) < _WALK.size:
                    raise StorageError(f"{self.file.path} ends within a batch at position {position}")
            base_offset, length, last_delta = _WALK.unpack_from(chunk, at)
            if base_offset + last_delta >= offset:
                return position
            position += int(length) + LOG_OVERHEAD_BYTES
        return end

    def slice(
        self, offset: int, max_bytes: int, limit_offset: int, next_offset: int, min_one: bool
    ) -> FileSlice | None:
        """Whole batches from the one holding offset; next_offset follows the last that is written here."""
        start = self.position_of(offset)
        if limit_offset >= next_offset:
            end, end_offset = self.file.size, next_offset
        else:
            if self._limit_hint[0] != limit_offset:
                self._limit_hint = (limit_offset, self.position_of(limit_offset))
            end, end_offset = self._limit_hint[1], limit_offset
        if start >= end:
            return None
        wanted, asked = start + max_bytes, 0
        if wanted < end:
            asked = max_bytes
            end = self._last_boundary(start, wanted, min_one)
            if end <= start:
                return None
            if end < self.file.size:
                end_offset = _BASE_OFFSET.unpack(self.file.pread(8, end))[0]
        if len(self.hints) >= _MAX_HINTS:
            self.hints = {self.base_offset: 0}
        self.hints[end_offset] = end
        return FileSlice(self.file, start, end - start, end_offset, asked)

    def _last_boundary(self, start: int, wanted: int, min_one: bool) -> int:
        boundary = self.index.boundary_at_or_before(wanted)
        if boundary > start:
            return boundary
        boundary = start
        for position, header in self.headers(start):
            after = position + header.length + LOG_OVERHEAD_BYTES
            if after > wanted and not (min_one and position == start):
                break
            boundary = after
            if after >= wanted:
                break
        return boundary

    def batches(self, position: int, end: int | None = None) -> Iterator[tuple[int, BatchHeader, memoryview]]:
        """(position, header, bytes) of whole batches, in big reads; stops where no plausible batch begins."""
        return read_batches(self.file, position, self.file.size if end is None else end)


def remove_index(files: Files, stem: str) -> bool:
    """Remove both index files of a segment, which are made again when needed. Whether there were any."""
    found = False
    for suffix in (INDEX_SUFFIX, TIME_INDEX_SUFFIX):
        if files.exists(stem + suffix):
            files.remove(stem + suffix)
            found = True
    return found


def base_offset_of(segment: Segment) -> int:
    """The key that segments are searched by."""
    return segment.base_offset
