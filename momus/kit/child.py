"""The broker's process as its starter sees it: its start, its first line, and the sentence about an end of its own."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import threading
from typing import IO

from momus.launch import PROGRAM

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

DEATH_LIMIT_S = 2.0  # how long a process that does not answer may take to end
LOG_LINES, LOG_CHARACTERS = 12, 2000  # of its log, the end


def start_child(options: dict[str, object], log_path: str) -> subprocess.Popen[bytes]:
    """Start it with what launch.py takes.

    It has a session of its own (on Windows: a group), so the signals that a terminal sends to all that runs in it,
    Ctrl-C above all, do not reach it: its starter ends in order first, and uses it while it does.
    """
    with open(log_path, "ab") as log:
        return subprocess.Popen(
            [sys.executable, "-I", PROGRAM, json.dumps(options)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=log,
            start_new_session=os.name == "posix",
            creationflags=getattr(subprocess, "CREATE_NEW_PROCESS_GROUP", 0),
        )


def first_line(process: subprocess.Popen[bytes], limit_s: float) -> str:
    """The first line of the process' output, or "" when it ends or the limit passes first."""
    assert process.stdout is not None
    line: list[bytes] = []

    def read(pipe: IO[bytes]) -> None:
        line.append(pipe.readline())

    # A thread, not a selector: Windows cannot wait for a pipe.
    reader = threading.Thread(target=read, args=(process.stdout,), name="momus-ready", daemon=True)
    reader.start()
    reader.join(limit_s)
    if not line:
        process.kill()  # ends the reader too: no read may be under way when the pipe is closed
        reader.join()
    return line[0].decode() if line else ""


def death_sentence(process: subprocess.Popen[bytes], read_log: Callable[[], str], wait_s: float) -> str | None:
    """How it ended and what it logged last. None: it has not ended after so many seconds."""
    try:
        code = process.wait(wait_s)
    except subprocess.TimeoutExpired:
        return None
    how = f"was ended by signal {-code}" if code < 0 else f"ended with exit code {code}"
    end = "\n".join(read_log().rstrip().splitlines()[-LOG_LINES:])[-LOG_CHARACTERS:]
    return f"momus (pid {process.pid}) {how}; the end of its log: {end or '(it is empty)'}"


def remove_tree(path: str, owner_pid: int) -> None:
    """Remove a folder, in the process that made it."""
    if os.getpid() == owner_pid:  # a forked child's exit must not take its parent's data away
        shutil.rmtree(path, ignore_errors=True)
