"""Lists the segment files of a data directory, local or at an address of pyarrow.fs.

A log is a directory TOPIC-PARTITION with files BASE.log. Files being deleted or cleaned have other suffixes and are
left out, except `.swap`: between the removal of the segments it replaces and its final rename, only the `.swap` file
holds their records. It is listed as the segment it is about to become.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from fnmatch import fnmatchcase
from typing import Final, NamedTuple

from pyarrow import fs

from pipeline.decode.batches import partition_of
from pipeline.files import open_directory
from pipeline.source.topic_ids import FILE, read_topic_id

LOG_FOLDER: Final = re.compile(r"(.+)-(\d+)")
_SEGMENT: Final = re.compile(r"(\d{20})\.log(\.swap)?")
_LISTINGS: Final = 10  # until two agree


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


def log_segments(files: fs.FileSystem, root: str, log: str) -> list[SegmentFile]:
    """The segments of one log by base offset; an empty list when the log is gone.

    A local directory is listed until two listings agree: one listing may miss a file that is renamed meanwhile, and the
    topic may be deleted and created again.
    """
    directory = f"{root}/{log}"
    found = _listing(files, directory, log)
    for _ in range(_LISTINGS):
        if isinstance(files, fs.LocalFileSystem):
            before, found = _identity(found), _listing(files, directory, log)
            if _identity(found) == before:
                break
    return found


def _identity(found: list[SegmentFile]) -> list[tuple[str, str | None]]:
    return [(each.path, each.topic_id) for each in found]


def _listing(files: fs.FileSystem, directory: str, log: str) -> list[SegmentFile]:
    found: dict[int, SegmentFile] = {}
    listed = files.get_file_info(fs.FileSelector(directory, allow_not_found=True))
    has_id = any(info.base_name == FILE for info in listed)
    topic_id = read_topic_id(files, directory) if has_id else None
    for info in listed:
        match = _SEGMENT.fullmatch(info.base_name)
        if match and info.type == fs.FileType.File:
            base = int(match[1])
            if match[2] or base not in found:
                found[base] = SegmentFile(log, base, info.path, info.size, topic_id)
    return [found[base] for base in sorted(found)]
