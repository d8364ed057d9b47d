"""Routes of the cluster as a whole, of its transactions and of its schemas, as the page shows them."""

from __future__ import annotations

from typing import Final

from broker.shell.control.routes import Optional_, Route
from broker.shell.page.windows import QUERY

NODE: Final = {"id": int, "up": bool, "lags": bool, "paused": bool, "listeners": str, "leads": int, "in_sync": int}
SUBJECT: Final = {"subject": str, "type": str, "versions": int, "version": int, "id": int, "level": str, "mode": str}
VERSION: Final = {
    "version": int,
    "id": int,
    "type": str,
    "deleted": bool,
    "references": [str],
    "referred_to": int,
}
FINDING: Final = {"kind": str, "path": str, "text": str}
QUOTA: Final = {"entity": {"*": str}, "rates": {"*": float}}
LINE: Final = {"is_changed": bool, "old_line": int, "old": str, "new_line": int, "new": str}

ROUTES: Final = (
    Route(
        "GET",
        "/overview",
        "broker.shell.page.overview:show_overview",
        "Brokers and what they lead, features, clock, snapshots.",
    ),
    Route(
        "GET",
        "/transactions",
        "broker.shell.page.transactions:list_transactions",
        "Transactional ids by name, with their states: a window on those that pass the filter.",
        query=QUERY,
    ),
    Route(
        "GET",
        "/transactions/{transactional_id}",
        "broker.shell.page.transactions:show_transaction",
        "What happened to a transactional id, newest first: its states from the log, fenced zombies from the journal.",
        query={"limit": "so many events at most; 100"},
    ),
    Route(
        "GET",
        "/schemas",
        "broker.shell.page.schemas:list_subjects",
        "Subjects of the cluster's own registry: a window on those that pass the filter.",
        query=QUERY,
    ),
    Route(
        "GET",
        "/schemas/{subject}",
        "broker.shell.page.schemas:show_subject",
        "A subject with its versions, the newest first.",
    ),
    Route(
        "GET",
        "/schemas/{subject}/changes",
        "broker.shell.page.schemas:show_changes",
        "Two versions side by side: what has changed, and why readers of one cannot read what the other has written.",
        query={"to": "the newer version; the latest", "from": "the older one; the one before it"},
    ),
    Route(
        "GET",
        "/schemas/{subject}/topics",
        "broker.shell.page.schema_use:show_use",
        "Topics whose newest records carry an id of a subject.",
    ),
    Route(
        "GET",
        "/quotas",
        "broker.shell.page.doing.quotas:list_quotas",
        'The quotas of clients: "entity" is user, client_id or ip, each with a name or "<default>".',
    ),
    Route(
        "POST",
        "/quotas",
        "broker.shell.page.doing.quotas:alter_quotas",
        'Set the "rates" of an entity, such as producer_byte_rate, and "remove" others. Returns all quotas.',
        body={"entity": {"*": str}, "rates": Optional_({"*": float}), "remove": Optional_([str])},
        example={"entity": {"client_id": "billing"}, "rates": {"producer_byte_rate": 1_000_000}},
        errors={409: "Kafka's reason why a rate is refused"},
    ),
    Route(
        "GET",
        "/words",
        "broker.shell.page.doing.words:list_words",
        "The words that forms complete: APIs, errors, operations and resources of ACLs, rates of quotas.",
    ),
)
