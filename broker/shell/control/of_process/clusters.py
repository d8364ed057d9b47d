"""Routes of the process's clusters: list, make, remove."""

from __future__ import annotations

from typing import Final, NotRequired, TypedDict

from broker.cluster.data.identity import DirectoryError
from broker.config.settings import ConfigError
from broker.shell.cluster_server import DEFAULT_CLUSTER
from broker.shell.control.of_cluster.clock import LAST_MS
from broker.shell.control.of_cluster.journal import check_journal_bytes
from broker.shell.control.of_cluster.lifetime import ClusterRow, describe
from broker.shell.control.routes import (
    CLUSTER_PREFIX,
    DEFAULT_PREFIX,
    Call,
    Optional_,
    Process,
    RefusedError,
    Route,
    find_cluster,
)

MOST_BROKERS: Final = 100
FLUSHES: Final = ("memory", "os", "fsync")


class RemovedCluster(TypedDict):
    """The name of the cluster that was removed, or the names of its faults that keep it."""

    removed: NotRequired[str]
    unmet: NotRequired[list[str]]


class HungUp(TypedDict):
    """Of how many clusters the clients were cut off."""

    clusters: int


async def list_clusters(process: Process, call: Call) -> list[ClusterRow]:
    """All clusters of the process."""
    return [describe(cluster) for cluster in process.clusters.values()]


async def create_cluster(process: Process, call: Call) -> ClusterRow:
    """Make and start a cluster. Errors: RefusedError: there is none."""
    body = call.body
    brokers, flush, at_ms = body.get("brokers", 1), body.get("flush", "memory"), body.get("clock_ms")
    if not 1 <= brokers <= MOST_BROKERS:
        raise RefusedError(400, f'"brokers" takes 1 to {MOST_BROKERS}')
    if flush not in FLUSHES:
        raise RefusedError(400, f'"flush" takes one of {", ".join(FLUSHES)}')
    if at_ms is not None and not 0 <= at_ms <= LAST_MS:
        raise RefusedError(400, f'"clock_ms" takes Unix milliseconds, 0 to {LAST_MS}')
    check_journal_bytes(body.get("journal_bytes", 0))
    try:
        cluster = await process.create(
            body.get("name"),
            body.get("config", {}),
            listen=body.get("listen", "127.0.0.1:0"),
            brokers=brokers,
            flush=flush,
            seed=body.get("seed"),
            at_ms=at_ms,
            journal_bytes=body.get("journal_bytes"),
            security=body.get("security"),
            users=body.get("users"),
        )
    except ConfigError as error:
        raise RefusedError(400, str(error)) from None
    except DirectoryError as error:
        raise RefusedError(409, str(error)) from None
    return describe(cluster)


async def fork_cluster(process: Process, call: Call) -> ClusterRow:
    """Make another cluster that goes on from one, or from a snapshot of it. Errors: RefusedError: there is none."""
    name, body = call.words.get("cluster", DEFAULT_CLUSTER), call.body
    source = find_cluster(process, name)
    try:
        cluster = await process.fork(source, body.get("name"), snapshot=body.get("snapshot"), listen=body.get("listen"))
    except ConfigError as error:
        raise RefusedError(400, str(error)) from None
    return describe(cluster)


async def remove_cluster(process: Process, call: Call) -> RemovedCluster:
    """Remove a cluster and its data, or leave it if a fault is unmet that was asked for. Errors: RefusedError."""
    name, met = call.words["cluster"], call.query.get("met", "false")
    if met not in ("true", "false"):
        raise RefusedError(400, f'"met" is true or false, not {met:.20}')
    if name not in process.clusters:
        raise RefusedError(404, f"no such cluster: {name:.100}")
    broker = process.clusters[name].broker
    if met == "true" and broker.has_faults:  # which are made when first asked for
        unmet = [fault.name for fault in broker.faults.all() if fault.is_unmet]
        if unmet:
            return {"unmet": unmet}
    await process.remove(name)
    return {"removed": name}


async def hang_up(process: Process, call: Call) -> HungUp:
    """Cut off all clients, and take no more: the process is about to end, and is asked what they have sent."""
    for cluster in list(process.clusters.values()):
        async with cluster.change():
            cluster.stop()
    return {"clusters": len(process.clusters)}


NEW: Final = {
    "name": Optional_(str),
    "brokers": Optional_(int),
    "config": Optional_({"*": str}),
    "flush": Optional_(str),
    "listen": Optional_(str),
    "seed": Optional_(int),
    "clock_ms": Optional_(int),
    "journal_bytes": Optional_(int),
    "security": Optional_(str),
    "users": Optional_({"*": str}),
}

SIDE: Final = {"cluster": Optional_(str), "snapshot": Optional_(str)}

ROUTES: Final = (
    Route("GET", "/_admin/clusters", list_clusters, "The clusters of this process."),
    Route(
        "POST",
        "/_admin/clusters",
        create_cluster,
        f'Make a cluster; without a name it gets one. In memory unless "flush" is os or fsync. "clock_ms" is the moment'
        f' at which its clock stands. Settings are those of "{DEFAULT_CLUSTER}" with "config" on top.',
        body=NEW,
        example={"brokers": 1, "flush": "memory", "config": {"num.partitions": "4"}, "seed": 7},
        errors={409: "there is one of this name, or its folder or port is taken"},
    ),
    *(
        Route(
            "POST",
            f"{prefix}/fork",
            fork_cluster,
            'Make another cluster that goes on from this one, or from its "snapshot": its data, settings and clock.',
            body={"name": Optional_(str), "snapshot": Optional_(str), "listen": Optional_(str)},
            example={},
            errors={404: "no such cluster or snapshot", 409: "there is one of this name, or its port is taken"},
            name="fork_cluster" if prefix == CLUSTER_PREFIX else "fork_cluster_of_default",
        )
        for prefix in (CLUSTER_PREFIX, DEFAULT_PREFIX)
    ),
    Route(
        "DELETE",
        CLUSTER_PREFIX,
        remove_cluster,
        f'Remove a cluster and its data; "{DEFAULT_CLUSTER}" stays. Tells which faults are "unmet" where one keeps it.',
        query={"met": "true: only if each of its faults has acted"},
        errors={409: f'it is "{DEFAULT_CLUSTER}"'},
    ),
    Route(
        "POST",
        "/_admin/diff",
        "difference:diff",
        f'What is different between two sides: a "cluster" ("{DEFAULT_CLUSTER}") as it is now, or a "snapshot" of it.'
        ' Rows have a value where a side has one. "records" are those after the last that both have in the same place.',
        body={"first": SIDE, "second": SIDE},
        example={"first": {}, "second": {}},
        errors={404: "no such cluster or snapshot"},
    ),
    Route(
        "POST",
        "/_admin/hang-up",
        hang_up,
        "Cut off all clients of all clusters for good, so that what they have sent can be counted before the end.",
    ),
)
