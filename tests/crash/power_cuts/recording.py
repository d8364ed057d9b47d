"""What recorder.c has written down: the events of a process, and the library that records them."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from struct import Struct
from typing import NamedTuple

_HEAD = Struct("=IcQQI")
SOURCE = Path(__file__).parent / "recorder.c"


class Event(NamedTuple):
    """One change. `end` is where its record ends: who has seen the recording that long has seen the event."""

    end: int
    what: str  # c create, w write, t truncate, b begin of a sync, s synced, d directory synced, m u r l names
    inode: int
    place: int  # position of a write, size of a truncation, number of a sync
    first: bytes  # a path
    more: bytes  # what was written, or the other path


def events(path: Path) -> Iterator[Event]:
    """All events of a recording, in order. A last one that is cut short is left out."""
    end = 0
    with path.open("rb") as file:
        while len(head := file.read(_HEAD.size)) == _HEAD.size:
            size, what, inode, place, first = _HEAD.unpack(head)
            body = file.read(size + 4 - _HEAD.size)
            if len(body) < size + 4 - _HEAD.size:
                return
            end += size + 4
            yield Event(end, what.decode(), inode, place, body[:first], body[first:])


def why_not() -> str:
    """Why nothing can be recorded here; empty where it can."""
    if sys.platform != "linux":
        return "what a process writes is recorded on Linux alone"
    return "" if shutil.which("cc") else "the recorder needs a C compiler"


def library() -> Path:
    """The recorder, compiled once. Errors: subprocess.CalledProcessError."""
    text = SOURCE.read_bytes()
    folder = Path(tempfile.gettempdir()) / f"momus-recorder-{os.getuid()}"
    folder.mkdir(mode=0o700, exist_ok=True)
    made = folder / f"{hashlib.sha256(text).hexdigest()[:16]}.so"
    if not made.exists():
        fresh = folder / f"{made.name}.{os.getpid()}"
        subprocess.run(["cc", "-O2", "-shared", "-fPIC", "-o", fresh, SOURCE, "-ldl", "-lpthread"], check=True)
        fresh.rename(made)
    return made


def environment(directory: Path, recording: Path, *, sync_us: int = 2000) -> dict[str, str]:
    """What a process needs in its environment to be recorded."""
    return {
        **os.environ,
        "LD_PRELOAD": str(library()),
        "RECORDER_ROOT": str(directory),
        "RECORDER_FILE": str(recording),
        "RECORDER_SYNC_US": str(sync_us),
    }
