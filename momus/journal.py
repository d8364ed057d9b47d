"""The journal of a running broker, from Python: its last requests and replies, and what a test expects of them.

    with Broker(journal_mb=16) as broker:
        ...
        broker.journal.verify(api="OffsetCommit", group="billing", times=3)

A filter is `api`, `client_id`, `connection`, `group`, `topic`, `transactional_id` or `error`. Names may hold *, ? and
[...].
"""

from __future__ import annotations

from collections.abc import Iterable

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from momus.control import Control

MOST = 10_000  # entries of one answer
NEAR = 10  # misses that are shown
DEFAULT_MB = 16


class JournalError(AssertionError):
    """What a test expected of the requests is not so; the text shows what came near."""


class Journal:
    """The journal of one cluster."""

    def __init__(self, control: Control, prefix: str = "/_admin") -> None:
        self.control = control
        self._path = f"{prefix}/journal"
        self._expected: list[tuple[dict[str, str], int | None, int, int | None]] = []

    def keep(self, mb: int = DEFAULT_MB) -> None:
        """Keep the last requests and replies, so many MB; 0: keep none."""
        self._ask("POST", {"bytes": mb << 20})

    def entries(self, *, limit: int = MOST, **filters: str) -> list[dict[str, Any]]:
        """The requests that fit, oldest first; the newest `limit`. Errors: ControlError."""
        return self._read(limit, filters)["entries"]  # type: ignore[no-any-return]  # JSON

    def verify(
        self, *, times: int | None = None, at_least: int = 1, at_most: int | None = None, **filters: str
    ) -> list[dict[str, Any]]:
        """Check how often such a request came: exactly `times`, or within limits. Answers these requests.

        Errors: JournalError.
        """
        found = self._read(MOST, filters)
        low, high = (times, times) if times is not None else (at_least, at_most)
        entries: list[dict[str, Any]] = found["entries"]
        if len(entries) >= low and (high is None or len(entries) <= high):
            return entries
        wanted = f"exactly {times}" if times is not None else f"{low} or more" if high is None else f"{low} to {high}"
        text = [f"{shown(filters)} came {len(entries)} times, expected {wanted}"]
        if not found["bytes"]:
            text.append("the journal is off: turn it on with journal.keep()")
        if found["dropped"]:
            text.append("older requests had to make room: keep more with journal.keep(mb)")
        text += self._near_misses(filters) if len(entries) < low else [one_line(each) for each in entries[-NEAR:]]
        raise JournalError("\n  ".join(text))

    def expect(
        self, *, times: int | None = None, at_least: int = 1, at_most: int | None = None, **filters: str
    ) -> None:
        """Check at the end of the test, as `verify` does."""
        self._expected.append((filters, times, at_least, at_most))

    def unmet(self) -> Iterable[str]:
        """A sentence for each expectation that is not met."""
        for filters, times, at_least, at_most in self._expected:
            try:
                self.verify(times=times, at_least=at_least, at_most=at_most, **filters)
            except JournalError as error:
                yield str(error)

    def clear(self) -> None:
        """Drop what is kept, and what is expected."""
        self._expected.clear()
        self._ask("DELETE", None)

    def last(self, n: int = 20) -> str:
        """The last requests, a line each, for the report of a failed test."""
        return "\n".join(one_line(each) for each in self.entries(limit=n))

    def follow(self, since: int, **filters: str) -> tuple[int, list[dict[str, Any]]]:
        """The requests that were answered since then, oldest first, and what now is."""
        found = self._read(MOST, {**filters, "since": str(since)})
        return found["now"], sorted(found["entries"], key=lambda each: int(each["answered"]))

    def _near_misses(self, filters: dict[str, str]) -> list[str]:
        """Requests that fit all filters but one, the newest first of each."""
        near: list[str] = []
        for name in filters:
            if len(filters) > 1 or name != "api":
                rest = {key: value for key, value in filters.items() if key != name}
                kept = self._read(NEAR, rest)["entries"]
                near += [f"but for {name}={filters[name]}: {one_line(each)}" for each in reversed(kept)]
        if not near:
            near = [f"there was: {one_line(each)}" for each in reversed(self._read(NEAR, {})["entries"])]
        return near[:NEAR] or ["the journal is empty"]

    def _read(self, limit: int, filters: dict[str, str]) -> dict[str, Any]:
        from urllib.parse import urlencode  # 2 ms

        answer = self.control.ask("GET", f"{self._path}?{urlencode({**filters, 'limit': limit})}")
        assert isinstance(answer, dict)
        return answer

    def _ask(self, method: str, body: object) -> None:
        self.control.ask(method, self._path, body)


def shown(filters: dict[str, str]) -> str:
    """Filters as words."""
    return " ".join(f"{key}={value}" for key, value in filters.items()) or "a request"


def one_line(entry: dict[str, Any]) -> str:
    """A request and its reply, as a line."""
    from datetime import UTC, datetime  # 1 ms

    at = datetime.fromtimestamp(entry["at_ms"] / 1000, UTC).strftime("%H:%M:%S.%f")[:-3]
    latency = "no reply" if entry["latency_ms"] is None else f"{entry['latency_ms']:.2f} ms"
    words = [at, f"{entry['api']} v{entry['version']}", latency, entry["client_id"] or "-", entry["connection"]]
    words += [
        f"{key}={_names(entry['request'], *fields)}"
        for key, fields in NAMED.items()
        if _names(entry["request"], *fields)
    ]
    words += entry["errors"]
    words += [f"({entry[key]})" for key in ("fault", "why") if key in entry]
    return "  ".join(words)


NAMED = {
    "group": ("group_id", "groups_names", "group_ids"),
    "txn": ("transactional_id", "v3_and_below_transactional_id"),
    "topic": ("topics", "topic_data"),
}


def _names(request: dict[str, Any] | None, *fields: str) -> str:
    found: list[str] = []
    for field in fields:
        value = (request or {}).get(field)
        for each in value if isinstance(value, list) else [value]:
            name = each if isinstance(each, str) else _name_of(each)
            if name and name not in found:
                found.append(name)
    return ",".join(found[:3]) + (",..." if len(found) > 3 else "")


def _name_of(item: object) -> str:
    if not isinstance(item, dict):
        return ""
    return str(item.get("name") or item.get("topic") or item.get("topic_id") or "")
