"""Opening a log: trust what was synced, scan the rest, cut a torn tail, refuse damage in the middle.

A crash can only hurt the end of the last segment: what a write did not finish, or a loss of power has taken. So the
first bad batch is cut off together with what follows it, but only in the last segment, and only where it was not
synced. Where it is unknown how far the log was synced, a whole batch with a right CRC after the bad bytes is taken as
a proof that they are damage.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator, Sequence
from typing import Final, NamedTuple

from protocol.record_batch import (
    LOG_OVERHEAD_BYTES,
    BatchHeader,
)
from storage.files.env import Env, Files
from storage.files.errors import StorageError
from storage.segments.batches import read_batches
from storage.segments.config import LogConfig
from storage.segments.leader_epochs import LeaderEpochs
from storage.segments.scan import SLICE, Scan, damage, out_of_place, whole_batch_after
from storage.segments.segment import INDEX_SUFFIX, LOG_SUFFIX, NEVER, SEGMENT_SUFFIXES, Segment, remove_index
from storage.segments.slices import all_at_once
from storage.segments.transaction_index import Markers, merge_indexes

DELETED_SUFFIX: Final = ".deleted"
CLEANED_SUFFIX: Final = ".cleaned"
SWAP_SUFFIX: Final = ".swap"


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
            scan = Scan(segment, config, epochs, recovery_point, may_have_gaps)
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
    scan = Scan(last, config, epochs, 0 if clean else recovery_point, may_have_gaps, synced_end)
    yield from scan.steps()
    report = RecoveryReport(scanned + scan.scanned_bytes)
    if scan.position != last.size:
        if synced_end is not None and scan.next_offset < synced_end:
            raise damage(last, scan.position, f"{scan.reason}, and everything below offset {synced_end} was synced")
        follows = None if synced_end is not None else whole_batch_after(last, scan.position, scan.next_offset)
        if follows is not None:
            raise damage(last, scan.position, f"{scan.reason}, but a whole batch follows at {follows}")
        report = RecoveryReport(
            report.scanned_bytes, last.size - scan.position, last.file.path, scan.position, scan.reason
        )
        last.cut_back(scan.position, scan.next_offset)
        epochs.cut_back(scan.next_offset + 1)
    return Recovered(segments, scan.next_offset, report)


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


def remove_swaps(files: Files, directory: str, segments: Sequence[Segment]) -> int:
    """Before a cut: remove files that the cleaner is about to put in place of segments. A start would do that.

    Returns how many there were. `segments`: of the log; their own files stay.
    """
    own = {segment.file.path for segment in segments}
    paths = [f"{directory}/{name}" for name in files.listdir(directory) if SWAP_SUFFIX in name]
    swaps = [path for path in paths if path not in own]
    for path in swaps:
        files.remove(path)
    return len(swaps)


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
            if number % SLICE == SLICE - 1:
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
    return damage(segment, position, out_of_place(base_offset, next_offset))
