"""Routes of a cluster's journal: turn it on and off, read it, clear it."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, Final

from broker.shell.control.routes import Call, RefusedError, Route

if TYPE_CHECKING:
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
    "since": "only those answered since then: `now` of an earlier answer",
    "limit": f"the newest so many; {DEFAULT_LIMIT} unless told",
}


async def show_journal(cluster: ClusterServer, call: Call) -> dict[str, Any]:
    """The requests that fit, oldest first, and how full the journal is. Errors: RefusedError."""
    ring = cluster.broker.clients.journal
    if ring is None:
        return {**_state(cluster), "entries": []}
    from broker.journal.reading import describe, select  # 5 ms: most brokers keep no journal

    filters = dict(call.query)
    limit = _number(filters.pop("limit", None), DEFAULT_LIMIT)
    since = _number(filters.pop("since", None), -1)
    topics = cluster.broker.metadata.topics_by_id
    found: list[Any] = []

    def name_of(topic_id: bytes) -> str:
        return topics[topic_id].name if topic_id in topics else ""

    for scanned, entry in enumerate(select(ring, filters, name_of), 1):
        if scanned % SCANNED_AT_ONCE == 0:
            await asyncio.sleep(0)
        if entry is not None and entry.answered >= since:
            found.append(entry)
            if len(found) == limit:
                break
    shown = []
    for entry in reversed(found):
        shown.append(describe(entry, ring))
        await asyncio.sleep(0)
    return {**_state(cluster), "entries": shown}


async def keep_journal(cluster: ClusterServer, call: Call) -> dict[str, Any]:
    """Turn the journal on, with a limit, or off. Errors: RefusedError."""
    limit_bytes = call.body["bytes"]
    check_journal_bytes(limit_bytes)
    cluster.plan.journal_bytes = limit_bytes  # after a reset too
    cluster.broker.keep_journal(limit_bytes, cluster.recording)
    return _state(cluster)


def check_journal_bytes(limit_bytes: int) -> None:
    """Errors: RefusedError."""
    if limit_bytes and not LEAST_BYTES <= limit_bytes <= MOST_BYTES:
        raise RefusedError(400, f"a journal has 0 bytes, for none, or {LEAST_BYTES} to {MOST_BYTES}")


async def clear_journal(cluster: ClusterServer, call: Call) -> dict[str, Any]:
    """Drop what is kept; requests go on being kept."""
    ring = cluster.broker.clients.journal
    if ring is not None:
        ring.clear()
    return _state(cluster)


def _state(cluster: ClusterServer) -> dict[str, Any]:
    ring = cluster.broker.clients.journal
    if ring is None:
        return {"bytes": 0, "kept_bytes": 0, "now": 0, "dropped": 0}
    from broker.journal.ring import FRAMES_BITS  # 3 ms: most brokers keep no journal

    return {
        "bytes": ring.limit_bytes,
        "kept_bytes": ring.kept_bytes,
        "now": ring.seen << FRAMES_BITS,
        "dropped": ring.dropped,
    }


def _number(text: str | None, default: int) -> int:
    if text is None:
        return default
    if not (text.isascii() and text.isdigit() and len(text) < 19) or (default > 0 and not 0 < int(text) <= MOST):
        raise RefusedError(400, f'"limit" is 1 to {MOST}, "since" a whole number; not {text:.40}')
    return int(text)


STATE: Final = {"bytes": int, "kept_bytes": int, "now": int, "dropped": int}

ROUTES: Final = (
    Route(
        "GET",
        "/journal",
        show_journal,
        "The last requests and their replies, decoded.",
        query=QUERY,
        answer={**STATE, "entries": [dict]},
    ),
    Route(
        "POST",
        "/journal",
        keep_journal,
        "Keep the last requests and replies, up to so many bytes; 0: keep none.",
        body={"bytes": int},
        answer=STATE,
        example={"bytes": 16 << 20},
    ),
    Route("DELETE", "/journal", clear_journal, "Drop what is kept.", answer=STATE),
)
