"""What people write to say where a group's offsets go: the reset words of kafka-consumer-groups, read from text.

Where each word leads is in broker/base/seek.py. Source: KIP-122, KIP-175.
"""

from __future__ import annotations

import csv
import re
from datetime import UTC, datetime, timedelta
from typing import NamedTuple

TopicPartition = tuple[str, int]
_NUMBER = re.compile(" *[0-9]{1,18} *")


class ResetError(ValueError):
    """Words that do not read as a reset, or one that cannot be made; the message says why."""


class Reset(NamedTuple):
    """One word and its number: `offset`, `shift`, or `at_ms` in Unix milliseconds; `offsets` from a file."""

    word: str
    number: int = 0
    offsets: dict[str, dict[TopicPartition, int]] | None = None


def parse_scope(text: str) -> tuple[str, list[int] | None]:
    """TOPIC, or TOPIC:0,1,2. Errors: ResetError."""
    topic, colon, numbers = text.partition(":")
    if not topic or (colon and not re.fullmatch(r"[0-9]{1,10}(,[0-9]{1,10})*", numbers)):
        raise ResetError(f"{text!r} is not TOPIC or TOPIC:0,1,2")
    return topic, sorted({int(each) for each in numbers.split(",")}) if colon else None


def parse_datetime(text: str) -> int:
    """Unix milliseconds of 2030-01-01T00:00:00.000, UTC unless a zone is given. Errors: ResetError."""
    try:
        at = datetime.fromisoformat(text)
    except ValueError:
        raise ResetError(f"{text!r} is no time such as 2030-01-01T00:00:00.000") from None
    return int((at if at.tzinfo else at.replace(tzinfo=UTC)).timestamp() * 1000)


def parse_duration(text: str) -> int:
    """Milliseconds of an ISO 8601 duration, P7D or PT1H30M, as Java's Duration reads it. Errors: ResetError."""
    match = re.fullmatch(
        r"(-?)P(?:(-?\d+)D)?(?:T(?:(-?\d+)H)?(?:(-?\d+)M)?(?:(-?\d+(?:\.\d{1,9})?)S)?)?", text.upper(), re.ASCII
    )
    if not match or not any(match.groups()[1:]) or text.upper().endswith("T"):
        raise ResetError(f"{text!r} is no duration such as P7D, PT1H30M or PT10S")
    sign, days, hours, minutes, seconds = match.groups()
    try:
        span = timedelta(
            days=int(days or 0), hours=int(hours or 0), minutes=int(minutes or 0), seconds=float(seconds or 0)
        )
    except (OverflowError, ValueError):  # ValueError: more than 4,300 digits
        raise ResetError(f"{text:.40} is too long a duration") from None
    return (-1 if sign else 1) * (span // timedelta(milliseconds=1))


def parse_file(lines: list[str], group: str | None) -> dict[str, dict[TopicPartition, int]]:
    """group -> partition -> offset, of a CSV: `topic,partition,offset`, or `group,topic,partition,offset`.

    `group`: whose the lines without a group are; None: each line must name it. Errors: ResetError.
    """
    found: dict[str, dict[TopicPartition, int]] = {}
    for number, row in enumerate(csv.reader(lines), 1):
        if not row:
            continue
        owner, rest = (row[0], row[1:]) if len(row) == 4 else (group, row)
        if owner is None or len(rest) != 3 or not all(map(_NUMBER.fullmatch, rest[1:])):
            form = "group,topic,partition,offset" if group is None else "topic,partition,offset"
            raise ResetError(f"line {number} is not {form}")
        found.setdefault(owner, {})[rest[0], int(rest[1])] = int(rest[2])
    return found
