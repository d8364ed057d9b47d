"""Routes of a cluster's virtual brokers: list, stop, start, lag, release, pause, resume."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING, Final, TypedDict

from broker.config.addresses import host_port
from broker.shell.control.routes import Call, RefusedError, Route
from broker.shell.sockets.unread import until_read

if TYPE_CHECKING:
    from broker.cluster.listeners import Node
    from broker.shell.cluster_server import ClusterServer

    Change = Callable[[Node, Callable[[bool], None]], None]


class BrokerRow(TypedDict):
    """A virtual broker: whether it runs, lags after others or is paused, and where each listener is."""

    id: int
    up: bool
    lags: bool
    paused: bool
    listeners: dict[str, str]


async def list_brokers(cluster: ClusterServer, call: Call) -> list[BrokerRow]:
    """All virtual brokers, running or not."""
    return [_describe(cluster, node) for node in cluster.virtual_nodes.all]


async def stop_broker(cluster: ClusterServer, call: Call) -> BrokerRow:
    """Close its listeners and connections; the others lead its partitions. Errors: RefusedError."""
    async with cluster.change():
        node = _find(cluster, call.words["id"])
        if cluster.virtual_nodes.is_up(node) or cluster.virtual_nodes.is_paused(node):
            if cluster.broker.nodes.up == [node]:
                raise RefusedError(409, f"broker {node.node_id} is the last running one")
            cluster.broker.clients.asleep.discard(node.node_id)
            await _change_and_listen_while_up(cluster, cluster.virtual_nodes.stop, node)
            _tell(cluster, node, "stopped")
        return _describe(cluster, node)


async def start_broker(cluster: ClusterServer, call: Call) -> BrokerRow:
    """Listen again, and lead its partitions again. Errors: RefusedError, OSError."""
    async with cluster.change():
        node = _find(cluster, call.words["id"])
        _check_goes_on(cluster, node)
        if not cluster.virtual_nodes.is_up(node):
            await cluster.listen(node)
            await _change_and_listen_while_up(cluster, cluster.virtual_nodes.start, node)
            _tell(cluster, node, "started")
        return _describe(cluster, node)


async def lag_follower(cluster: ClusterServer, call: Call) -> BrokerRow:
    """Let it fetch nothing of what others lead. Errors: RefusedError."""
    async with cluster.change():
        node = _find(cluster, call.words["id"])
        _check_goes_on(cluster, node)
        if not cluster.virtual_nodes.is_up(node):
            raise RefusedError(409, f"broker {node.node_id} is stopped: it cannot lag")
        if len(cluster.virtual_nodes.all) == 1:
            raise RefusedError(409, f"broker {node.node_id} is the only one: it follows no other")
        await _change(cluster.virtual_nodes.lag, node)
        _tell(cluster, node, "told to lag")
        return _describe(cluster, node)


async def release_follower(cluster: ClusterServer, call: Call) -> BrokerRow:
    """Let it catch up. Errors: RefusedError."""
    async with cluster.change():
        node = _find(cluster, call.words["id"])
        _check_goes_on(cluster, node)
        if cluster.virtual_nodes.lags(node):
            await _change(cluster.virtual_nodes.release, node)
            _tell(cluster, node, "told to catch up")
        return _describe(cluster, node)


async def pause_broker(cluster: ClusterServer, call: Call) -> BrokerRow:
    """Let it read and answer nothing, with its connections open. Errors: RefusedError."""
    async with cluster.change():
        node, nodes, clients = _find(cluster, call.words["id"]), cluster.virtual_nodes, cluster.broker.clients
        if not nodes.is_paused(node):
            if not nodes.is_up(node):
                raise RefusedError(409, f"broker {node.node_id} is stopped: it cannot be paused")
            clients.put_to_sleep(node.node_id)
            try:
                await _change(nodes.pause, node)
            except BaseException:
                if not nodes.is_paused(node):
                    clients.wake(node.node_id)
                raise
            _tell(cluster, node, "paused")
        return _describe(cluster, node)


async def resume_broker(cluster: ClusterServer, call: Call) -> BrokerRow:
    """Let it go on. What clients have sent is answered first, as by one that leads nothing if its session has ended.

    Errors: RefusedError.
    """
    async with cluster.change():
        node, nodes, clients = _find(cluster, call.words["id"]), cluster.virtual_nodes, cluster.broker.clients
        if nodes.is_paused(node):
            clients.wake(node.node_id)
            if not nodes.is_up(node):
                await until_read(each for each in clients.open if each.node_id == node.node_id)
            await _change(nodes.resume, node)
            _tell(cluster, node, "resumed")
        return _describe(cluster, node)


def _tell(cluster: ClusterServer, node: Node, done: str) -> None:
    cluster.happenings.tell(cluster.clock.now_ms(), f"broker {node.node_id} was {done}")


def _check_goes_on(cluster: ClusterServer, node: Node) -> None:
    if cluster.virtual_nodes.is_paused(node):
        raise RefusedError(409, f"broker {node.node_id} is paused: resume it")


def _describe(cluster: ClusterServer, node: Node) -> BrokerRow:
    listeners = {name: host_port(listener.host, listener.port) for name, listener in node.listeners.items()}
    nodes = cluster.virtual_nodes
    is_paused = nodes.is_paused(node)
    lags = nodes.lags(node) and not is_paused
    return {"id": node.node_id, "up": nodes.is_up(node), "lags": lags, "paused": is_paused, "listeners": listeners}


async def _change_and_listen_while_up(cluster: ClusterServer, change: Change, node: Node) -> None:
    """Stop or start a node. It may be stopped or up although that could not be written: it listens while it is up."""
    try:
        await _change(change, node)
    finally:
        if not cluster.virtual_nodes.is_up(node):
            cluster.close_node(node)


async def _change(change: Change, node: Node) -> None:
    """Stop or start a node, and wait until that is durable."""
    written: asyncio.Future[bool] = asyncio.get_running_loop().create_future()
    change(node, lambda durable: None if written.done() else written.set_result(durable))
    if not await written:
        raise RefusedError(500, "the metadata log could not be written")


def _find(cluster: ClusterServer, word: str) -> Node:
    nodes = cluster.virtual_nodes
    node = nodes.find(int(word)) if word.isascii() and word.isdigit() and len(word) < 10 else None
    if node is None:
        known = ", ".join(str(node.node_id) for node in nodes.all)
        raise RefusedError(404, f"no such broker: {word:.20}; there are {known}")
    return node


UNWRITTEN: Final = {500: "the metadata log could not be written"}

ROUTES: Final = (
    Route("GET", "/brokers", list_brokers, "The virtual brokers and their addresses."),
    Route(
        "POST",
        "/brokers/{id}/stop",
        stop_broker,
        "Close a broker's listeners and connections; the others lead its partitions.",
        errors={409: "it is the last that runs", **UNWRITTEN},
    ),
    Route(
        "POST",
        "/brokers/{id}/start",
        start_broker,
        "Listen again, on the same ports, and lead its partitions again.",
        errors={409: "it is paused", **UNWRITTEN},
    ),
    Route(
        "POST",
        "/brokers/{id}/lag",
        lag_follower,
        "Let a broker fetch nothing of what others lead: the high watermark stands still while it is in sync.",
        errors={409: "it is stopped, paused, or the only one", **UNWRITTEN},
    ),
    Route(
        "POST",
        "/brokers/{id}/release",
        release_follower,
        "Let a broker that lags catch up; it is in sync again.",
        errors={409: "it is paused", **UNWRITTEN},
    ),
    Route(
        "POST",
        "/brokers/{id}/pause",
        pause_broker,
        "Let a broker read and answer nothing, with its connections open; broker.session.timeout.ms later by the"
        " cluster's clock it is no longer up, and the others lead its partitions.",
        errors={409: "it is stopped", **UNWRITTEN},
    ),
    Route(
        "POST",
        "/brokers/{id}/resume",
        resume_broker,
        "Let a broker that is paused go on; it answers what it was sent, and leads its partitions again.",
    ),
)
