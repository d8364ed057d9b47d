"""Routes of a cluster as a whole: show it, reset it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from broker.shell.control.of_cluster.journal import COUNT, COUNTED, end_life
from broker.shell.control.routes import Call, Optional_, Route
from broker.shell.setting_warnings import unknown_settings

if TYPE_CHECKING:
    from broker.shell.cluster_server import ClusterServer


async def show_cluster(cluster: ClusterServer, call: Call) -> dict[str, Any]:
    """Where a cluster listens, and how it was made."""
    return describe(cluster)


async def reset_cluster(cluster: ClusterServer, call: Call) -> dict[str, Any]:
    """Drop all data and connections: waiting requests are cut, and the cluster begins again on the same ports."""
    counted = await end_life(cluster, cluster.reset, call)
    return {**describe(cluster), **counted}


def describe(cluster: ClusterServer) -> dict[str, Any]:
    """A cluster as CLUSTER says."""
    plan = cluster.plan
    described = {
        "name": cluster.name,
        "bootstrap_servers": ",".join(cluster.addresses),
        "cluster_id": cluster.broker.cluster_id,
        "brokers": plan.brokers,
        "flush": plan.flush,
        "connections": len(cluster.broker.clients.open),
        "waits": cluster.waits,
        "now_ms": cluster.clock.now_ms(),
        "warnings": unknown_settings(cluster.config),
    }
    if plan.run:
        described["run"] = plan.run
    if plan.seed is not None:
        described["seed"] = plan.seed
    return described


CLUSTER: Final = {
    "name": str,
    "bootstrap_servers": str,
    "cluster_id": str,
    "brokers": int,
    "flush": str,
    "connections": int,
    "waits": int,
    "now_ms": int,
    "seed": Optional_(int),
    "run": Optional_(str),
    "warnings": [str],  # settings without effect whose names are probably wrong
}
BEGUN_ANEW: Final = {**CLUSTER, "counted": Optional_([COUNT])}
ROUTES: Final = (
    Route("GET", "", show_cluster, "Where the cluster listens, and how it was made.", answer=CLUSTER),
    Route(
        "POST",
        "/reset",
        reset_cluster,
        "Drop all data and connections, and begin again on the same ports, with the same settings and seed.",
        body={"count": COUNTED},
        answer=BEGUN_ANEW,
        example={},
    ),
)
