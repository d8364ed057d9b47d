"""Where to begin and to stop reading: kcat's words for -o, with times as people write them."""

from __future__ import annotations

import re
import time
from datetime import UTC, datetime
from typing import TYPE_CHECKING, NamedTuple

from momus.cli.control_commands import UNITS

if TYPE_CHECKING:
    from momus.cli.records.client import RecordClient

WORDS = {"beginning": "earliest", "earliest": "earliest", "end": "latest", "latest": "latest", "stored": "stored"}


class PlaceError(ValueError):
    """An offset or a time that does not read as one."""


class Places(NamedTuple):
    """Where to begin, a word or an offset (negative: so many before the end) or a time, and the time to stop at."""

    start: str | int
    start_ms: int | None = None
    stop_ms: int | None = None


def places_of(texts: tuple[str, ...]) -> Places:
    """What one or more -o say. Errors: PlaceError."""
    start: str | int | None = None
    start_ms = stop_ms = None
    for text in texts:
        if text[:2] == "s@":
            start_ms = moment_ms(text[2:])
        elif text[:2] == "e@":
            stop_ms = moment_ms(text[2:])
        elif text in WORDS:
            start = WORDS[text]
        elif re.fullmatch(r"-?[0-9]{1,18}", text):
            start = int(text)
        else:
            raise PlaceError(
                f"{text!r} is no place: beginning, end, stored, an offset, -N for N before the end, s@TIME or e@TIME"
            )
    if start is not None and start_ms is not None:
        raise PlaceError("begin at an offset or at a time, not at both")
    return Places("earliest" if start is None else start, start_ms, stop_ms)


def moment_ms(text: str) -> int:
    """Unix milliseconds, an ISO time (UTC unless it says otherwise), or how long ago: 90s, 1h30m, 8d.

    Errors: PlaceError.
    """
    at_ms = _moment_ms(text)
    if at_ms < 0:  # Kafka has words among these: -1 is the end
        raise PlaceError(f"{text!r} is before 1970")
    return at_ms


def _moment_ms(text: str) -> int:
    if re.fullmatch("[0-9]{1,18}", text):
        return int(text)
    found = re.findall(r"([0-9]{1,12})(ms|s|m|h|d)", text)
    if found and "".join(number + unit for number, unit in found) == text:
        each_ms = {"milliseconds": 1, "seconds": 1000, "minutes": 60_000, "hours": 3_600_000, "days": 86_400_000}
        return time.time_ns() // 1_000_000 - sum(int(number) * each_ms[UNITS[unit]] for number, unit in found)
    try:
        at = datetime.fromisoformat(text)
    except ValueError:
        raise PlaceError(f"{text!r} is no time: Unix milliseconds, 2030-01-01T00:00Z, or 90s, 1h30m, 8d ago") from None
    return int((at if at.tzinfo else at.replace(tzinfo=UTC)).timestamp() * 1000)


def find(
    client: RecordClient, topic: str, leaders: dict[int, int], places: Places, group: str | None
) -> tuple[dict[int, int], dict[int, int]]:
    """(partition -> first offset to read, partition -> the offset to stop before, where one is given)."""
    from momus.client.kafka_client import EARLIEST, LATEST  # where use_packages() has run

    first = client.offsets_at(topic, leaders, EARLIEST)
    end = client.offsets_at(topic, leaders, LATEST)
    positions = end if places.start == "latest" else dict(first)
    if places.start_ms is not None:
        positions = _at(client, topic, leaders, places.start_ms, end)
    elif places.start == "stored":
        stored = {
            row["partition"]: row["offset"] for row in client.committed_offsets(group or "") if row["topic"] == topic
        }
        positions = {each: max(stored.get(each, first[each]), first[each]) for each in first}
    elif isinstance(places.start, int):
        offset = places.start
        positions = {each: offset if offset >= 0 else max(end[each] + offset, first[each]) for each in first}
    ends = {} if places.stop_ms is None else _at(client, topic, leaders, places.stop_ms, end)
    return positions, ends


def _at(client: RecordClient, topic: str, leaders: dict[int, int], at_ms: int, end: dict[int, int]) -> dict[int, int]:
    found = client.offsets_at(topic, leaders, at_ms)
    return {each: offset if offset >= 0 else end[each] for each, offset in found.items()}
