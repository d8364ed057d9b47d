"""Looks a log through without changing anything: every batch, its CRC and offsets, and the indexes beside it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from fastcrc.crc32 import iscsi as crc32c

from protocol.record_batch import ATTRIBUTES_POSITION, BatchHeader
from storage.files import snapshot
from storage.files.env import Files
from storage.segments.batches import read_batches
from storage.segments.index import decode
from storage.segments.segment import INDEX_SUFFIX, LOG_SUFFIX, TIME_INDEX_SUFFIX

SWAP_SUFFIX = LOG_SUFFIX + ".swap"


class Report(NamedTuple):
    """What a log holds, and what is wrong with it in words: damage, and what the next start sees to by itself."""

    segments: int
    batches: int
    records: int
    size_bytes: int
    first_offset: int
    end_offset: int
    damage: tuple[str, ...]
    remarks: tuple[str, ...]


def segment_names(files: Files, directory: str) -> list[str]:
    """The files a log consists of, in order: where the cleaner was stopped in a swap, the new file counts."""
    names = [name for name in files.listdir(directory) if name[:20].isdigit()]
    swaps = {name[:20] for name in names if name[20:] == SWAP_SUFFIX}
    logs = [name for name in names if name[20:] == SWAP_SUFFIX or (name[20:] == LOG_SUFFIX and name[:20] not in swaps)]
    return sorted(logs)


def read_only_batches(files: Files, directory: str) -> Iterator[tuple[BatchHeader, memoryview]]:
    """All whole batches with a right CRC up to the first that is not, as a start of the broker would see them."""
    next_offset = 0
    for name in segment_names(files, directory):
        if int(name[:20]) < next_offset:
            continue  # a swapped segment has taken its place
        file = files.open_append(f"{directory}/{name}")
        try:
            position = 0
            for at, header, batch in read_batches(file, 0, file.size):
                if crc32c(batch[ATTRIBUTES_POSITION:]) != header.crc:
                    break
                yield header, batch
                position = at + header.size
                next_offset = header.next_offset
            if position != file.size:
                return
        finally:
            file.close()


def check(files: Files, directory: str) -> Report:
    """Read all of a log; nothing is changed."""
    names = segment_names(files, directory)
    damage: list[str] = []
    remarks = [f"{name}: the cleaner was stopped in a swap" for name in names if name.endswith(SWAP_SUFFIX)]
    segments = batches = records = size_bytes = next_offset = 0
    for name in names:
        base_offset = int(name[:20])
        if base_offset < next_offset and f"{name[:20]}{SWAP_SUFFIX}" not in names and remarks:
            continue
        segments += 1
        file = files.open_append(f"{directory}/{name}")
        found: dict[int, int] = {}  # position -> last offset
        position, why = 0, ""
        for at, header, batch in read_batches(file, 0, file.size):
            if crc32c(batch[ATTRIBUTES_POSITION:]) != header.crc:
                why = "a batch has a wrong CRC"
                break
            if header.base_offset < max(next_offset, base_offset) or header.last_offset_delta < 0:
                why = f"offsets {header.base_offset} to {header.last_offset} come after {next_offset - 1}"
                break
            found[at] = header.last_offset
            batches += 1
            records += header.record_count
            next_offset = header.next_offset
            position = at + header.size
        size_bytes += file.size
        if position != file.size:
            what = f"{name}: {file.size - position} bytes from position {position} on: {why or 'not a whole batch'}"
            damage.append(what)
        file.close()
        remarks += _index_remarks(files, f"{directory}/{name[:20]}", base_offset, position, found)
    for offset in snapshot.offsets(files, directory):
        if snapshot.read(files, snapshot.path(directory, offset)) is None:
            remarks.append(f"the image at offset {offset} is damaged or of another version: it is not used")
    first_offset = int(names[0][:20]) if names else 0
    return Report(segments, batches, records, size_bytes, first_offset, next_offset, tuple(damage), tuple(remarks))


def _index_remarks(files: Files, stem: str, base_offset: int, size: int, batches: dict[int, int]) -> Iterator[str]:
    paths = stem + INDEX_SUFFIX, stem + TIME_INDEX_SUFFIX
    if not all(files.exists(path) for path in paths):
        return
    index = decode(files.read_file(paths[0]), files.read_file(paths[1]), size)
    right = index is not None and all(
        batches.get(position) == base_offset + offset
        for offset, position in zip(index.offsets, index.positions, strict=True)
    )
    if not right:
        yield f"{stem.rpartition('/')[2]}{INDEX_SUFFIX} does not fit its log: it is made again when the log is opened"
