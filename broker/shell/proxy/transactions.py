"""The transactions that the page of a proxy shows: asked of all coordinators of the upstream cluster.

What is answered has the shapes of page/transactions.py. What happened to an id is told by the proxy's journal, which
has what passed here; who wrote elsewhere, and when a state has changed, only the cluster's own log knows.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from broker.shell.control.routes import Call
from broker.shell.page.tail import newest, topic_name
from broker.shell.page.windows import number, slices, window
from protocol.errors import ErrorCode
from protocol.messages.transaction_admin import DescribeTransactionsRequest, ListTransactionsRequest

if TYPE_CHECKING:
    from broker.asks.rows import TransactionDetails, TransactionEvent, TransactionRow, TransactionRows
    from broker.shell.cluster_server import ClusterServer
    from broker.shell.proxy.upstream import Address, Upstream

LIST_VERSION, DESCRIBE_VERSION = 0, 0
MOST_PIECES: Final = 20_000  # of the newest in the journal
MOST_EVENTS: Final = 500
UNKNOWN: Final = -1  # an id, a time


async def list_transactions(cluster: ClusterServer, call: Call) -> TransactionRows:
    """A window on the transactional ids of all coordinators. Errors: RefusedError."""
    found = await _listed(cluster.broker.upstream)
    names, offset, total = await window(cluster, call, found)
    by_place: dict[Address, list[str]] = {}
    for name in names:
        by_place.setdefault(found[name], []).append(name)
    states: dict[str, TransactionRow] = {}
    for place, ids in by_place.items():
        states |= await _described(cluster.broker.upstream, place, ids)
    rows = [states.get(name) or _dead(name) for name in names]
    return {"offset": offset, "total": total, "loading": 0, "transactions": rows}


async def _listed(upstream: Upstream) -> dict[str, Address]:
    """All transactional ids, with where their coordinators are."""
    found: dict[str, Address] = {}
    for place in list(upstream.places.values()):
        answer = await upstream.ask_at(place, ListTransactionsRequest(), LIST_VERSION)
        found |= {row.transactional_id: place for row in answer.transaction_states}
    return found


async def _described(upstream: Upstream, place: Address, names: list[str]) -> dict[str, TransactionRow]:
    answer = await upstream.ask_at(place, DescribeTransactionsRequest(transactional_ids=names), DESCRIBE_VERSION)
    return {
        row.transactional_id: {
            "transactional_id": row.transactional_id,
            "state": row.transaction_state,
            "producer_id": row.producer_id,
            "producer_epoch": row.producer_epoch,
            "timeout_ms": row.transaction_timeout_ms,
            "start_ms": row.transaction_start_time_ms,
            "updated_ms": UNKNOWN,
            "partitions": [f"{topic.topic}-{index}" for topic in row.topics for index in sorted(topic.partitions)],
        }
        for row in answer.transaction_states
        if row.error_code == ErrorCode.NONE
    }


def _dead(name: str) -> TransactionRow:
    return {
        "transactional_id": name,
        "state": "Dead",
        "producer_id": UNKNOWN,
        "producer_epoch": UNKNOWN,
        "timeout_ms": 0,
        "start_ms": UNKNOWN,
        "updated_ms": UNKNOWN,
        "partitions": [],
    }


async def show_transaction(cluster: ClusterServer, call: Call) -> TransactionDetails:
    """The present state of an id (Dead: there is none), and what the journal saw of it, newest first."""
    name, limit = call.words["transactional_id"], number(call, "limit", 100, MOST_EVENTS, 1)
    state = None
    for place in list(cluster.broker.upstream.places.values()):
        state = (await _described(cluster.broker.upstream, place, [name])).get(name)
        if state is not None:
            break
    events = await _events(cluster, name)
    return {**(state or _dead(name)), "groups": [], "events": events[::-1][:limit]}


async def _events(cluster: ClusterServer, name: str) -> list[TransactionEvent]:
    """The requests in the journal that named an id, and how they were answered."""
    ring = cluster.broker.clients.journal
    if ring is None:
        return []
    from broker.journal.reading import error_names, fits  # 5 ms: most proxies keep no journal

    events: list[TransactionEvent] = []
    name_of = topic_name(cluster)
    async for entry in slices(cluster, await newest(cluster, ring, MOST_PIECES), 50):
        if not fits(entry, {"transactional_id": name}, name_of):
            continue
        request: Any = entry.request()
        errors = error_names(entry.response()) if entry.reply else []
        notes = ring.notes(entry.peer, entry.correlation_id)
        end = (" (commit)" if request.committed else " (abort)") if hasattr(request, "committed") else ""
        events.append(
            {
                "time_ms": entry.at_ms,
                "what": f"{entry.api}{end}{': ' if errors else ''}{', '.join(errors)}",
                "producer_id": _of(request, "producer_id"),
                "producer_epoch": _of(request, "producer_epoch"),
                "added": _added(request),
                "why": entry.client_id or "",
                "fault": notes.get("fault", ""),
            }
        )
    return events


def _of(request: Any, field: str) -> int:
    """A number of the producer, whatever the API calls it."""
    found: int = getattr(request, field, getattr(request, f"v3_and_below_{field}", UNKNOWN))
    return found


def _added(request: Any) -> list[str]:
    """The partitions that a request adds to its transaction."""
    rows = getattr(request, "v3_and_below_topics", None) or []
    return [f"{topic.name}-{index}" for topic in rows for index in topic.partitions]
