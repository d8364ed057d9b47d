"""Records as text: kcat's format strings, JSON lines, and what `momus produce` reads from lines."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any, NamedTuple

ESCAPES = {"n": "\n", "r": "\r", "t": "\t", "\\": "\\", "%": "%"}
CONTROL_KEYS = ("key", "value", "payload", "headers", "partition", "timestamp_ms", "ts", "topic", "offset")
_TOKEN = re.compile(rb"%(.)|\\x([0-9a-fA-F]{2})|\\(.)", re.DOTALL)


class FormatError(ValueError):
    """A format, or a line, that does not read as one; the message says which and why."""


class Out(NamedTuple):
    """A record to produce. `timestamp_ms` in Unix milliseconds; None: now. `partition` None: by the key."""

    key: bytes | None
    value: bytes | None
    headers: list[tuple[str, bytes | None]]
    partition: int | None = None
    timestamp_ms: int | None = None


class In(NamedTuple):
    """A record that was read."""

    topic: str
    partition: int
    offset: int
    timestamp_ms: int
    key: bytes | None
    value: bytes | None
    headers: list[tuple[str, bytes | None]]


def unescape(text: str) -> str:
    r"""A delimiter as people type it: \n, \t, \x1e. Errors: FormatError."""

    def plain(match: re.Match[str]) -> str:
        if match[1]:
            return chr(int(match[1], 16))
        if match[2] not in ESCAPES:
            raise FormatError(f"\\{match[2]} is no character: \\n, \\r, \\t, \\\\ and \\xHH are")
        return ESCAPES[match[2]]

    return re.sub(r"\\x([0-9a-fA-F]{2})|\\(.)", plain, text)


# What each letter after a % stands for, as in kcat -f.
FIELDS: dict[str, Callable[[In], bytes]] = {
    "s": lambda r: r.value or b"",
    "S": lambda r: b"%d" % _length(r.value),
    "R": lambda r: _length(r.value).to_bytes(4, "big", signed=True),
    "k": lambda r: r.key or b"",
    "K": lambda r: b"%d" % _length(r.key),
    "T": lambda r: b"%d" % r.timestamp_ms,
    "t": lambda r: r.topic.encode(),
    "p": lambda r: b"%d" % r.partition,
    "o": lambda r: b"%d" % r.offset,
    "h": lambda r: b",".join(name.encode() + b"=" + (b"NULL" if value is None else value) for name, value in r.headers),
}


def compile_format(text: str) -> Callable[[In], bytes]:
    """What writes a record by a format of kcat. Errors: FormatError."""
    source = text.encode()
    parts: list[bytes | Callable[[In], bytes]] = []
    position = 0
    for match in _TOKEN.finditer(source):
        parts.append(source[position : match.start()])
        position = match.end()
        field, hexadecimal, escaped = match.groups()
        if hexadecimal:
            parts.append(bytes([int(hexadecimal, 16)]))
        elif escaped:
            parts.append(unescape("\\" + escaped.decode(errors="replace")).encode())
        elif field == b"%":
            parts.append(b"%")
        elif field.decode(errors="replace") in FIELDS:
            parts.append(FIELDS[field.decode()])
        else:
            known = " ".join(f"%{letter}" for letter in FIELDS)
            raise FormatError(f"%{field.decode(errors='replace')} is no field of a record: {known}")
    parts.append(source[position:])
    return lambda record: b"".join(part if isinstance(part, bytes) else part(record) for part in parts)


def json_line(record: In) -> str:
    """A record as a line of JSON. What is not UTF-8 is {"base64": ...}, as in the control plane."""
    from protocol.record_json import to_json

    row = record._asdict()
    row["key"], row["value"] = to_json(record.key), to_json(record.value)
    row["headers"] = [[name, to_json(value)] for name, value in record.headers]
    return json.dumps(row, ensure_ascii=False)


def read_json_line(line: str) -> Out:
    """A record from a line of JSON: as `json_line` writes it, or kcat -J. Errors: FormatError."""
    try:
        row = json.loads(line)
    except ValueError as error:
        raise FormatError(f"this is not JSON: {error}") from None
    if not isinstance(row, dict):
        raise FormatError("this is no JSON object")
    unknown = row.keys() - {*CONTROL_KEYS, "tstype", "broker"}
    if unknown:
        raise FormatError(f"{', '.join(sorted(unknown))}: unknown; known are {', '.join(CONTROL_KEYS)}")
    partition, timestamp_ms = row.get("partition"), row.get("timestamp_ms", row.get("ts"))
    for name, number in (("partition", partition), ("timestamp_ms", timestamp_ms)):
        if number is not None and (not isinstance(number, int) or isinstance(number, bool)):
            raise FormatError(f"{name} is no whole number")
        if name == "partition" and number is not None and number < 0:
            raise FormatError("partition is below 0")
    value = row["value"] if "value" in row else row.get("payload")
    return Out(_bytes("key", row.get("key")), _bytes("value", value), _headers(row), partition, timestamp_ms)


def _headers(row: dict[str, Any]) -> list[tuple[str, bytes | None]]:
    given = row.get("headers") or []
    if isinstance(given, dict):
        given = list(given.items())
    elif isinstance(given, list) and given and all(isinstance(each, str) for each in given):
        given = list(zip(given[::2], given[1::2], strict=True)) if len(given) % 2 == 0 else None  # kcat's flat list
    if not isinstance(given, list) or not all(isinstance(each, (list, tuple)) and len(each) == 2 for each in given):
        raise FormatError('headers are {"name": "value"} or [["name", "value"]]')
    return [(str(name), _bytes("a header", value)) for name, value in given]


def _bytes(what: str, value: object) -> bytes | None:
    """As in the control plane; any other value of JSON is kept as its text."""
    from protocol.record_json import from_json

    if value is None or isinstance(value, str) or (isinstance(value, dict) and isinstance(value.get("base64"), str)):
        try:
            return from_json(value)
        except ValueError:
            raise FormatError(f"{what}: this is not base64") from None
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()


def _length(data: bytes | None) -> int:
    return -1 if data is None else len(data)
