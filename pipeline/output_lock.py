"""Keeps a second job away from the folder that a job adds to: both would write the same micro-batches.

The lock is the kernel's (flock) on OUTPUT/_lock. It ends with the job's Python process, whatever ends that, so a job
that was killed never blocks the next one; the Java process ends with it, as its standard input does. The content of the
file only says who holds the lock. Object stores and HDFS have no such lock: there the job says so and goes on.
"""

from __future__ import annotations

import os
import socket
import sys
from contextlib import contextmanager
from typing import IO, TYPE_CHECKING, Final

from pipeline.errors import PipelineError
from pipeline.files import open_directory
from pipeline.output_guard import grown_output, owner

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]  # a module elsewhere

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterator

LOCK: Final = "_lock"


@contextmanager
def locked_output(args: argparse.Namespace) -> Iterator[None]:
    """Hold the lock of --output within the block, if the job adds to it (`archive`, `--follow`).

    Errors:  PipelineError: another job holds it; or see grown_output.
    """
    if args.job != "archive" and not getattr(args, "follow", False):
        yield
        return
    files, root = open_directory(grown_output(args))
    if files.type_name != "local":
        _say_unlocked(args, f"{files.type_name} has no locks")
        yield
        return
    with open(f"{root}/{LOCK}", "a+", encoding="utf-8") as file:
        _lock(args, file)
        yield


def _lock(args: argparse.Namespace, file: IO[str]) -> None:
    if fcntl is None:
        _say_unlocked(args, "this system has no flock")
        return
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        file.seek(0)
        raise PipelineError(
            f"--output {args.output}: another `{owner(args)}` adds to it ({file.read().strip() or 'unknown'}); wait "
            "until it ends, or end it"
        ) from None
    except OSError as error:  # a file system without locks
        _say_unlocked(args, str(error))
        return
    file.truncate(0)
    file.write(f"process {os.getpid()} on {socket.gethostname()}\n")
    file.flush()


def _say_unlocked(args: argparse.Namespace, why: str) -> None:
    sys.stderr.write(
        f"momus pipeline: --output cannot be locked ({why}): make sure that no other `{owner(args)}` adds to it\n"
    )
