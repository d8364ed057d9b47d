"""The file of a failed run: what the cluster was made of, its data at the beginning, and all that happened then."""

from __future__ import annotations

import json
import struct
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

TOOK, SENT, CLOSED, CALLED, FULL, WAITED = range(6)
EVENT = struct.Struct(">BIiqI")  # kind, connection, broker, Unix ms, bytes; broker/journal/recording.py says more
FORMAT = 1


class BundleError(ValueError):
    """The file is no recorded run; the message says why."""


class Event(NamedTuple):
    """One thing that happened."""

    kind: int
    connection: int
    broker: int
    at_ms: int
    data: bytes


class Bundle:
    """A file, read. Errors: BundleError; OSError."""

    def __init__(self, path: str) -> None:
        try:
            with zipfile.ZipFile(path) as file:
                self.about: dict[str, Any] = json.loads(file.read("about.json"))
                self._events = file.read("events")
        except (zipfile.BadZipFile, KeyError, ValueError) as error:
            raise BundleError(f"{path} is not a run that momus has kept: {error}") from None
        if self.about.get("format") != FORMAT:
            raise BundleError(f"{path} has format {self.about.get('format')}; this momus reads {FORMAT}")
        self._path = path

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
        with zipfile.ZipFile(self._path) as file:
            for name in file.namelist():
                if name.startswith("start/"):
                    has_start = True
                    place = folder / name.removeprefix("start/")
                    if not place.resolve().is_relative_to(folder.resolve()):
                        raise BundleError(f"{self._path} has a file that would be elsewhere: {name}")
                    place.parent.mkdir(parents=True, exist_ok=True)
                    place.write_bytes(file.read(name))
        return has_start


def frames(data: bytes) -> Iterator[bytes]:
    """Whole frames without their size fields."""
    position = 0
    while position + 4 <= len(data):
        stop = position + 4 + int.from_bytes(data[position : position + 4], "big")
        yield data[position + 4 : stop]
        position = stop
