"""Routes of groups as the page shows them: a window on all, one with members and offsets, history, and seek."""

from __future__ import annotations

from typing import Final

from broker.shell.control.routes import Optional_, Route
from broker.shell.page.windows import QUERY

COMMIT: Final = {
    "time_ms": int,
    "topic": str,
    "partition": int,
    "offset": int,
    "member": str,
    "instance": str,
    "epoch": int,
    "client": str,
    "verdict": str,
    "why": str,
    "fault": str,
}
OWNER: Final = {"partition": str, "member": str, "client": str, "epoch": int, "since_ms": int, "until_ms": int}
MOVE: Final = {"topic": str, "partition": int, "before": int, "after": int, "remark": str}

ROUTES: Final = (
    Route(
        "GET",
        "/groups",
        "broker.shell.page.groups:list_groups",
        "Groups of all types by name, with their lag: a window on those that pass the filter.",
        query=QUERY,
    ),
    Route(
        "GET",
        "/lagging",
        "broker.shell.page.groups:show_lagging",
        "The groups with the largest lag, the largest first.",
        query={"limit": "so many at most; 10"},
    ),
    Route(
        "GET",
        "/groups/{group}/details",
        "broker.shell.page.groups:show_group",
        "A group: epochs, members, who has which partition since which epoch and who shall have it, offsets and lag.",
    ),
    Route(
        "GET",
        "/groups/{group}/history",
        "broker.shell.page.history:show_history",
        "Commits of a group, newest first: those accepted from the log, those refused, and why, from the journal.",
        query={"limit": "so many at most; 100"},
    ),
    Route(
        "GET",
        "/groups/{group}/owners",
        "broker.shell.page.past.owners:show_owners",
        "Who had which partition of a group, from when to when, newest first, as far back as the log of the group goes;"
        ' "until_ms" is -1 where it has it now, "epoch" that of its assignment, or the generation of a classic group.',
        query={"limit": "so many at most; 200"},
    ),
    Route(
        "POST",
        "/groups/{group}/seek",
        "broker.shell.page.seek:seek",
        'Move the offsets of a group without members "to" earliest, latest, offset, shift or time (the last three with'
        ' "number"), of all that it has committed or of one "topic"; "dry_run" only tells where they would go.',
        body={
            "to": str,
            "number": Optional_(int),
            "topic": Optional_(str),
            "partitions": Optional_([int]),
            "dry_run": Optional_(bool),
        },
        example={"to": "earliest", "dry_run": True},
    ),
    Route(
        "GET",
        "/groups/{group}/lag",
        "broker.shell.page.past.lag:show_lag",
        "The lag of a group over the last minutes, from its commits and the times of records.",
        query={"minutes": "so far back; 10", "points": "so many, evenly; 60"},
    ),
)
