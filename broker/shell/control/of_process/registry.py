"""Routes of a cluster's schema registry: open it, and where it is. They need the process, which they share."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, TypedDict

from broker.shell.cluster_server import DEFAULT_CLUSTER
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

if TYPE_CHECKING:
    from broker.shell.cluster_server import ClusterServer

ANY_PORT: Final = "127.0.0.1:0"


class Served(TypedDict):
    """Where a registry is served."""

    url: str


class MaybeServed(TypedDict, total=False):
    """Where a registry is served, if it is."""

    url: str


async def open_registry(process: Process, call: Call) -> Served:
    """Serve a cluster's registry, if it is not served yet. Errors: RefusedError, OSError."""
    host, colon, port = call.body.get("listen", ANY_PORT).rpartition(":")
    if not colon or not host or not (port.isascii() and port.isdigit() and int(port) < 65_536):
        raise RefusedError(400, f'"listen" takes HOST:PORT, as {ANY_PORT}')
    cluster = _cluster(process, call)
    if cluster.config.schema_registry_url:
        raise RefusedError(409, f"the cluster asks another registry: {cluster.config.schema_registry_url}")
    return {"url": await process.open_registry(cluster, host.strip("[]"), int(port))}


async def show_registry(process: Process, call: Call) -> MaybeServed:
    """Where a cluster's registry is; nothing, if it is not served. Errors: RefusedError."""
    registry = _cluster(process, call).registry
    return {} if registry is None else {"url": registry.url}


def _cluster(process: Process, call: Call) -> ClusterServer:
    return find_cluster(process, call.words.get("cluster", DEFAULT_CLUSTER))


ROUTES: Final = tuple(
    route
    for prefix in (CLUSTER_PREFIX, DEFAULT_PREFIX)
    for route in (
        Route(
            "GET",
            f"{prefix}/registry",
            show_registry,
            "Where the cluster's schema registry is served.",
            name="show_registry" if prefix == CLUSTER_PREFIX else "show_registry_of_default",
        ),
        Route(
            "POST",
            f"{prefix}/registry",
            open_registry,
            f'Serve a schema registry of the cluster, at "listen" ({ANY_PORT}), if there is none yet.',
            body={"listen": Optional_(str)},
            example={},
            errors={409: "the cluster asks another registry"},
            name="open_registry" if prefix == CLUSTER_PREFIX else "open_registry_of_default",
        ),
    )
)
