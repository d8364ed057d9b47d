"""Lists the segment files of a data directory, local or at an address of pyarrow.fs.

A log is a directory TOPIC-PARTITION with files BASE.log. Files being deleted or cleaned have other suffixes and are
left out, except `.swap`: between the removal of the segments it replaces and its final rename, only the `.swap` file
holds their records. It is listed as the segment it is about to become.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import re
import time
from collections.abc import Iterable, Iterator, Mapping
from fnmatch import fnmatchcase
from struct import Struct
from typing import Final, NamedTuple

from pyarrow import fs

from pipeline.decode.batches import partition_of
from pipeline.files import open_directory
from pipeline.source.topic_ids import FILE, log_key, read_topic_id

LOG_FOLDER: Final = re.compile(r"(.+)-(\d+)")
_SEGMENT: Final = re.compile(r"(\d{20})\.log(\.swap)?")
CLOCK_MS: Final = 3_600_000
_ENTRY: Final = Struct(">qi")  # of a .timeindex: timestamp, relative offset
_TIME_ENTRY: Final = _ENTRY.size
_LISTINGS: Final = 10  # until two agree
_SETTLED_NS: Final = 1_000_000_000  # longer than two changes of a directory may have the same time


class SegmentFile(NamedTuple):
    """One file of record batches."""

    log: str
    base_offset: int
    path: str
    size: int  # bytes
    topic_id: str | None = None  # None: the log's folder names none


def list_segments(path: str, topic: str = "*", logs: Iterable[str] | None = None) -> list[SegmentFile]:
    """The segments of all logs whose topic matches the glob, in the order of log and base offset.

    `logs`: only these, by the name of their directory.

    Errors:  FileNotFoundError: the path is not a directory.
    """
    files, root = open_directory(path)
    if files.get_file_info(root).type != fs.FileType.Directory:
        raise FileNotFoundError(f"{path} is not a directory: the option `path` names a broker's data directory")
    wanted = None if logs is None else set(logs)
    names: list[str] = []
    for info in files.get_file_info(fs.FileSelector(root, allow_not_found=True)):
        match = LOG_FOLDER.fullmatch(info.base_name)
        if info.type == fs.FileType.Directory and match and fnmatchcase(match[1], topic):
            names.append(info.base_name)
    found: list[SegmentFile] = []
    for name in sorted(names, key=partition_of):
        if wanted is None or name in wanted:
            found += log_segments(files, root, name)
    return found


def up_to(files: fs.FileSystem, found: Iterable[SegmentFile], until_ms: int) -> list[SegmentFile]:
    """The segments that may have records of this time or earlier, in logs that a broker dates.

    A segment is left out where an earlier one of its log has a record, by its `.timeindex`, more than CLOCK_MS later:
    the broker's clock would have to go back so far.
    """
    kept: list[SegmentFile] = []
    passed: str | None = None  # the log whose rest is later
    for each in found:
        if each.log != passed:
            kept.append(each)
            newest = _last_time(files, each.path)
            passed = each.log if newest is not None and newest > until_ms + CLOCK_MS else None
    return kept


def older(
    files: fs.FileSystem, found: Iterable[SegmentFile], since_ms: int, below: Mapping[str, int]
) -> dict[str, list[int]]:
    """Key of a log (topic_ids.py) -> base offsets of segments older than this time, and below the offset of their log.

    All their records are. The newest such segment of a log is not among them: it has a record that says how far the log
    was at that time. Nor is the last segment, whose `.timeindex` grows with it. In logs that are cleaned neither holds:
    leave them out.
    """
    left: dict[str, list[int]] = {}
    for log, segments in itertools.groupby(found, lambda each: each.log):
        there = list(segments)
        past = [
            (each.base_offset, following.base_offset)
            for each, following in itertools.pairwise(there)
            if each.size and (newest := _largest_time(files, each.path)) is not None and newest < since_ms
        ]
        if bases := [base for base, end in past[:-1] if end <= below.get(log, 0)]:
            left[log_key(log, there[0].topic_id)] = bases
    return left


def _largest_time(files: fs.FileSystem, path: str) -> int | None:
    """The largest time of a closed segment, by its `.timeindex`; None: that is not there, or not whole.

    The entry that closes it is the last one. Zeros at the end, part of an entry, or times that do not rise were left by
    a crash or a copy of a file that grew.
    """
    content = b"" if path.endswith(".swap") else _time_index(files, path)
    if not content or len(content) % _TIME_ENTRY:
        return None
    times = [timestamp for timestamp, _ in _ENTRY.iter_unpack(content)]
    rises = all(one < other for one, other in itertools.pairwise([0, *times]))
    return times[-1] if rises else None


def _last_time(files: fs.FileSystem, path: str) -> int | None:
    """A time that a record of a segment has, by the last entry of its `.timeindex`; None: it has none.

    Kafka allocates an active one ahead: zeros end it.
    """
    content = _time_index(files, path)
    for at in range(len(content) // _TIME_ENTRY * _TIME_ENTRY - _TIME_ENTRY, -1, -_TIME_ENTRY):
        timestamp, _ = _ENTRY.unpack_from(content, at)
        if timestamp > 0:
            return int(timestamp)
    return None


def _time_index(files: fs.FileSystem, path: str) -> bytes:
    """The `.timeindex` of a segment; nothing where there is none."""
    try:
        with files.open_input_stream(f"{path.removesuffix('.swap').removesuffix('.log')}.timeindex") as stream:
            return bytes(stream.read())
    except FileNotFoundError:
        return b""


def log_segments(files: fs.FileSystem, root: str, log: str) -> list[SegmentFile]:
    """The segments of one log by base offset; an empty list when the log is gone.

    A local directory that changes is listed until two listings agree: one listing may miss a file that is renamed
    meanwhile, and the topic may be deleted and created again.
    """
    directory = f"{root}/{log}"
    is_local = isinstance(files, fs.LocalFileSystem)
    before = _changed(directory) if is_local else None
    found = _listing(files, directory, log)
    if before is not None and before == _changed(directory) and time.time_ns() - before > _SETTLED_NS:
        return found  # nothing was renamed meanwhile
    for _ in range(_LISTINGS if is_local else 0):
        last, found = _identity(found), _listing(files, directory, log)
        if _identity(found) == last:
            break
    return found


def _changed(directory: str) -> int | None:
    """When a name in a local directory changed last, in nanoseconds; None: it is gone."""
    try:
        return os.stat(directory).st_mtime_ns
    except OSError:
        return None


def _identity(found: list[SegmentFile]) -> list[tuple[str, str | None]]:
    return [(each.path, each.topic_id) for each in found]


def _listing(files: fs.FileSystem, directory: str, log: str) -> list[SegmentFile]:
    found: dict[int, SegmentFile] = {}
    listed = list(_files(files, directory))
    has_id = any(name == FILE for name, _, _ in listed)
    topic_id = read_topic_id(files, directory) if has_id else None
    for name, path, size in listed:
        match = _SEGMENT.fullmatch(name)
        if match:
            base = int(match[1])
            if match[2] or base not in found:
                found[base] = SegmentFile(log, base, path, size, topic_id)
    return [found[base] for base in sorted(found)]


def _files(files: fs.FileSystem, directory: str) -> Iterator[tuple[str, str, int]]:
    """(name, path, bytes) of the segments of a folder, and of the file with its topic id; none when it is gone."""
    if not isinstance(files, fs.LocalFileSystem):
        for info in files.get_file_info(fs.FileSelector(directory, allow_not_found=True)):
            if info.type == fs.FileType.File:
                yield info.base_name, info.path, info.size
        return
    try:
        with os.scandir(directory) as entries:  # a sixth of what pyarrow takes, which looks at every file
            for each in entries:
                if each.name == FILE or _SEGMENT.fullmatch(each.name):
                    with contextlib.suppress(FileNotFoundError):  # renamed since: the next listing has it
                        if each.is_file():
                            yield each.name, each.path, each.stat().st_size
    except (FileNotFoundError, NotADirectoryError):
        return
