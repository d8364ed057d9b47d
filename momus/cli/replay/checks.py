"""Whether a file is a recording: it may come from another user, so nothing in it is used before it was looked at.

What is refused: fields of another type or beyond their limits, events that are cut off, frames that are not whole,
files that would be outside their folder, settings that a recording never has (addresses, secrets, files of this
machine), and a file that unpacks to much more than any recording does.
"""

from __future__ import annotations

import json
import struct
import zipfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Final

EVENT: Final = struct.Struct(
    ">BIiqI"
)  # kind, connection, broker, Unix ms, bytes; broker/journal/recording.py says more
TOOK, SENT, CLOSED, CALLED, FULL, WAITED = range(6)
FORMAT: Final = 1
MOST_BROKERS: Final = 100
LAST_MS: Final = 253_402_300_799_999  # of the year 9999
ABOUT_BYTES: Final = 4 << 20
EVENTS_BYTES: Final = (1 << 30) + (64 << 20)  # a recording ends before its events have more
START_BYTES: Final = 8 << 30
MOST_FILES: Final = 100_000
FREE_BYTES: Final = 64 << 20  # that a small file may become
MOST_RATIO: Final = 200  # and beyond that: how much larger than the file itself
# Settings that a recording leaves out (broker/shell/copies/recordings.py): some read files of this machine.
SECURED: Final = ("listener", "advertised.", "sasl.", "ssl.", "security.", "authorizer.", "super.users", "delegation.")
# What a library makes of bytes that are not what it reads.
UNREADABLE: Final = (
    *(zipfile.BadZipFile, zlib.error, struct.error, EOFError, NotImplementedError, RecursionError),
    *(ValueError, LookupError, TypeError, AttributeError, ArithmeticError, AssertionError),
)


class BundleError(ValueError):
    """The file is no recorded run, or cannot be played; the message names it and says why."""


@contextmanager
def told(path: str, what: str) -> Iterator[None]:
    """Whatever is wrong with a file becomes a sentence that names it. Errors: BundleError."""
    try:
        yield
    except BundleError as error:
        text = str(error)
        raise BundleError(text if text.startswith(path) else f"{path} {what}: {text}") from None
    except (*UNREADABLE, RuntimeError) as error:
        if isinstance(error, RuntimeError) and type(error) is not RuntimeError and not isinstance(error, UNREADABLE):
            raise  # what a broker or its endpoint says
        raise BundleError(f"{path} {what}: {error or type(error).__name__}"[:1000]) from None


def check_sizes(file: zipfile.ZipFile, packed: int) -> None:
    """Look at the sizes and names before anything is unpacked; `packed`: bytes of the file. Errors: BundleError."""
    rows = file.infolist()
    limits = {"about.json": ABOUT_BYTES, "events": EVENTS_BYTES}
    start = 0
    for row in rows:
        if row.filename.startswith("start/"):
            start += row.file_size
            words = row.filename.split("/")
            if "" in words or "." in words or ".." in words or "\\" in row.filename or ":" in row.filename:
                raise BundleError(f"it has a file that would be elsewhere: {row.filename:.100}")
        elif row.file_size > limits.get(row.filename, START_BYTES):
            raise BundleError(f"{row.filename:.100} would have {row.file_size} bytes")
    total = sum(row.file_size for row in rows)
    if len(rows) > MOST_FILES or start > START_BYTES or total > max(FREE_BYTES, MOST_RATIO * packed):
        raise BundleError(f"it would unpack to {len(rows)} files with {total} bytes")
    if len({row.filename for row in rows}) < len(rows):
        raise BundleError("it has two files of one name")


def check_about(about: Any) -> dict[str, Any]:
    """What `about.json` says. Errors: BundleError."""
    if not isinstance(about, dict):
        raise BundleError("about.json is no object")
    if about.get("format") != FORMAT:
        raise BundleError(f"it has format {about.get('format')!r:.50}; this momus reads {FORMAT}")
    for name, (is_right, words) in _ABOUT.items():
        if not is_right(about.get(name)):
            raise BundleError(f"about.json: {name} takes {words}, and is {about.get(name)!r:.100}")
    if len(about["node_ids"]) != about["brokers"]:
        raise BundleError(f"about.json: {about['brokers']} brokers, and {len(about['node_ids'])} node_ids")
    for key in about["config"]:
        if key.startswith(SECURED):
            raise BundleError(f"about.json: a recording has no setting {key:.100}")
    if about.get("upstream"):
        topics = about.get("topics")
        if not isinstance(topics, dict) or not all(_whole(0, 10_000)(each) for each in topics.values()):
            raise BundleError("about.json: topics takes an object of numbers of partitions")
    return about


def check_events(data: bytes, about: dict[str, Any]) -> None:
    """Errors: BundleError: an event is not whole, or is none."""
    position, number = 0, 0
    while position < len(data):
        number += 1
        if position + EVENT.size > len(data):
            raise BundleError(f"event {number} is cut off")
        kind, _, _, at_ms, size = EVENT.unpack_from(data, position)
        position += EVENT.size
        if position + size > len(data):
            raise BundleError(f"event {number} has {size} bytes, of which {len(data) - position} are there")
        if kind > WAITED or not 0 <= at_ms <= LAST_MS:
            raise BundleError(f"event {number} is of kind {kind}, at {at_ms} ms: there is no such event")
        if kind in (TOOK, SENT):
            _check_frames(data, position, position + size, number)
        elif kind == CALLED:
            _check_call(data[position : position + size], number)
        elif size != (8 if kind == WAITED else 0):
            raise BundleError(f"event {number} is of kind {kind}, with {size} bytes")
        position += size


def _check_frames(data: bytes, position: int, end: int, number: int) -> None:
    while position < end:
        position += 4 + int.from_bytes(data[position : min(position + 4, end)], "big")
    if position > end:
        raise BundleError(f"event {number} has a frame that is longer than the event")


def _check_call(data: bytes, number: int) -> None:
    call = json.loads(data)
    is_call = isinstance(call, dict) and isinstance(call.get("body"), dict)
    if not is_call or not all(isinstance(call.get(name), str) for name in ("method", "path")):
        raise BundleError(f"event {number} is no call of the control plane")
    if not call["method"].isalpha() or not call["path"].isprintable() or " " in call["path"] or ".." in call["path"]:
        raise BundleError(f"event {number} is a call of {call['method']!r:.50} {call['path']!r:.100}")


def _whole(first: int, last: int) -> Callable[[Any], bool]:
    return lambda value: type(value) is int and first <= value <= last


def _optional(is_right: Callable[[Any], bool]) -> Callable[[Any], bool]:
    return lambda value: value is None or is_right(value)


def _is_config(value: Any) -> bool:
    return isinstance(value, dict) and all(isinstance(each, str | int | float | bool) for each in value.values())


def _is_nodes(value: Any) -> bool:
    is_list = isinstance(value, list) and all(_whole(-1, 0x7FFFFFFF)(each) for each in value)
    return is_list and len(set(value)) == len(value)


_MOMENT: Final = _whole(0, LAST_MS)
_ABOUT: Final[dict[str, tuple[Callable[[Any], bool], str]]] = {
    "brokers": (_whole(1, MOST_BROKERS), f"a number from 1 to {MOST_BROKERS}"),
    "start_ms": (_MOMENT, "Unix milliseconds"),
    "at_ms": (_optional(_MOMENT), "Unix milliseconds or null"),
    "seed": (_optional(_whole(-(1 << 63), 1 << 64)), "a number or null"),
    "flush": (lambda value: value in ("memory", "os", "fsync"), "memory, os or fsync"),
    "config": (_is_config, "an object of settings"),
    "node_ids": (_is_nodes, "a list of numbers"),
}
