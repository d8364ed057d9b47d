"""Routes of a cluster's journal: turn it on and off, read it, clear it; verify what a test expects of it."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, Final, NewType, TypedDict
from weakref import WeakKeyDictionary

from broker.asks.request_rows import RequestRow, RequestRows
from broker.faults.errors import FaultError
from broker.shell.control.routes import Call, Optional_, RefusedError, Route

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from broker.broker import Broker
    from broker.journal.expected import Expected
    from broker.journal.reading import Entry
    from broker.journal.sessions import Sessions
    from broker.shell.cluster_server import ClusterServer

DEFAULT_LIMIT: Final = 100
MOST: Final = 10_000
LEAST_BYTES: Final = 1 << 16
MOST_BYTES: Final = 4 << 30
SCANNED_AT_ONCE: Final = 100  # entries, before clients are served again
QUERY: Final = {
    "api": "only requests of this API",
    "client_id": "only those of this client (*, ? and [...] fit anything)",
    "principal": "only those of this principal, as User:alice (*, ? and [...] fit anything)",
    "connection": "only those of this connection, HOST:PORT",
    "group": "only those that name this group",
    "topic": "only those that name this topic",
    "transactional_id": "only those that name this transactional id",
    "error": "only those answered with this error, such as NOT_COORDINATOR",
    "since": "only those answered since then: `now` of an earlier answer; all if numbers have begun again",
    "before": "only those whose `number` is below this: `number` of the oldest that another answer has, to read on",
    "limit": f"the newest so many; {DEFAULT_LIMIT} unless given",
}

EXPECTED_OF: Final[WeakKeyDictionary[ClusterServer, list[Expected]]] = WeakKeyDictionary()  # through all lives


JournalEntry = NewType("JournalEntry", dict[str, object])  # as schemas.py describes it


class JournalState(TypedDict):
    """How full a journal is, and the numbers of its oldest request and of the next one."""

    bytes: int
    kept_bytes: int
    now: int
    oldest: int
    dropped: int


class Found(JournalState):
    """Requests that fit, oldest first, how many there are, and of how many what is kept does not tell."""

    fitting: int
    undecided: int
    entries: list[JournalEntry]


class Counted(TypedDict):
    """How many requests fit, of a journal of so many bytes that has dropped so many."""

    bytes: int
    dropped: int
    fitting: int
    undecided: int


async def show_journal(cluster: ClusterServer, call: Call) -> Found:
    """The requests that fit, oldest first, how many there are of them, and how full the journal is.

    `undecided`: so many more may fit, but what is kept of them does not tell. Errors: RefusedError.
    """
    filters = dict(call.query)
    limit = _number(filters.pop("limit", None), DEFAULT_LIMIT)
    since = _number(filters.pop("since", None), -1)
    before = _number(filters.pop("before", None), -1)
    return await look(cluster.broker, filters, limit, since, before)


async def count_requests(broker: Broker, asked: list[dict[str, str]]) -> list[Counted]:
    """How many requests of a broker, which may have ended, fit each of these filters. Errors: RefusedError."""
    found = [await look(broker, filters, 0) for filters in asked]
    return [
        {
            "bytes": each["bytes"],
            "dropped": each["dropped"],
            "fitting": each["fitting"],
            "undecided": each["undecided"],
        }
        for each in found
    ]


def check_filters(asked: list[dict[str, str]]) -> None:
    """Errors: RefusedError."""
    from broker.journal import reading  # 5 ms: most brokers keep no journal

    for filters in asked:
        for name in filters:
            if name not in QUERY:
                raise RefusedError(400, f"no such filter: {name:.100}; there are {', '.join(QUERY)}")
        try:
            reading.check_filters(filters)
        except FaultError as error:
            raise RefusedError(400, str(error)) from None


async def end_life(cluster: ClusterServer, end: Callable[[], Awaitable[Broker]], call: Call) -> list[Counted] | None:
    """End a life of a cluster by `end`, which answers the broker of that life. What is expected of requests goes on.

    Returns the counts of requests that the call asks for, made when no more can come; None: it asks for none.
    Errors: RefusedError, and those of `end`.
    """
    asked = call.body.get("count")
    if asked is not None:
        check_filters(asked)
    ended = await end()
    await _expectations_go_on(cluster, ended)
    return None if asked is None else await count_requests(ended, asked)


async def _expectations_go_on(cluster: ClusterServer, ended: Broker) -> None:
    for wanted in EXPECTED_OF.get(cluster, ()):
        wanted.begin_anew(await look(ended, wanted.filters, 1))


async def look(broker: Broker, filters: dict[str, str], limit: int, since: int = -1, before: int = -1) -> Found:
    """What the journal of a broker has of such requests, the newest `limit` as entries. Errors: RefusedError."""
    from broker.journal.reading import describe, entries, judged, topic_names  # 5 ms: most brokers keep no journal

    check_filters([filters])
    ring, state = broker.clients.journal, _state(broker)  # first: what is answered during this look is for the next one
    if ring is None:
        return {**state, "fitting": 0, "undecided": 0, "entries": []}
    if since > state["now"]:  # numbers have begun again: after a reset, a restore or a restart
        since = -1
    name_of = topic_names(ring, broker.topics_by_id)
    kept, found = entries(ring), list[Any]()
    session_topics = (await _sessions(kept, name_of)).topics_of if "topic" in filters else None
    fitting = undecided = 0
    for scanned, (entry, is_fit) in enumerate(judged(kept, filters, name_of, since, before, session_topics), 1):
        if scanned % SCANNED_AT_ONCE == 0:
            await asyncio.sleep(0)
        if is_fit is None:
            undecided += 1
        elif is_fit:
            fitting += 1
            if fitting <= limit:
                found.append(entry)
    shown = []
    for entry in reversed(found):
        shown.append(JournalEntry(describe(entry, ring, name_of)))
        await asyncio.sleep(0)
    return {**state, "fitting": fitting, "undecided": undecided, "entries": shown}


async def tell_requests(cluster: ClusterServer, call: Call) -> RequestRows:
    """All requests that the journal has, by what they name."""
    from broker.journal.naming import rows  # 5 ms: most brokers keep no journal
    from broker.journal.reading import entries, topic_names  # 5 ms: as above

    broker = cluster.broker
    ring, state = broker.clients.journal, _state(broker)
    if ring is None:
        return {"requests": [], "dropped": 0, "bytes": 0}
    name_of = topic_names(ring, broker.topics_by_id)
    kept, found = entries(ring), list[RequestRow]()
    sessions = await _sessions(kept, name_of)
    for row in rows(kept, ring, name_of, sessions.topics_of):
        found.append(row)
        if len(found) % SCANNED_AT_ONCE == 0:
            await asyncio.sleep(0)
    return {"requests": found, "dropped": state["dropped"], "bytes": state["bytes"]}


async def _sessions(kept: list[Entry], name_of: Callable[[bytes], str]) -> Sessions:
    from broker.journal.sessions import Sessions  # 1 ms: most brokers keep no journal

    sessions = Sessions(name_of)
    for scanned, entry in enumerate(kept, 1):
        if scanned % SCANNED_AT_ONCE == 0:
            await asyncio.sleep(0)
        sessions.add(entry)
    return sessions


async def keep_journal(cluster: ClusterServer, call: Call) -> JournalState:
    """Turn the journal on, with a limit, or off. Errors: RefusedError."""
    limit_bytes = call.body["bytes"]
    check_journal_bytes(limit_bytes)
    if not limit_bytes:
        await _expectations_go_on(cluster, cluster.broker)
    cluster.plan.journal_bytes = limit_bytes  # after a reset too
    cluster.broker.keep_journal(limit_bytes, cluster.recording)
    return _state(cluster.broker)


def check_journal_bytes(limit_bytes: int) -> None:
    """Errors: RefusedError."""
    if limit_bytes and not LEAST_BYTES <= limit_bytes <= MOST_BYTES:
        raise RefusedError(400, f"a journal has 0 bytes, for none, or {LEAST_BYTES} to {MOST_BYTES}")


async def clear_journal(cluster: ClusterServer, call: Call) -> JournalState:
    """Drop what is kept; requests go on being kept."""
    ring = cluster.broker.clients.journal
    if ring is not None:
        ring.clear()
    return _state(cluster.broker)


def _state(broker: Broker) -> JournalState:
    ring = broker.clients.journal
    if ring is None:
        return {"bytes": 0, "kept_bytes": 0, "now": 0, "oldest": 0, "dropped": 0}
    from broker.journal.ring import FRAMES_BITS  # 3 ms: most brokers keep no journal

    return {
        "bytes": ring.limit_bytes,
        "kept_bytes": ring.kept_bytes,
        "now": ring.seen << FRAMES_BITS,
        "oldest": (ring.pieces[0].number if ring.pieces else ring.seen) << FRAMES_BITS,  # what is below is gone
        "dropped": ring.dropped,
    }


def _number(text: str | None, default: int) -> int:
    if text is None:
        return default
    if not (text.isascii() and text.isdigit() and len(text) < 19) or (default > 0 and not 0 < int(text) <= MOST):
        raise RefusedError(400, f'"limit" is 1 to {MOST}, "since" and "before" whole numbers; not {text:.40}')
    return int(text)


COUNTED: Final = Optional_([{"*": str}])  # filters of requests that a call is to count as it ends a life

EXPECTED: Final = {
    "filters": Optional_({"*": str}),
    "times": Optional_(int),
    "at_least": Optional_(int),
    "at_most": Optional_(int),
}
EXAMPLE: Final = {"filters": {"api": "OffsetCommit", "group": "billing"}, "at_least": 0}

ROUTES: Final = (
    Route(
        "GET",
        "/journal",
        show_journal,
        "The last requests and their replies, decoded.",
        query=QUERY,
    ),
    Route(
        "POST",
        "/journal",
        keep_journal,
        "Keep the last requests and replies, up to so many bytes; 0: keep none.",
        body={"bytes": int},
        example={"bytes": 16 << 20},
    ),
    Route("DELETE", "/journal", clear_journal, "Drop what is kept."),
    Route(
        "POST",
        "/journal/verify",
        "verifying:verify_requests",
        'Whether requests that fit the "filters" (those of GET /journal) came so many "times", or within "at_least" (1)'
        ' and "at_most"; "why" not, with what came near.',
        body=EXPECTED,
        unmet=409,
        example=EXAMPLE,
    ),
    Route(
        "GET",
        "/journal/requests",
        tell_requests,
        "All requests that the journal has, oldest first, each by what it names.",
    ),
    Route(
        "POST",
        "/journal/expect",
        "verifying:expect_requests",
        "Verify it with GET /verify at the end of the test, over all resets and restores.",
        body=EXPECTED,
        example=EXAMPLE,
    ),
    Route(
        "DELETE",
        "/journal/expect",
        "verifying:forget_expected",
        "Expect nothing any more.",
    ),
    Route(
        "GET",
        "/journal/last",
        "verifying:last_requests",
        "The last requests, a line each, for the report of a failed test.",
        query={"n": "so many at most; 20"},
    ),
    Route(
        "GET",
        "/left-wrong",
        "left_wrong:left_wrong",
        "What clients have left wrong: a sentence for each open transaction and each commit beyond the end of its log.",
    ),
    Route(
        "GET",
        "/verify",
        "verifying:verify_all",
        "What a test must fail for: a sentence for each fault that never acted, and each expectation that is not met.",
    ),
)
