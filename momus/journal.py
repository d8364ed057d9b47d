"""The journal of a running broker, from Python: its last requests and replies, and what a test expects of them.

    with Broker(journal_mb=16) as broker:
        ...
        broker.journal.verify(api="OffsetCommit", group="billing", times=3)

A filter is `api`, `client_id`, `principal`, `connection`, `group`, `topic`, `transactional_id` or `error`. Names that
clients have chosen may hold *, ? and [...].
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from momus.kit.hidden import hides as __tracebackhide__  # noqa: F401  # pytest looks for it
from momus.kit.visible import visible

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Unpack

    from momus.control import Control
    from momus.kit.typed import JournalEntry, JournalFilters

MOST = 10_000  # entries of one answer
NEAR = 10  # misses that are shown
DEFAULT_MB = 16
DECODED = ("group", "topic", "transactional_id", "error")  # filters for which all of a request or reply is needed

GONE = "the broker ended, and could not be asked what it had seen"
FILTERS = ("api", "client_id", "principal", "connection", "group", "topic", "transactional_id", "error")
# in place of an answer, where the process has ended: no more requests, and nothing that is not known
NOTHING: dict[str, Any] = {"bytes": 1, "dropped": 0, "fitting": 0, "undecided": 0, "entries": []}


class JournalError(AssertionError):
    """What a test expected of the requests is not so; the text shows what came near."""


class _Wanted:
    """How often requests are to come: `low` times at least, `high` at most."""

    __slots__ = ("before", "filters", "high", "low", "past")

    def __init__(
        self, filters: Mapping[str, object], times: int | None, at_least: int | None, at_most: int | None
    ) -> None:
        """Errors: ValueError: limits that exclude each other, or what is no filter."""
        self.filters = _texts(filters)
        if times is not None:
            if at_least is not None or at_most is not None:
                raise ValueError("give times, or at_least and at_most")
            at_least = at_most = times
        self.low = at_least if at_least is not None else 1 if at_most is None else min(1, at_most)
        self.high = at_most
        if self.low < 0 or (at_most is not None and at_most < self.low):
            raise ValueError(f"no number of requests is {self.low} or more and {at_most} or less")
        self.before = 0  # how many came before a restart, a reset or a restore
        self.past: list[str] = []  # why these may not be all

    @property
    def words(self) -> str:
        if self.high is None:
            return f"{self.low} or more"
        return f"exactly {self.low}" if self.low == self.high else f"{self.low} to {self.high}"


class Journal:
    """The journal of one cluster."""

    def __init__(self, control: Control, prefix: str = "/_admin", before: Journal | None = None) -> None:
        self.control = control
        self.is_over = False  # its process has ended, and what it kept is gone
        self._path = f"{prefix}/journal"
        self._expected: list[_Wanted] = [] if before is None else before._expected

    def keep(self, mb: int = DEFAULT_MB) -> None:
        """Keep the last requests and replies, so many MB; 0: none, and expectations with an upper limit fail then."""
        counted = self.counted()
        if not mb or not all(each["bytes"] for each in counted):
            self.begin_anew(counted)
        self._ask("POST", {"bytes": mb << 20})

    def entries(self, *, limit: int = MOST, **filters: Unpack[JournalFilters]) -> list[JournalEntry]:
        """The requests that fit, oldest first; the newest `limit`. Errors: ControlError, ValueError, as `verify`."""
        return self._read(limit, _texts(filters))["entries"]  # type: ignore[no-any-return]  # JSON

    def verify(
        self,
        *,
        times: int | None = None,
        at_least: int | None = None,
        at_most: int | None = None,
        **filters: Unpack[JournalFilters],
    ) -> list[JournalEntry]:
        """Check how often such a request came: exactly `times`, or within limits. Returns these, the newest 10,000.

        Without limits it is to have come once or more. With `times` or `at_most` it also fails where the journal cannot
        know that there were no more. A filter that is None is left out.
        Errors: JournalError. ControlError: there is no such API or error.
                ValueError: there is no such filter, or the limits exclude each other.
        """
        return self._check(_Wanted(filters, times, at_least, at_most))

    def expect(
        self,
        *,
        times: int | None = None,
        at_least: int | None = None,
        at_most: int | None = None,
        **filters: Unpack[JournalFilters],
    ) -> None:
        """Check at the end of the test, as `verify` does, over all restarts, resets and restores.

        Errors: as `verify`, but for JournalError.
        """
        wanted = _Wanted(filters, times, at_least, at_most)
        self._read(1, wanted.filters)  # so that a wrong name is an error at once
        self._expected.append(wanted)

    def unmet(self) -> Iterable[str]:
        """A sentence for each expectation that is not met."""
        for wanted in self._expected:
            try:
                self._check(wanted)
            except JournalError as error:
                yield str(error)

    def asked(self) -> list[dict[str, str]]:
        """The filters of each expectation, for calls that count as they empty the journal."""
        return [wanted.filters for wanted in self._expected]

    def counted(self) -> list[dict[str, Any]]:
        """An answer of the journal for each expectation, with the count of its requests. Errors: as Control.ask."""
        return [self._read(1, filters) for filters in self.asked()]

    def begin_anew(self, counted: list[dict[str, Any]] | None) -> None:
        """What was kept is gone; expectations go on from what `counted` says of it. None: it could not be asked."""
        for index, wanted in enumerate(self._expected):
            unknown = [GONE] if counted is None else _unknown(counted[index], wanted.filters)
            wanted.before += 0 if counted is None else counted[index]["fitting"]
            wanted.past += [f"before the journal began again: {sentence}" for sentence in unknown]

    def _check(self, wanted: _Wanted) -> list[JournalEntry]:
        """The requests, if there are as many as wanted. Errors: JournalError."""
        filters, low, high = wanted.filters, wanted.low, wanted.high
        found = NOTHING if self.is_over else self._read(MOST, filters)
        count: int = wanted.before + found["fitting"]
        entries: list[JournalEntry] = found["entries"]
        unknown = [*wanted.past, *_unknown(found, filters)]
        is_within = count >= low and (high is None or count <= high)
        if is_within and (high is None or not unknown):
            return entries
        said = (
            f"{shown(filters)} came {count} time{'' if count == 1 else 's'}"
            f"{' as far as is known' if is_within else ''}, expected {wanted.words}"
        )
        earlier = [f"{wanted.before} of them before the journal began again"] if wanted.before else []
        if is_within:
            text = [said, *earlier, *unknown]
        elif count < low:
            text = [said, *earlier, *unknown, *([] if self.is_over else self.near(filters))]
        else:
            text = [said, *earlier, *map(one_line, entries[-NEAR:])]
        raise JournalError("\n  ".join(text))

    def clear(self) -> None:
        """Drop what is kept, and what is expected."""
        self._expected.clear()
        self._ask("DELETE", None)

    def last(self, n: int = 20) -> str:
        """The last requests, a line each, for the report of a failed test."""
        return "\n".join(one_line(each) for each in self.entries(limit=n))

    def follow(self, since: int, **filters: str) -> tuple[int, list[dict[str, Any]]]:
        """The requests that were answered since then, oldest first, and what now is."""
        return self.look(since, **filters)[:2]

    def look(self, since: int, **filters: str) -> tuple[int, list[dict[str, Any]], bool]:
        """As `follow`, and whether there may have been more, which had to make room before this look."""
        words = {**filters, "since": str(since)}
        found = page = self._read(MOST, words)
        now, entries = found["now"], found["entries"]
        while page["fitting"] > len(page["entries"]):
            page = self._read(MOST, {**words, "before": page["entries"][0]["number"]})
            if page["now"] < now:  # numbers have begun again
                break
            entries += [each for each in page["entries"] if each["answered"] < now]  # the others are of the next look
        return now, sorted(entries, key=lambda each: int(each["answered"])), since < page["oldest"] and since <= now

    def newest(self, **filters: str) -> tuple[int, list[dict[str, Any]]]:
        """As `follow` of all, but only the newest 10,000."""
        found = self._read(MOST, {**filters, "since": "0"})
        return found["now"], sorted(found["entries"], key=lambda each: int(each["answered"]))

    def near(self, filters: dict[str, str]) -> list[str]:
        """A line for each request that fits all filters but one, the newest first of each."""
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


def _texts(filters: Mapping[str, object]) -> dict[str, str]:
    """The filters that are given. Errors: ValueError: one is no filter: it would fit something else, or nothing."""
    for name, value in filters.items():
        if name not in FILTERS:
            raise ValueError(f"no such filter: {name}; there are {', '.join(FILTERS)}")
        if value is not None and not isinstance(value, str):
            raise ValueError(f"{name}={value!r}: a filter is a text; names may hold *, ? and [...]")
    return {name: str(value) for name, value in filters.items() if value is not None}


def _unknown(found: dict[str, Any], filters: dict[str, str]) -> list[str]:
    """A sentence for each reason why there may be more such requests than the journal has, and what to do."""
    if not found["bytes"]:
        return ["the journal is off: turn it on with journal.keep() or journal_mb"]
    told = []
    if found["dropped"]:
        told.append("older requests had to make room: keep more with journal.keep(mb) or a larger journal_mb")
    if found["undecided"]:
        words = " and ".join(key for key in filters if key in DECODED)
        told.append(
            f"{found['undecided']} more may be such: above 4 kB only the first bytes of a request or reply are kept,"
            f" and a Fetch of a session names topics once, maybe before the journal began; these do not tell {words};"
            f" ask without {words}, or for one api, or let clients send less at once"
        )
    return told


def shown(filters: dict[str, str]) -> str:
    """Filters as words."""
    return " ".join(f"{key}={value}" for key, value in filters.items()) or "a request"


def one_line(entry: Mapping[str, Any]) -> str:
    """A request and its reply, as a line."""
    from datetime import UTC, datetime  # 1 ms

    at = datetime.fromtimestamp(entry["at_ms"] / 1000, UTC).strftime("%H:%M:%S.%f")[:-3]
    latency = "no reply" if entry["latency_ms"] is None else f"{entry['latency_ms']:.2f} ms"
    words = [at, what(entry), latency, entry["client_id"] or "-", entry["connection"]]
    words += [
        f"{key}={names}"
        for key, fields in NAMED.items()
        if (names := _names(entry["request"], entry.get("topic_names", {}), *fields))
    ]
    words += entry["errors"]
    words += [f"({entry[key]})" for key in ("fault", "why") if key in entry]
    return visible("  ".join(words))


NAMED = {
    "group": ("group_id", "groups_names", "group_ids", "groups"),
    "member": ("members",),  # of LeaveGroup
    "txn": ("transactional_id", "v3_and_below_transactional_id"),
    "topic": ("topics", "topic_data", "topic_partitions", "subscribed_topic_names", "groups.topics"),
    "subject": ("subject",),  # of the schema registry
}


def _names(request: dict[str, Any] | None, by_id: dict[str, str], *fields: str) -> str:
    found: list[str] = []
    for field in fields:
        for each in _values(request or {}, field):
            name = each if isinstance(each, str) else _name_of(each, by_id)
            if name and name not in found:
                found.append(name)
    return ",".join(found[:3]) + (",..." if len(found) > 3 else "")


def what(entry: Mapping[str, Any]) -> str:
    """The API and its version; of the schema registry the route and what was asked."""
    asked = entry["request"] or {}
    if "route" in asked and "path" in asked:
        return f"{entry['api']} {asked['route']} {asked['method']} {asked['path']}"
    return f"{entry['api']} v{entry['version']}"


def _values(request: dict[str, Any], field: str) -> list[Any]:
    """What a field holds, one by one; groups.topics: that of each group."""
    outer, dot, inner = field.partition(".")
    value = request.get(outer)
    found = value if isinstance(value, list) else [value]
    return [each for item in found if isinstance(item, dict) for each in _values(item, inner)] if dot else found


def _name_of(item: object, by_id: dict[str, str]) -> str:
    if not isinstance(item, dict):
        return ""
    topic_id = str(item.get("topic_id") or "")
    own = item.get("name") or item.get("topic") or item.get("group_id") or item.get("group_instance_id")
    return str(own or item.get("member_id") or by_id.get(topic_id, topic_id))
