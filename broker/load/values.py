"""Values of a file as bytes, milliseconds and texts of settings. Errors: ValueError, which says why."""

from __future__ import annotations

import base64
import binascii
import json
import re
from datetime import UTC, date, datetime, timedelta
from typing import Any, Final

_UNITS: Final = {"ms": 1, "s": 1000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_MILLISECOND: Final = timedelta(milliseconds=1)


def data_of(value: Any) -> bytes | None:
    """A key, a value or the value of a header, as RECORD declares it."""
    if value is None:
        return None
    if isinstance(value, str):
        return _encoded(value)
    if isinstance(value, dict) and value.keys() == {"base64"}:
        if not isinstance(value["base64"], str):
            raise ValueError('"base64" takes a text')
        try:
            return base64.b64decode(value["base64"], validate=True)
        except (binascii.Error, ValueError):
            raise ValueError('"base64" holds what is not base64') from None
    return _encoded(compact(value))


def compact(value: Any) -> str:
    """A value as JSON, without spaces."""
    try:
        return json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    except TypeError:
        raise ValueError("JSON has no times: write them in quotes") from None


def _encoded(text: str) -> bytes:
    try:
        return text.encode()
    except UnicodeEncodeError:
        raise ValueError("half of a surrogate pair is no text: write the bytes as base64") from None


def headers_of(given: Any) -> tuple[tuple[str, bytes | None], ...]:
    """Headers, of an object or a list of pairs."""
    pairs = list(given.items()) if isinstance(given, dict) else given
    for pair in pairs:
        if len(pair) != 2 or not isinstance(pair[0], str):
            raise ValueError("takes [name, value] pairs")
    return tuple((name, data_of(value)) for name, value in pairs)


def moment_ms(value: Any) -> int:
    """Unix milliseconds of a time."""
    if isinstance(value, int):
        return value
    if isinstance(value, str):
        try:
            value = datetime.fromisoformat(value)
        except ValueError:
            raise ValueError(f"{value:.40} is no time such as 2030-01-01T00:00Z") from None
    elif not isinstance(value, datetime):
        assert isinstance(value, date)
        value = datetime(value.year, value.month, value.day)
    moment = value if value.tzinfo is not None else value.replace(tzinfo=UTC)
    found = (moment - _EPOCH) // _MILLISECOND
    if found < 0:
        raise ValueError("a time before 1970 is none of Kafka's")
    return int(found)


def duration_ms(text: str) -> int:
    """Milliseconds of 90s, 8d, 1h30m or 250ms."""
    found = re.findall(r"(\d{1,12})(ms|s|m|h|d)", text)
    if not found or "".join(number + unit for number, unit in found) != text:
        raise ValueError(f"{text:.40} is no duration such as 90s, 8d, 1h30m or 250ms")
    return sum(int(number) * _UNITS[unit] for number, unit in found)


def setting_text(value: Any) -> str:
    """A setting as Kafka takes it."""
    return str(value).lower() if isinstance(value, bool) else str(value)
