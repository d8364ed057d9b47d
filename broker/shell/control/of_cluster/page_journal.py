"""Routes of the journal as the page shows it: a tail, and one request with its reply."""

from __future__ import annotations

from typing import Final

from broker.shell.control.of_cluster.journal import QUERY
from broker.shell.control.routes import Route

ENTRY: Final = {
    "number": int,
    "at_ms": int,
    "latency_ms": float,
    "api": str,
    "version": int,
    "client_id": str,
    "connection": str,
    "broker": int,
    "bytes_in": int,
    "bytes_out": int,
    "errors": [str],
    "why": str,
    "fault": str,
    "group": str,
    "topic": str,
    "transactional_id": str,
}

ROUTES: Final = (
    Route(
        "GET",
        "/journal/tail",
        "broker.shell.page.tail:show_tail",
        "The newest requests that fit, a line each; `next` is the path of what comes after them.",
        query={**QUERY, "since": "only those answered since then: as `next` has it", "limit": "so many at most; 50"},
        answer={
            "bytes": int,
            "kept_bytes": int,
            "dropped": int,
            "entries": [ENTRY],
            "not_shown": int,
            "next": str,
        },
    ),
    Route(
        "GET",
        "/journal/entries/{number}",
        "broker.shell.page.tail:show_entry",
        "One request with its reply, decoded; none where the journal has dropped it.",
        answer={"entries": [dict]},
    ),
)
