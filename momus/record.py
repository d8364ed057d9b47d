"""A record that a test has read."""

from __future__ import annotations

import base64
from typing import Any, NamedTuple


class Record(NamedTuple):
    """A record that was read. `timestamp_ms` in Unix milliseconds."""

    topic: str
    partition: int
    offset: int
    timestamp_ms: int
    key: bytes | None
    value: bytes | None
    headers: list[tuple[str, bytes | None]]


def record_of(topic: str, row: dict[str, Any]) -> Record:
    """A record as the control plane shows it."""
    return Record(
        topic,
        row["partition"],
        row["offset"],
        row["timestamp_ms"],
        _bytes(row["key"]),
        _bytes(row["value"]),
        [(name, _bytes(value)) for name, value in row["headers"]],
    )


def _bytes(value: object) -> bytes | None:
    if isinstance(value, dict):
        return base64.b64decode(value["base64"])
    return None if value is None else str(value).encode()
