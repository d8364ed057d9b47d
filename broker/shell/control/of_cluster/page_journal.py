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
    ),
    Route(
        "GET",
        "/journal/entries/{number}",
        "broker.shell.page.tail:show_entry",
        "One request with its reply, decoded; none where the journal has dropped it.",
    ),
    Route(
        "GET",
        "/timeline",
        "broker.shell.page.past.timeline:show_timeline",
        "The last minutes, from the journal: requests a second by API, errors, and what stands out; `next` is the path"
        " of what comes after.",
        query={
            "minutes": "so far back; 10",
            "since": "only what came since then: as `next` has it",
            "done": "the same, of what was done to the cluster",
        },
    ),
    Route(
        "GET",
        "/faults/{name}/held",
        "broker.shell.page.doing.held:list_held",
        "What a fault holds now, by the journal: requests that it has acted on and that have no reply.",
        errors={404: "no such fault"},
    ),
)
