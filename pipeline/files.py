"""Directories and small files at any address that pyarrow.fs opens: a local path, s3://, gs://, hdfs://, ..."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pyarrow as pa
from pyarrow import fs

from pipeline.errors import PipelineError


def open_directory(path: str) -> tuple[fs.FileSystem, str]:
    """The file system of an address and the path in it. A plain path is local; s3a://, Hadoop's scheme, means s3://.

    Errors:  PipelineError: pyarrow.fs cannot open the address. The text leaves out credentials.
    """
    path = re.sub("^file:/(?!/)", "file:///", path)  # as Spark's catalog writes the path of a table
    if "://" in path:
        try:
            found: tuple[fs.FileSystem, str] = fs.FileSystem.from_uri(re.sub("^s3a://", "s3://", path))
        except (pa.ArrowInvalid, NotImplementedError, OSError) as error:
            address = path.rpartition("@")[2].partition("?")[0]  # credentials stand before the @ or after the ?
            why = str(error).replace(path, address)
            hint = "; AWS_ENDPOINT_URL names a store that is not Amazon's" if isinstance(error, OSError) else ""
            raise PipelineError(f"pyarrow.fs cannot open the address {address}: {why}{hint}") from None
        return found[0], found[1].rstrip("/") or "/"
    return fs.LocalFileSystem(), path.rstrip("/") or "/"


def is_directory(path: str) -> bool:
    """Whether the address names an existing directory."""
    files, root = open_directory(path)
    return bool(files.get_file_info(root).type == fs.FileType.Directory)


def read_json(path: str) -> Any:
    """The content of a JSON file; None when there is no such file."""
    files, root = open_directory(path)
    if files.get_file_info(root).type == fs.FileType.NotFound:
        return None
    with files.open_input_stream(root) as stream:
        return json.loads(stream.read())


def read_state(path: str) -> Any:
    """The content of a JSON file in which a job keeps its state in --output; None when there is no such file.

    Errors:  PipelineError: it is no JSON.
    """
    try:
        return read_json(path)
    except ValueError:
        raise damaged_state(path) from None


def damaged_state(path: str) -> PipelineError:
    """The error for a file of a job's state that cannot be used."""
    return PipelineError(f"{path} is damaged: restore it from a copy, or use another --output")


def write_json(path: str, content: Any) -> None:
    """Replace a JSON file atomically; its directory is created."""
    files, root = open_directory(path)
    files.create_dir(root.rpartition("/")[0])
    with files.open_output_stream(f"{root}.new") as stream:
        stream.write(json.dumps(content).encode())
    files.move(f"{root}.new", root)


def write_bytes(path: str, content: bytes) -> None:
    """Create or overwrite a file."""
    files, root = open_directory(path)
    with files.open_output_stream(root) as stream:
        stream.write(content)


@contextmanager
def replaced_file(path: str) -> Iterator[pa.NativeFile]:
    """A stream whose content replaces a file once all of it is written; after an error nothing of it is left."""
    files, root = open_directory(path)
    with files.open_output_stream(f"{root}.new") as stream:
        try:
            yield stream
        except BaseException:
            stream.close()
            files.delete_file(f"{root}.new")
            raise
    files.move(f"{root}.new", root)


def join_path(path: str, name: str) -> str:
    """The address of a name in a directory; the query options of an address stay at its end."""
    directory, mark, options = path.partition("?") if "://" in path else (path, "", "")
    return f"{directory.rstrip('/')}/{name}{mark}{options}"
