"""Routes of the cluster as a whole and of its transactions, as the page shows them."""

from __future__ import annotations

from typing import Final

from broker.shell.control.of_cluster.clock import CLOCK
from broker.shell.control.of_cluster.lifetime import CLUSTER
from broker.shell.control.of_cluster.snapshots import SNAPSHOT
from broker.shell.control.routes import Route
from broker.shell.page.windows import QUERY

NODE: Final = {"id": int, "up": bool, "lags": bool, "listeners": str, "leads": int, "in_sync": int}
TRANSACTION: Final = {
    "transactional_id": str,
    "state": str,
    "producer_id": int,
    "producer_epoch": int,
    "timeout_ms": int,
    "start_ms": int,
    "updated_ms": int,
    "partitions": [str],
}
EVENT: Final = {
    "time_ms": int,
    "what": str,
    "producer_id": int,
    "producer_epoch": int,
    "added": [str],
    "why": str,
}

ROUTES: Final = (
    Route(
        "GET",
        "/overview",
        "broker.shell.page.overview:show_overview",
        "Brokers and what they lead, features, clock, snapshots.",
        answer={
            **CLUSTER,
            "requests": int,
            "topics": int,
            "partitions": int,
            "under_replicated": int,
            "clock": CLOCK,
            "nodes": [NODE],
            "features": [{"name": str, "level": int, "lowest": int, "highest": int}],
            "snapshots": [SNAPSHOT],
        },
    ),
    Route(
        "GET",
        "/transactions",
        "broker.shell.page.transactions:list_transactions",
        "Transactional ids by name, with their states: a window on those that pass the filter.",
        query=QUERY,
        answer={"offset": int, "total": int, "loading": int, "transactions": [TRANSACTION]},
    ),
    Route(
        "GET",
        "/transactions/{transactional_id}",
        "broker.shell.page.transactions:show_transaction",
        "What happened to a transactional id, newest first: its states from the log, fenced zombies from the journal.",
        query={"limit": "so many events at most; 100"},
        answer={**TRANSACTION, "groups": [str], "events": [EVENT]},
    ),
)
