"""The broker's process as its starter sees it: its start, its first line, and the sentence about an end of its own."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import threading
from typing import IO

from momus.launch import PROGRAM, dependency_paths

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

SERVE = "broker.shell.server:serve"
DEATH_LIMIT_S = 2.0  # how long a process that does not answer may take to end
LOG_LINES, LOG_CHARACTERS = 12, 2000  # of its log, the end


def start_child(serve: dict[str, object], temporary: str, log_path: str) -> subprocess.Popen[bytes]:
    """Start it. `serve`: what the broker's `serve` takes, or what the function that its `run` names does.
    `temporary`: its folder, which goes with this process.

    It has a session of its own (on Windows: a group), so the signals that a terminal sends to all that runs in it,
    Ctrl-C above all, do not reach it: its starter ends in order first, and uses it while it does.
    """
    run, serve = serve.get("run", SERVE), {name: word for name, word in serve.items() if name != "run"}
    options = {
        "paths": dependency_paths(),
        "parent_pid": os.getpid(),
        "temporary": temporary,
        "run": run,
        "serve": serve,
    }
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


def next_line(process: subprocess.Popen[bytes]) -> str:
    """The next line of the process' output, which it has written together with the first."""
    assert process.stdout is not None
    return process.stdout.readline().decode()


def end_child(process: subprocess.Popen[bytes], limit_s: float) -> int:
    """End it as SIGTERM does, or kill it when the limit has passed. Returns its exit code."""
    if process.poll() is None:
        if os.name == "posix":
            process.terminate()
        else:
            assert process.stdin is not None
            process.stdin.close()  # Windows' terminate() would not let it flush; the closed pipe does
        try:
            process.wait(limit_s)
        except subprocess.TimeoutExpired:
            process.kill()
    return process.wait()


def close_pipes(process: subprocess.Popen[bytes]) -> None:
    """Close our ends of the pipes of a process that has ended."""
    for pipe in (process.stdin, process.stdout):
        assert pipe is not None
        pipe.close()


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
