"""The segments of a data directory: a local one, or any address that pyarrow.fs opens (s3://, gs://, hdfs://, ...).

A log is a directory TOPIC-PARTITION with files BASE.log. What is being deleted, cleaned or moved has other names and
is not listed; but a `.swap` is, as what it is about to become: between the removal of the segments it replaces and
its last rename nothing else holds their records.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from fnmatch import fnmatchcase
from typing import Any, Final, NamedTuple

import pyarrow as pa
from pyarrow import fs

from pipeline.decode.batches import partition_of
from pipeline.errors import PipelineError

_LOG: Final = re.compile(r"(.+)-(\d+)")
_SEGMENT: Final = re.compile(r"(\d{20})\.log(\.swap)?")
_LISTINGS: Final = 10


class Segment(NamedTuple):
    """One file of record batches."""

    log: str
    base_offset: int
    path: str
    size: int

    @property
    def topic(self) -> str:
        return partition_of(self.log)[0]

    @property
    def partition(self) -> int:
        return partition_of(self.log)[1]


def open_directory(path: str) -> tuple[fs.FileSystem, str]:
    """The file system of an address, and the path in it; a plain path is a local one. Hadoop's name of S3 will do: s3a.

    Errors:  PipelineError: no address that pyarrow.fs knows.
    """
    if "://" in path:
        try:
            found: tuple[fs.FileSystem, str] = fs.FileSystem.from_uri(re.sub("^s3a://", "s3://", path))
        except (pa.ArrowInvalid, NotImplementedError) as error:
            where = path.rpartition("@")[2].partition("?")[0]  # without the secrets that may stand in it
            why = str(error).replace(path, where)
            raise PipelineError(f"{where} is no address that pyarrow.fs can open: {why}") from None
        return found[0], found[1].rstrip("/") or "/"
    return fs.LocalFileSystem(), path.rstrip("/") or "/"


def is_directory(path: str) -> bool:
    """Whether there is a directory at an address."""
    files, root = open_directory(path)
    return bool(files.get_file_info(root).type == fs.FileType.Directory)


def read_json(path: str) -> Any:
    """What a file holds; None: there is no such file."""
    files, root = open_directory(path)
    if files.get_file_info(root).type == fs.FileType.NotFound:
        return None
    with files.open_input_stream(root) as stream:
        return json.loads(stream.read())


def write_json(path: str, content: Any) -> None:
    """Replace a file, as a whole or not at all; its directory is made."""
    files, root = open_directory(path)
    files.create_dir(root.rpartition("/")[0])
    with files.open_output_stream(f"{root}.new") as stream:
        stream.write(json.dumps(content).encode())
    files.move(f"{root}.new", root)


def inside(path: str, name: str) -> str:
    """The address of what lies in a directory; an address' options stay at its end."""
    place, mark, options = path.partition("?") if "://" in path else (path, "", "")
    return f"{place.rstrip('/')}/{name}{mark}{options}"


def segments(path: str, topic: str = "*", logs: Iterable[str] | None = None) -> list[Segment]:
    """The segments of all logs whose topic matches the glob, by log and base offset.

    `logs`: only these, by the name of their directory.
    """
    files, root = open_directory(path)
    if files.get_file_info(root).type != fs.FileType.Directory:
        raise FileNotFoundError(f"{path} is not a directory: the option `path` names a broker's data directory")
    wanted = None if logs is None else set(logs)
    names: list[str] = []
    for info in files.get_file_info(fs.FileSelector(root, allow_not_found=True)):
        match = _LOG.fullmatch(info.base_name)
        if info.type == fs.FileType.Directory and match and fnmatchcase(match[1], topic):
            names.append(info.base_name)
    found: list[Segment] = []
    for name in sorted(names, key=partition_of):
        if wanted is None or name in wanted:
            found += _settled(files, f"{root}/{name}", name)
    return found


def log_segments(files: fs.FileSystem, root: str, log: str) -> list[Segment]:
    """The segments of one log by base offset; none when it is gone."""
    return _settled(files, f"{root}/{log}", log)


def _settled(files: fs.FileSystem, directory: str, log: str) -> list[Segment]:
    """A listing that a second one agrees with: a directory that is read while files are renamed may miss one."""
    found = _listing(files, directory, log)
    for _ in range(_LISTINGS):
        if isinstance(files, fs.LocalFileSystem):
            before, found = [each.path for each in found], _listing(files, directory, log)
            if [each.path for each in found] == before:
                break
    return found


def _listing(files: fs.FileSystem, directory: str, log: str) -> list[Segment]:
    found: dict[int, Segment] = {}
    for info in files.get_file_info(fs.FileSelector(directory, allow_not_found=True)):
        match = _SEGMENT.fullmatch(info.base_name)
        if match and info.type == fs.FileType.File:
            base = int(match[1])
            if match[2] or base not in found:
                found[base] = Segment(log, base, info.path, info.size)
    return [found[base] for base in sorted(found)]
