"""Opening a log: trust what was synced, scan the rest, cut a torn tail, refuse damage in the middle.

A crash can only hurt the end of the last segment: what a write did not finish, or a loss of power has taken. So the
first bad batch is cut off together with what follows it, but only in the last segment, and only where it was not
synced. Where it is unknown how far the log was synced, a whole batch with a right CRC after the bad bytes is taken as
a proof that they are damage.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator
from typing import Final, NamedTuple

from fastcrc.crc32 import iscsi as crc32c

from protocol.record_batch import (
    ATTRIBUTES_POSITION,
    HEADER_BYTES,
    LOG_OVERHEAD_BYTES,
    MAGIC,
    BatchHeader,
)
from storage.files.env import Env, Files
from storage.files.errors import StorageError
from storage.segments.config import LogConfig
from storage.segments.leader_epochs import LeaderEpochs
from storage.segments.segment import (
    INDEX_SUFFIX,
    LOG_SUFFIX,
    NEVER,
    SEGMENT_SUFFIXES,
    Segment,
    read_batches,
    remove_index,
)
from storage.segments.slices import all_at_once
from storage.segments.transaction_index import Markers, merge_indexes

DELETED_SUFFIX: Final = ".deleted"
CLEANED_SUFFIX: Final = ".cleaned"
SWAP_SUFFIX: Final = ".swap"

_SEARCH_BYTES: Final = 1 << 20
_SLICE: Final = 1000  # of a scan, in batches of up to 16 kB: about 2 ms
_SLICE_BITS: Final = 14


class RecoveryReport(NamedTuple):
    """What opening a log cost: nothing was dropped unless dropped_bytes says so."""

    scanned_bytes: int = 0
    dropped_bytes: int = 0
    path: str = ""
    position: int = 0
    reason: str = ""


class Recovered(NamedTuple):
    segments: list[Segment]
    end_offset: int
    report: RecoveryReport


def recover(
    env: Env,
    directory: str,
    config: LogConfig,
    epochs: LeaderEpochs,
    recovery_point: int,
    clean: bool,
    may_have_gaps: bool = True,
    synced_end: int | None = None,
) -> Recovered:
    """The segments of a directory, the last one cut to whole batches.

    Durable: everything below recovery_point was synced and is not scanned again.
    synced_end: everything below it was synced, and nothing above it was told to a client. None: that is unknown.
    may_have_gaps: the log was cleaned once, or may have been. In others each batch follows the one before it; the CRC
             of a batch does not cover its base offset, and a wrong one would move the end of the log.
    Errors:  StorageError: damage that no crash of ours explains; nothing is changed on disk then.
    """
    return all_at_once(recovering(env, directory, config, epochs, recovery_point, clean, may_have_gaps, synced_end))


def recovering(
    env: Env,
    directory: str,
    config: LogConfig,
    epochs: LeaderEpochs,
    recovery_point: int,
    clean: bool,
    may_have_gaps: bool = True,
    synced_end: int | None = None,
) -> Generator[None, None, Recovered]:
    """The same in slices. Nothing may write to the directory between them."""
    files = env.files
    bases = tidy(files, directory)
    if not bases:
        return Recovered([], 0, RecoveryReport())
    segments = [Segment(files, directory, base, config.segment_bytes) for base in bases]
    yield from _missing_epochs(segments, epochs, NEVER if clean else recovery_point)
    scanned = 0
    for segment, next_base in zip(segments, bases[1:], strict=False):
        if not clean and next_base > recovery_point:
            scan = _Scan(segment, config, epochs, recovery_point, may_have_gaps)
            yield from scan.steps()
            scanned += scan.scanned_bytes
            if scan.position != segment.size:
                raise damage(segment, scan.position, f"{scan.reason}, and a later segment exists")
            if scan.next_offset > next_base:
                raise damage(segment, scan.position, f"offsets run into the next segment at {next_base}")
            segment.save_index(final=True)
    last = segments[-1]
    if clean:
        tail = _tail(last, epochs, may_have_gaps)
        if tail is not None:
            return Recovered(segments, tail, RecoveryReport(scanned))
    scan = _Scan(last, config, epochs, 0 if clean else recovery_point, may_have_gaps, synced_end)
    yield from scan.steps()
    report = RecoveryReport(scanned + scan.scanned_bytes)
    if scan.position != last.size:
        if synced_end is not None and scan.next_offset < synced_end:
            raise damage(last, scan.position, f"{scan.reason}, and everything below offset {synced_end} was synced")
        follows = None if synced_end is not None else _whole_batch_after(last, scan.position, scan.next_offset)
        if follows is not None:
            raise damage(last, scan.position, f"{scan.reason}, but a whole batch follows at {follows}")
        report = RecoveryReport(
            report.scanned_bytes, last.size - scan.position, last.file.path, scan.position, scan.reason
        )
        last.cut_back(scan.position, scan.next_offset)
        epochs.cut_back(scan.next_offset + 1)
    return Recovered(segments, scan.next_offset, report)


def damage(segment: Segment, position: int, why: str) -> StorageError:
    """The error that says where a segment is damaged, and what can be done."""
    return StorageError(
        f"{segment.file.path} is damaged at position {position}: {why}. Nothing was changed. Restore the file"
        f" from a copy, or give up what it holds from there on: cut it to {position} bytes, delete its"
        f" {INDEX_SUFFIX} and .timeindex and every later segment, and start again"
    )


def tidy(files: Files, directory: str) -> list[int]:
    """Base offsets of the segments, after finishing or undoing what a crash interrupted.

    A name.swap is complete (it is renamed only when all of it is synced) and takes the place of name; a
    name.cleaned may be partial and goes; so do deleted files and indexes without a log.
    """
    names = files.listdir(directory)
    swaps = [name for name in names if name.endswith(LOG_SUFFIX + SWAP_SUFFIX)]
    if swaps:
        for name in swaps:
            _finish_swap(files, directory, name)
        names = files.listdir(directory)
    bases: list[int] = []
    for name in names:
        stem, suffix = name[:20], name[20:]
        if suffix == LOG_SUFFIX and stem.isdigit():
            bases.append(int(stem))
        elif suffix.endswith((DELETED_SUFFIX, CLEANED_SUFFIX, SWAP_SUFFIX, ".tmp")):
            files.remove(f"{directory}/{name}")
    have = set(names)
    for name in names:
        if name[20:] in SEGMENT_SUFFIXES[1:] and name[:20] + LOG_SUFFIX not in have:
            files.remove(f"{directory}/{name}")
    return bases


def _finish_swap(files: Files, directory: str, name: str) -> None:
    """Let a compacted segment take the place of the segments whose offsets it covers."""
    base = int(name[:20])
    file = files.open_append(f"{directory}/{name}")
    last_offset = base
    markers = Markers()
    for _, header, _ in read_batches(file, 0, file.size):
        last_offset = header.last_offset
        if header.is_control and header.record_count:
            markers.add(header.base_offset)
    file.close()
    covered = [
        int(other[:20])
        for other in files.listdir(directory)
        if other[20:] == LOG_SUFFIX and other[:20].isdigit() and base < int(other[:20]) <= last_offset
    ]
    merge_indexes(files, directory, [base, *covered], markers)
    for other_base in covered:
        remove_segment(files, directory, other_base)
    remove_index(files, f"{directory}/{base:020d}")
    files.sync_dir(directory)  # what it replaces must not be back once its name is
    files.rename(f"{directory}/{name}", f"{directory}/{base:020d}{LOG_SUFFIX}")


def remove_segment(files: Files, directory: str, base_offset: int) -> None:
    """Remove the files of a segment. What the cleaner was about to put in its place goes first, because a start would
    put it there; then the log: an index without a log is nothing, a log without an index only slow."""
    for suffix in (LOG_SUFFIX + SWAP_SUFFIX, *SEGMENT_SUFFIXES):
        path = f"{directory}/{base_offset:020d}{suffix}"
        if files.exists(path):
            files.remove(path)


def _missing_epochs(segments: list[Segment], epochs: LeaderEpochs, trusted_offset: int) -> Iterator[None]:
    """Read the epochs below an offset from the batches, in slices, if a late batch is of none that is known.

    The file of the epochs is not synced: after a loss of power it may be damaged, or an older one.
    """
    late: BatchHeader | None = None
    for segment in reversed(segments):  # the last one may have no whole batch
        known = segment.index.positions if segment.size and segment.files.exists(segment.stem + INDEX_SUFFIX) else None
        for _, header in segment.headers(known[-1] if known else 0):
            late = header
            if segment is segments[-1]:
                break  # what follows is read in any case
        if late is not None:
            break
    if late is None or late.partition_leader_epoch <= epochs.latest:
        return
    for segment in segments:
        for number, (_, header) in enumerate(segment.headers(0)):
            if header.base_offset >= trusted_offset:
                return
            if header.partition_leader_epoch > epochs.latest:
                epochs.assign(header.partition_leader_epoch, header.base_offset)
            if number % _SLICE == _SLICE - 1:
                yield


def _tail(segment: Segment, epochs: LeaderEpochs, may_have_gaps: bool) -> int | None:
    """End offset of a segment that was closed well, or None when its file does not end with a whole batch."""
    index = segment.index
    # the last entry was made from the batch that is to be checked, so the one before it is where to begin
    position, end_offset = 0, segment.base_offset
    if may_have_gaps and index.positions:
        position = index.positions[-1]
    elif len(index.positions) > 1:
        position = index.positions[-2]
        end_offset = next(segment.headers(position))[1].base_offset
    for at, header in segment.headers(position):
        if not may_have_gaps and header.base_offset != end_offset:
            raise _gap(segment, at, header.base_offset, end_offset)
        position = at + header.length + LOG_OVERHEAD_BYTES
        end_offset = header.next_offset
        if header.partition_leader_epoch > epochs.latest:
            epochs.assign(header.partition_leader_epoch, header.base_offset)
        if header.max_timestamp > segment.max_timestamp:
            segment.max_timestamp, segment.max_timestamp_offset = header.max_timestamp, header.last_offset
    segment.flushed_max = (segment.max_timestamp, segment.max_timestamp_offset)
    return end_offset if position == segment.size else None


def _gap(segment: Segment, position: int, base_offset: int, next_offset: int) -> StorageError:
    return damage(segment, position, _out_of_place(base_offset, next_offset))


def _out_of_place(base_offset: int, next_offset: int) -> str:
    return f"offset {base_offset} comes where {next_offset} should, and the log was never compacted"


class _Scan:
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
            if cost >= _SLICE:
                cost = 0
                yield
        self.next_offset = next_offset
        segment.flushed_max = (segment.max_timestamp, segment.max_timestamp_offset)
        self.scanned_bytes = self.position - start
        if not self.reason and self.position != segment.size:
            self.reason = _why_not(segment, self.position)

    def _wrong_offsets(self, base_offset: int, last_offset: int, next_offset: int) -> str:
        """In words, why a batch cannot have these offsets; nothing where it can."""
        if base_offset < next_offset or last_offset < base_offset:
            return f"offsets {base_offset} to {last_offset} come after {next_offset - 1}"
        if base_offset != next_offset and not self._may_have_gaps:
            return _out_of_place(base_offset, next_offset)
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


def _why_not(segment: Segment, position: int) -> str:
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


def _whole_batch_after(segment: Segment, position: int, next_offset: int) -> int | None:
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
