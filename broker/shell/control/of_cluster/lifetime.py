"""Routes of a cluster as a whole: show it, reset it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NotRequired, TypedDict

from broker.shell.control.of_cluster.journal import COUNTED, Counted, end_life
from broker.shell.control.routes import Call, Route
from broker.shell.setting_warnings import unknown_settings

if TYPE_CHECKING:
    from broker.shell.cluster_server import ClusterServer


class ClusterRow(TypedDict):
    """Where a cluster listens, and how it was made. `warnings`: settings without effect, probably wrong names."""

    name: str
    bootstrap_servers: str
    cluster_id: str
    brokers: int
    flush: str
    connections: int
    waits: int
    now_ms: int
    seed: NotRequired[int]
    run: NotRequired[str]
    warnings: list[str]


class BegunAnew(ClusterRow):
    """A cluster in its next life; `counted`: requests of the life that has ended, if they were asked for."""

    counted: NotRequired[list[Counted]]


async def show_cluster(cluster: ClusterServer, call: Call) -> ClusterRow:
    """Where a cluster listens, and how it was made."""
    return describe(cluster)


async def reset_cluster(cluster: ClusterServer, call: Call) -> BegunAnew:
    """Drop all data and connections: waiting requests are cut, and the cluster begins again on the same ports."""
    counted = await end_life(cluster, cluster.reset, call)
    return begun_anew(cluster, counted)


def begun_anew(cluster: ClusterServer, counted: list[Counted] | None) -> BegunAnew:
    """A cluster after a reset or a restore; `counted`: as end_life has it."""
    row: BegunAnew = {**describe(cluster), "counted": counted or []}
    if counted is None:
        del row["counted"]
    return row


def describe(cluster: ClusterServer) -> ClusterRow:
    """A cluster as it is now."""
    plan = cluster.plan
    described: ClusterRow = {
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


ROUTES: Final = (
    Route("GET", "", show_cluster, "Where the cluster listens, and how it was made."),
    Route(
        "POST",
        "/reset",
        reset_cluster,
        "Drop all data and connections, and begin again on the same ports, with the same settings and seed.",
        body={"count": COUNTED},
        example={},
    ),
)
