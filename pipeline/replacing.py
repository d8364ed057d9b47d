"""Replaces a job's earlier result by a new one in one step: who is killed between leaves the old one whole.

On a file system the new folder is written beside the old one (`NAME.momus-new-*`) and the two are exchanged; a folder
that a killed job left there can be deleted. An object store has no renaming: each result is a folder `v-*` of its own
in OUTPUT, and the marker OUTPUT/_momus.json, switched last, names the current one. Delta Lake's own log does the same.
"""

from __future__ import annotations

import ctypes
import errno
import os
import sys
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

from pyarrow import fs

from pipeline.files import join_path, open_directory
from pipeline.output_guard import check_output, mark, read_marker

if TYPE_CHECKING:
    import argparse

RENAMING: Final = ("local", "hdfs")  # file systems that rename a folder
_AT_FDCWD: Final = -100
_RENAME_EXCHANGE: Final = 2  # of Linux' renameat2


@contextmanager
def replaced(args: argparse.Namespace) -> Iterator[str]:
    """The folder to write a new result into. Leaving the block without an error makes it the one at --output.

    Errors:  PipelineError: see check_output. After any error the earlier result is as it was.
    """
    check_output(args)
    files, root = open_directory(args.output)
    if args.format == "delta":
        yield args.output
        mark(args.output, args)
    elif files.type_name in RENAMING:
        new = f"{args.output.rstrip('/')}.momus-new-{uuid.uuid4().hex[:12]}"
        try:
            yield new
            mark(new, args)
            _exchange(files, open_directory(new)[1], root)
        finally:
            _remove(files, open_directory(new)[1])
    else:
        version, before = f"v-{uuid.uuid4().hex[:12]}", (read_marker(args.output) or {}).get("current")
        folder = join_path(args.output, version)
        try:
            yield folder
            mark(args.output, args, current=version)
        except BaseException:
            _remove(files, f"{root}/{version}")
            raise
        if before is not None:
            _remove(files, f"{root}/{before}")


def _exchange(files: fs.FileSystem, new: str, old: str) -> None:
    """Put the new folder in the place of the old one, if there is one; that is then in the place of the new one."""
    kind = files.get_file_info(old).type
    if kind == fs.FileType.NotFound:
        files.move(new, old)
    elif not (files.type_name == "local" and _exchange_at_once(new, old)):
        aside = f"{new}-old"
        files.move(old, aside)
        files.move(new, old)
        files.move(aside, new)


def _exchange_at_once(one: str, other: str) -> bool:
    """Exchange two local folders in one system call. False: the system has none."""
    if sys.platform != "linux":
        return False
    libc = ctypes.CDLL(None, use_errno=True)
    if not hasattr(libc, "renameat2"):
        return False
    if libc.renameat2(_AT_FDCWD, os.fsencode(one), _AT_FDCWD, os.fsencode(other), _RENAME_EXCHANGE) == 0:
        return True
    code = ctypes.get_errno()
    if code in (errno.ENOSYS, errno.EINVAL):  # an old kernel, or a file system that cannot
        return False
    raise OSError(code, os.strerror(code), other)


def _remove(files: fs.FileSystem, folder: str) -> None:
    if files.get_file_info(folder).type == fs.FileType.Directory:
        files.delete_dir(folder)
