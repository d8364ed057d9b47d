"""The file of a failed run: what the cluster was made of, its data at the beginning, and all that happened then."""

from __future__ import annotations

import json
import os
import shutil
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from momus.cli.replay.checks import (
    CALLED,
    CLOSED,
    EVENT,
    FULL,
    SENT,
    TOOK,
    WAITED,
    BundleError,
    check_about,
    check_events,
    check_sizes,
    told,
)

__all__ = ["CALLED", "CLOSED", "EVENT", "FULL", "SENT", "TOOK", "WAITED", "Bundle", "BundleError", "Event", "frames"]


class Event(NamedTuple):
    """One thing that happened."""

    kind: int
    connection: int
    broker: int
    at_ms: int
    data: bytes


class Bundle:
    """A file, read and checked; `path`: where it is. Errors: BundleError; OSError."""

    def __init__(self, path: str) -> None:
        self.path = path
        with told(path, "is not a run that momus has kept"), zipfile.ZipFile(path) as file:
            check_sizes(file, os.path.getsize(path))
            self.about: dict[str, Any] = check_about(json.loads(file.read("about.json")))
            self._events = file.read("events")
            check_events(self._events, self.about)

    def events(self) -> Iterator[Event]:
        """All of them, in order."""
        position = 0
        while position < len(self._events):
            kind, connection, broker, at_ms, size = EVENT.unpack_from(self._events, position)
            position += EVENT.size
            yield Event(kind, connection, broker, at_ms, self._events[position : position + size])
            position += size

    def unpack_start(self, folder: Path) -> bool:
        """Write the data directory as it was at the beginning. Returns whether there was one: a proxy has none."""
        has_start = False
        with told(self.path, "cannot be unpacked"), zipfile.ZipFile(self.path) as file:
            for name in file.namelist():
                if name.startswith("start/"):
                    has_start = True
                    place = folder / name.removeprefix("start/")
                    place.parent.mkdir(parents=True, exist_ok=True)
                    with file.open(name) as source, place.open("wb") as target:
                        shutil.copyfileobj(source, target)
        return has_start


def frames(data: bytes) -> Iterator[bytes]:
    """Whole frames without their size fields."""
    position = 0
    while position + 4 <= len(data):
        stop = position + 4 + int.from_bytes(data[position : position + 4], "big")
        yield data[position + 4 : stop]
        position = stop
