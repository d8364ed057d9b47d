"""The journal view: the newest requests, found without going through all of the journal, and one with its reply."""

from __future__ import annotations

from collections.abc import Callable, Collection
from itertools import islice
from typing import TYPE_CHECKING, Final, TypedDict
from urllib.parse import quote, urlencode

from broker.journal.ring import FRAMES_BITS
from broker.shell.control.of_cluster.journal import JournalEntry
from broker.shell.control.routes import Call, RefusedError
from broker.shell.page.texts import cut
from broker.shell.page.windows import number, slices

if TYPE_CHECKING:
    from broker.journal.reading import Entry
    from broker.journal.ring import Ring
    from broker.shell.cluster_server import ClusterServer

USUAL: Final = 50
MOST: Final = 200
MOST_PIECES: Final = 6000  # that one look goes back
BEFORE: Final = 2000  # pieces before the last look, for requests that have been answered since
MOST_FRAMES: Final = 1000  # of a piece, among which a request is looked for
LOOKED_AT_ONCE: Final = 25  # requests that are decoded, before clients are served again
MOST_NAME: Final = 200


class TailRow(TypedDict):
    """A request as a line; `latency_ms` is -1 where there is no reply yet. Of what it names the first of each kind."""

    number: int
    at_ms: int
    latency_ms: float
    api: str
    version: int
    client_id: str
    connection: str
    broker: int
    bytes_in: int
    bytes_out: int
    errors: list[str]
    why: str
    fault: str
    group: str
    topic: str
    transactional_id: str


class JournalTail(TypedDict):
    """The newest requests that fit, oldest first; `next` is the path of what comes after them."""

    bytes: int
    kept_bytes: int
    dropped: int
    entries: list[TailRow]
    not_shown: int
    next: str


class WholeEntries(TypedDict):
    """One request with its reply, or none."""

    entries: list[JournalEntry]


async def newest(cluster: ClusterServer, ring: Ring, most: int, since: int = -1) -> list[Entry]:
    """Requests of the newest `most` pieces, oldest first; `since`: only of pieces with this number or a later one."""
    from broker.journal.reading import Pairs  # 5 ms: most brokers keep no journal

    pieces = [piece for piece in islice(reversed(ring.pieces), most) if piece.number >= since]
    pairs = Pairs()
    async for piece in slices(cluster, reversed(pieces)):
        pairs.add(piece)
    return pairs.found


def topic_name(cluster: ClusterServer) -> Callable[[bytes], str]:
    """Finds the name of a topic id; "" for one that is not there."""
    from broker.journal.reading import topic_names  # 5 ms: most brokers keep no journal

    return topic_names(cluster.broker.clients.journal, cluster.broker.topics_by_id)


async def show_tail(cluster: ClusterServer, call: Call) -> JournalTail:
    """Requests that came, or were answered, since a look before. Errors: RefusedError."""
    ring, filters = cluster.broker.clients.journal, dict(call.query)
    limit, since = number(call, "limit", USUAL, MOST, 1), number(call, "since", 0)
    filters.pop("limit", None)
    filters.pop("since", None)
    answer: JournalTail = {"bytes": 0, "kept_bytes": 0, "dropped": 0, "entries": [], "not_shown": 0, "next": ""}
    seen = 0
    if ring is not None:
        seen = ring.seen
        if since > seen:  # numbers have begun again: after a reset or a restore
            since = 0
        answer |= {"bytes": ring.limit_bytes, "kept_bytes": ring.kept_bytes, "dropped": ring.dropped}
        most = min(MOST_PIECES, max(0, seen - since) + BEFORE)
        fresh = [entry for entry in await newest(cluster, ring, most) if _last(entry) >= since << FRAMES_BITS]
        answer["entries"], answer["not_shown"] = await _rows(cluster, ring, fresh, filters, limit)
    words = {**call.query, "since": str(seen)}
    answer["next"] = f"/_admin/clusters/{quote(cluster.name)}/journal/tail?{urlencode(words)}"
    return answer


def _last(entry: Entry) -> int:
    return max(entry.number, entry.answered)


async def _rows(
    cluster: ClusterServer, ring: Ring, fresh: list[Entry], filters: dict[str, str], limit: int
) -> tuple[list[TailRow], int]:
    """The newest `limit` that pass the filters, oldest first, and how many older ones were not looked at."""
    from broker.journal.reading import fits  # 5 ms: most brokers keep no journal

    api, name_of = filters.pop("api", "").replace("_", "").lower(), topic_name(cluster)
    rows: list[TailRow] = []
    looked = 0
    async for entry in slices(cluster, reversed(fresh), LOOKED_AT_ONCE):
        looked += 1
        if (not api or entry.api.lower() == api) and fits(entry, filters, name_of):
            rows.append(row_of(entry, ring, name_of))
            if len(rows) == limit:
                break
    return rows[::-1], len(fresh) - looked


def row_of(entry: Entry, ring: Ring, name_of: Callable[[bytes], str]) -> TailRow:
    """A request as a line of the tail has it."""
    from broker.faults.named import named_in  # 5 ms: most brokers keep no journal
    from broker.journal.reading import error_names  # the same 5 ms

    request = entry.request()
    named = None if request is None else named_in(request, name_of)
    notes = ring.notes(entry.peer, entry.correlation_id)
    return {
        "number": entry.number,
        "at_ms": entry.at_ms,
        "latency_ms": entry.latency_us / 1000 if entry.latency_us >= 0 else -1,
        "api": entry.api,
        "version": entry.api_version,
        "client_id": cut(entry.client_id, MOST_NAME),
        "connection": entry.peer.address,
        "broker": entry.peer.broker,
        "bytes_in": entry.size,
        "bytes_out": entry.reply_size,
        "errors": error_names(entry.response()),
        "why": notes.get("why", ""),
        "fault": notes.get("fault", ""),
        "group": _first(named.groups if named else ()),
        "topic": _first(named.topics if named else ()),
        "transactional_id": _first(named.transactional_ids if named else ()),
    }


def _first(names: Collection[str]) -> str:
    return cut(min(names), MOST_NAME) if names else ""


async def show_entry(cluster: ClusterServer, call: Call) -> WholeEntries:
    """One request with its reply, decoded; none where the journal has dropped it. Errors: RefusedError."""
    ring, text = cluster.broker.clients.journal, call.words["number"]
    if not (text.isascii() and text.isdigit() and len(text) < 17):
        raise RefusedError(400, f"{text:.40} is not the number of a request")
    if ring is None:
        return {"entries": []}
    from broker.journal.reading import Pairs, describe  # 5 ms: most brokers keep no journal

    wanted, pairs = int(text), Pairs()
    pieces = [piece for piece in ring.pieces if wanted >> FRAMES_BITS <= piece.number][:MOST_PIECES]
    async for piece in slices(cluster, pieces):
        pairs.add(piece)
        if pairs.found and pairs.found[0].number > wanted:
            break
        if any(entry.number == wanted and entry.answered >= 0 for entry in pairs.found[:MOST_FRAMES]):
            break
    return {"entries": [JournalEntry(describe(entry, ring)) for entry in pairs.found if entry.number == wanted]}
