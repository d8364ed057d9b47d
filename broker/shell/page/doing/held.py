"""What a fault holds now, by the journal: requests that it has acted on and that have no reply yet."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, TypedDict

from broker.shell.control.routes import Call, RefusedError
from broker.shell.page.tail import TailRow, newest, row_of, topic_name

if TYPE_CHECKING:
    from broker.shell.cluster_server import ClusterServer

MOST_PIECES: Final = 6000  # of the newest in the journal
MOST: Final = 100


class Held(TypedDict):
    """What a fault holds, and the requests that the journal knows of it, oldest first."""

    fault: str
    held: int
    has_journal: bool
    entries: list[TailRow]


async def list_held(cluster: ClusterServer, call: Call) -> Held:
    """The requests, oldest first; none where no journal is kept. Errors: RefusedError: no such fault."""
    fault = cluster.broker.faults.find(call.words["name"])
    if fault is None:
        raise RefusedError(404, f"no such fault: {call.words['name']:.100}")
    ring = cluster.broker.clients.journal
    answer: Held = {"fault": fault.name, "held": fault.held, "has_journal": ring is not None, "entries": []}
    if ring is None or not fault.held:
        return answer
    name_of = topic_name(cluster)
    for entry in await newest(cluster, ring, MOST_PIECES):
        if entry.latency_us < 0 and ring.notes(entry.peer, entry.correlation_id).get("fault") == fault.name:
            answer["entries"].append(row_of(entry, ring, name_of))
    answer["entries"] = answer["entries"][-MOST:]
    return answer
