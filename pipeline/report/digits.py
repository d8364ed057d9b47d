"""Numbers and times as a person reads them: as many digits as they need to be told apart, and no more."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from datetime import UTC, datetime, tzinfo
from math import floor, log10
from typing import Final
from zoneinfo import ZoneInfo

DIGITS: Final = 3  # significant ones of what was divided or scaled; counts are shown in full
_UNITS: Final = ("B", "kB", "MB", "GB", "TB")
_zone: Final[ContextVar[tzinfo]] = ContextVar("_zone", default=UTC)


@contextmanager
def in_zone(name: str) -> Iterator[None]:
    """Within it, times are those of a zone of the IANA database."""
    before = _zone.set(UTC if name == "UTC" else ZoneInfo(name))
    try:
        yield
    finally:
        _zone.reset(before)


def zone() -> tzinfo:
    """The zone of the times that are shown."""
    return _zone.get()


def number(value: float) -> str:
    """A count in full, anything else with DIGITS significant digits: 1,234,567; 0.00231; 5.3; 12.5; 1,230."""
    if isinstance(value, int):
        return f"{value:,}"
    if not value:
        return "0"
    value = round(value, DIGITS - 1 - floor(log10(abs(value))))
    decimals = max(0, DIGITS - 1 - floor(log10(abs(value))))
    text = f"{value:,.{decimals}f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def size(count: float) -> str:
    """A number of bytes with a unit: 999 B, 1 kB, 15.3 MB."""
    value = float(count)
    for unit in _UNITS[:-1]:
        if float(f"{value:.{DIGITS}g}") < 1000:  # 999,999 bytes are 1 MB, not 1000 kB
            return f"{number(value)} {unit}"
        value /= 1000
    return f"{number(value)} {_UNITS[-1]}"


def percent(part: int, whole: int) -> str:
    """A share of a whole, which is 0 % or 100 % only if it is exactly that."""
    share = 100 * part / max(1, whole)
    if 0 < share < 1:
        return "<1 %"
    return ">99 %" if 99 < share < 100 else f"{share:.0f} %"


def duration(seconds: float) -> str:
    """A length of time in its two largest units: 1.5 s, 7 min 12 s, 2 h 5 min."""
    if seconds < 60:
        return f"{number(float(seconds))} s"
    whole = round(seconds)
    large, small, names = (
        (whole // 60, whole % 60, "min s") if whole < 3600 else (whole // 3600, whole // 60 % 60, "h min")
    )
    one, other = names.split()
    return f"{large} {one} {small} {other}" if small else f"{large} {one}"


def tick(value: float) -> str:
    """A value at an axis: 0.2, 20, 5,000, 50 k, 1.5 M."""
    for limit, unit in ((1e9, "G"), (1e6, "M"), (1e4, "k")):
        if abs(value) >= limit:
            return f"{number(value / (1e3 if unit == 'k' else limit))} {unit}"
    return number(float(value))


def moment(millis: int) -> str:
    """A time in the zone, to the second."""
    return f"{_local(millis):%Y-%m-%d %H:%M:%S}"


def short_moment(millis: int, span: tuple[int, int]) -> str:
    """A time within a span, without the date if the span is within one day of the zone."""
    is_one_day = _local(span[0]).date() == _local(span[1]).date()
    return f"{_local(millis):%H:%M:%S}" if is_one_day else f"{_local(millis):%m-%d %H:%M:%S}"


def _local(millis: int) -> datetime:
    return datetime.fromtimestamp(millis / 1000, zone())
