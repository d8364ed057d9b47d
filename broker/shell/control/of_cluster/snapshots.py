"""Routes of a cluster's snapshots: take, list, remove; go back to one, or go on from one in another cluster."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, TypedDict

from broker.shell.cluster_plan import SnapshotRow
from broker.shell.control.of_cluster.journal import COUNTED, end_life
from broker.shell.control.of_cluster.lifetime import BegunAnew, begun_anew
from broker.shell.control.routes import Call, Optional_, Route

if TYPE_CHECKING:
    from broker.shell.cluster_server import ClusterServer


class Removed(TypedDict):
    """The name of what was removed."""

    removed: str


async def list_snapshots(cluster: ClusterServer, call: Call) -> list[SnapshotRow]:
    """All snapshots, oldest first."""
    return cluster.snapshots.all()


async def take_snapshot(cluster: ClusterServer, call: Call) -> SnapshotRow:
    """Keep the cluster as it is."""
    return await cluster.take_snapshot(call.body.get("name"))


async def remove_snapshot(cluster: ClusterServer, call: Call) -> Removed:
    """Remove a snapshot; what was made from it stays."""
    name = call.words["snapshot"]
    await cluster.remove_snapshot(name)
    return {"removed": name}


async def restore(cluster: ClusterServer, call: Call) -> BegunAnew:
    """Go back to a snapshot: connections are cut, and the cluster goes on from there on the same ports."""
    counted = await end_life(cluster, lambda: cluster.restore(call.body["snapshot"]), call)
    return begun_anew(cluster, counted)


ROUTES: Final = (
    Route("GET", "/snapshots", list_snapshots, "The snapshots of the cluster, oldest first."),
    Route(
        "POST",
        "/snapshots",
        take_snapshot,
        "Keep the cluster as it is, under a name; without one it gets one. No client notices.",
        body={"name": Optional_(str)},
        example={"name": "full"},
        errors={409: "there is one of this name"},
    ),
    Route(
        "DELETE",
        "/snapshots/{snapshot}",
        remove_snapshot,
        "Remove a snapshot; clusters made from it stay.",
    ),
    Route(
        "POST",
        "/restore",
        restore,
        "Drop all data and connections, and go on from a snapshot, on the same ports.",
        body={"snapshot": str, "count": COUNTED},
        example={"snapshot": "full"},
        errors={404: "no such snapshot"},
    ),
)
