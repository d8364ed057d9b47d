"""Routes of the process: its health, and what it serves."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, TypedDict

from broker.cluster.topic_names import OFFSETS_TOPIC
from broker.coordinator.runtime import LOADING, UNLOADED
from broker.shell.control.routes import Call, Process, RefusedError, Route
from broker.shell.control.version import API, VERSION

if TYPE_CHECKING:
    from broker.shell.cluster_server import ClusterServer


class Status(TypedDict):
    """`ok`, or `ready`."""

    status: str


class Version(TypedDict):
    """The version of what serves, and the number of its routes."""

    version: str
    api: int


async def health(process: Process, call: Call) -> Status:
    """Answered while the process runs."""
    return {"status": "ok"}


async def ready(process: Process, call: Call) -> Status:
    """Answered when all groups are loaded. Errors: RefusedError: they are not."""
    waiting = [shard for cluster in process.clusters.values() for shard in _waiting(cluster)]
    if waiting:
        raise RefusedError(503, f"{len(waiting)} shards are still loading, {waiting[0]} among them")
    return {"status": "ready"}


async def version(process: Process, call: Call) -> Version:
    """What serves. A kit that knows another `api` than this says so."""
    return {"version": VERSION, "api": API}


def _waiting(cluster: ClusterServer) -> list[str]:
    shards, has_log = cluster.broker.groups.shards, cluster.broker.directory.exists
    return [
        f"{OFFSETS_TOPIC}-{index}"
        for index, made in enumerate(shards.made)
        if (made is not None and made.state is LOADING)
        or ((made is None or made.state is UNLOADED) and has_log(OFFSETS_TOPIC, index))
    ]


ROUTES: Final = (
    Route("GET", "/healthz", health, "200 while the process runs."),
    Route(
        "GET",
        "/readyz",
        ready,
        "200 when all groups of all clusters are loaded, 503 before.",
        errors={503: "groups are still loading"},
    ),
    Route(
        "GET",
        "/version",
        version,
        "The version of what serves, and of these routes: another number once a word has gone or means another thing.",
    ),
)
