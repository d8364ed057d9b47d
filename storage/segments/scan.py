"""The walk over a segment with every check: where its good part ends, and in words why it ends there."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from fastcrc.crc32 import iscsi as crc32c

from protocol.record_batch import (
    ATTRIBUTES_POSITION,
    HEADER_BYTES,
    LOG_OVERHEAD_BYTES,
    MAGIC,
    BatchHeader,
)
from storage.files.errors import StorageError
from storage.segments.config import LogConfig
from storage.segments.leader_epochs import LeaderEpochs
from storage.segments.segment import (
    INDEX_SUFFIX,
    NEVER,
    Segment,
)

_SEARCH_BYTES: Final = 1 << 20
SLICE: Final = 1000  # of a scan, in batches of up to 16 kB: about 2 ms
_SLICE_BITS: Final = 14


def damage(segment: Segment, position: int, why: str) -> StorageError:
    """The error that says where a segment is damaged, and what can be done."""
    return StorageError(
        f"{segment.file.path} is damaged at position {position}: {why}. Nothing was changed. Restore the file"
        f" from a copy, or give up what it holds from there on: cut it to {position} bytes, delete its"
        f" {INDEX_SUFFIX} and .timeindex and every later segment, and start again"
    )


def out_of_place(base_offset: int, next_offset: int) -> str:
    """In words, what is wrong with a batch of a log that cannot have gaps."""
    return f"offset {base_offset} comes where {next_offset} should, and the log was never compacted"


class Scan:
    """A walk over one segment with every check; after its last step, position is where the good part ends."""

    def __init__(
        self,
        segment: Segment,
        config: LogConfig,
        epochs: LeaderEpochs,
        trusted_offset: int,
        may_have_gaps: bool,
        synced_end: int | None = None,
    ) -> None:
        """From synced_end on, what is wrong ends the good part; below it, or where that is unknown, it is damage."""
        self.reason = ""
        self.next_offset = segment.base_offset
        self.position = self._trusted_position(segment, trusted_offset)
        self.scanned_bytes = 0
        self._segment = segment
        self._interval_bytes = config.index_interval_bytes
        self._epochs = epochs
        self._may_have_gaps = may_have_gaps
        self._synced_end = NEVER if synced_end is None else synced_end

    def steps(self) -> Iterator[None]:
        """Walk on, a slice at a time. Errors: StorageError."""
        segment, epochs, interval_bytes = self._segment, self._epochs, self._interval_bytes
        start, next_offset, max_offset = self.position, self.next_offset, segment.max_offset
        leader_epoch, cost = None, 0
        for position, header, batch in segment.batches(start):
            if crc32c(batch[ATTRIBUTES_POSITION:]) != header.crc:
                self.reason = "a batch has a wrong CRC"
                break
            base_offset = header.base_offset
            last_offset = base_offset + header.last_offset_delta
            if base_offset != next_offset or last_offset < base_offset or last_offset > max_offset:
                wrong = self._wrong_offsets(base_offset, last_offset, next_offset)
                if wrong and next_offset < self._synced_end:
                    raise damage(segment, position, wrong)
                if wrong:
                    self.reason = wrong
                    break
            if header.partition_leader_epoch != leader_epoch:
                leader_epoch = header.partition_leader_epoch
                if epochs.epoch_of(base_offset) != leader_epoch:  # else it may have begun before the scan
                    epochs.assign(leader_epoch, base_offset)
            segment.note(position, header, interval_bytes)
            next_offset = last_offset + 1
            self.position = position + header.length + LOG_OVERHEAD_BYTES
            cost += 1 + (header.length >> _SLICE_BITS)
            if cost >= SLICE:
                cost = 0
                yield
        self.next_offset = next_offset
        segment.flushed_max = (segment.max_timestamp, segment.max_timestamp_offset)
        self.scanned_bytes = self.position - start
        if not self.reason and self.position != segment.size:
            self.reason = why_not(segment, self.position)

    def _wrong_offsets(self, base_offset: int, last_offset: int, next_offset: int) -> str:
        """In words, why a batch cannot have these offsets; nothing where it can."""
        if base_offset < next_offset or last_offset < base_offset:
            return f"offsets {base_offset} to {last_offset} come after {next_offset - 1}"
        if base_offset != next_offset and not self._may_have_gaps:
            return out_of_place(base_offset, next_offset)
        if last_offset > self._segment.max_offset:
            return f"offset {last_offset} is too far from its segment's"
        return ""

    def _trusted_position(self, segment: Segment, trusted_offset: int) -> int:
        """Keep the index below what was synced and start at its last entry; else start at the beginning."""
        if trusted_offset > segment.base_offset and segment.files.exists(segment.stem + INDEX_SUFFIX):
            index = segment.index
            index.cut_back(segment.size, trusted_offset - segment.base_offset)
            while index.offsets and index.offsets[-1] >= trusted_offset - segment.base_offset:
                index.offsets.pop()
                index.positions.pop()
            if index.positions:
                # the walk begins with this batch and notes it again
                index.offsets.pop()
                position = index.positions.pop()
                segment.indexed_position = index.positions[-1] if index.positions else 0
                segment.measure_max_timestamp(position)
                header = BatchHeader.from_buffer(segment.file.pread(HEADER_BYTES, position))
                self.next_offset = header.base_offset
                return position
        segment.start_index()
        return 0


def why_not(segment: Segment, position: int) -> str:
    """In words, why no batch begins here."""
    left = segment.size - position
    if left < HEADER_BYTES:
        return f"{left} bytes are less than a batch header"
    header = BatchHeader.from_buffer(segment.file.pread(HEADER_BYTES, position))
    if header.length < HEADER_BYTES - LOG_OVERHEAD_BYTES:
        return f"a batch of {header.length} bytes is less than a header"
    if header.size > left:
        return f"a batch of {header.size} bytes has only {left} bytes"
    return f"a batch has magic {header.magic}"


def whole_batch_after(segment: Segment, position: int, next_offset: int) -> int | None:
    """Position of any whole batch with a right CRC and a later offset after a bad one.

    The bad batch's own length may be what is damaged, so every byte may be a batch's first. A batch that is
    only the content of a record does not match: its base offset does not come after this log's.
    """
    end = segment.size
    base = position + 1
    while base + HEADER_BYTES <= end:
        chunk = segment.file.pread(min(_SEARCH_BYTES, end - base), base)
        at = chunk.find(MAGIC, 16)
        while at >= 0 and at - 16 + HEADER_BYTES <= len(chunk):
            header = BatchHeader.from_buffer(chunk, at - 16)
            start = base + at - 16
            if (
                HEADER_BYTES - LOG_OVERHEAD_BYTES <= header.length <= end - start - LOG_OVERHEAD_BYTES
                and next_offset < header.base_offset <= segment.max_offset
                and header.last_offset_delta >= 0
            ):
                body = segment.file.pread(header.size, start)
                if crc32c(memoryview(body)[ATTRIBUTES_POSITION:]) == header.crc:
                    return start
            at = chunk.find(MAGIC, at + 1)
        if len(chunk) < HEADER_BYTES:
            return None
        base += len(chunk) - HEADER_BYTES + 1
    return None
