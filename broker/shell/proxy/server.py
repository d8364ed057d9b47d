"""The server of a proxy: a listener for each node of the upstream cluster, and a connection there for each client.

Nodes that come and go are followed: an answer that tells of a new node opens its listener before it reaches the
client, and every few seconds, or when a node is lost, the cluster is asked for those it has.
"""

from __future__ import annotations

import asyncio
import logging
import socket
from copy import copy
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

from broker.asks.topics import metadata
from broker.cluster.listeners import Listener, Node
from broker.config.addresses import host_port
from broker.proxy.addresses import Addresses
from broker.proxy.connection import ProxyConnection
from broker.proxy.link import Link
from broker.shell.cluster_server import ClusterServer
from broker.shell.proxy.context import ProxyBroker
from broker.shell.proxy.refused import refusal
from broker.shell.sockets.receivers import BACKLOG
from protocol.errors import MalformedError

if TYPE_CHECKING:
    from broker.cluster.nodes import Nodes
    from broker.shell.cluster_server import Prepare
    from broker.shell.proxy.upstream import Address, Upstream

log = logging.getLogger("momus.proxy")

LOOKED_UP: Final = {
    ("GET", "/overview"): "views:show_overview",
    ("GET", "/topics"): "views:list_topics",
    ("GET", "/topics/{topic}"): "views:show_topic",
    ("GET", "/topics/{topic}/messages"): "views:show_messages",
    ("GET", "/topics/{topic}/tail"): "views:show_tail",
    ("GET", "/groups"): "views:list_groups",
    ("GET", "/lagging"): "views:show_lagging",
    ("GET", "/groups/{group}/details"): "views:show_group",
    ("GET", "/transactions"): "views:list_transactions",
    ("GET", "/transactions/{transactional_id}"): "views:show_transaction",
}
FOLLOW_S: Final = 2.0  # how often the cluster is asked for its nodes
SOON_S: Final = 0.2  # after one was lost
MOST_PORT: Final = 65535


class ProxyServer(ClusterServer):
    """One proxy. `upstream`: the upstream cluster, whose nodes are known."""

    has_inside = False
    make_broker = ProxyBroker

    def __init__(self, upstream: Upstream, *words: Any, **named: Any) -> None:
        self.upstream = upstream
        super().__init__(*words, **named)  # its life begins with these nodes

    def _begin_life(self, origin: Any = None) -> None:
        super()._begin_life(origin)
        broker: Any = self.broker
        self._has_ports = all(each.port for node in self.nodes for each in node.listeners.values())
        self._known = {node.node_id: node for node in self.nodes}
        self._links: set[asyncio.Task[None]] = set()
        self._follower: asyncio.Task[None] | None = None
        self._look_soon = asyncio.Event()
        self.book = Addresses(self._nodes, self._met)
        self.book.sasl_is_here = any(each.is_sasl for node in self.nodes for each in node.listeners.values())
        for node_id, place in self.upstream.places.items():
            self.book.follow(node_id, *place)
        broker.router.addresses = self.book
        broker.router.clients = broker.clients
        broker.upstream = self.upstream
        broker.cluster_id = self.upstream.cluster_id
        self.book.created = self.upstream.created

    @property
    def _nodes(self) -> Nodes:
        return self.broker.nodes

    def make_connection(self, service: Any, node_id: int, listener: Listener) -> ProxyConnection:
        """What serves a new client of a node."""
        router: Any = self.broker.router
        return ProxyConnection(service, node_id, listener, router, self._open_link)

    def instead(self, method: str, path: str) -> Any:
        """What answers a call from the upstream cluster; None: what answers it elsewhere."""
        if (method, path) not in LOOKED_UP:
            return None
        file, _, name = LOOKED_UP[method, path].partition(":")
        return getattr(import_module(f"broker.shell.proxy.{file}"), name)  # 2 ms: most proxies have no page open

    def refuses(self, method: str, path: str) -> str | None:
        """Why a call of the control plane is not for a proxy; None: it is."""
        return refusal(method, path)

    async def start(self, prepare: Prepare | None = None) -> None:
        """Listen for all nodes that are known, and follow them."""
        await super().start(prepare)
        self._follower = asyncio.ensure_future(self._follow())

    def stop(self) -> None:
        """Stop listening, and close all connections."""
        if self._follower is not None:
            self._follower.cancel()
        for task in self._links:
            task.cancel()
        super().stop()

    # -- connections to nodes

    def _open_link(self, connection: ProxyConnection) -> None:
        task = asyncio.ensure_future(self._reach(connection))
        self._links.add(task)
        task.add_done_callback(self._links.discard)

    async def _reach(self, connection: ProxyConnection) -> None:
        place = self.book.place_of(connection.node_id)
        try:
            if place is None:
                raise ConnectionRefusedError("it is not in the cluster")
            link = await self.upstream.connect(place, lambda: Link(connection), is_clients=True)
        except (OSError, TimeoutError) as error:
            self._look_soon.set()
            connection.refuse(f"node {connection.node_id} is not reached: {str(error) or type(error).__name__}")
            return
        if connection.closed:
            link.close()
        else:
            connection.linked(link)

    # -- nodes

    def _met(self, node_id: int, host: str, port: int) -> None:
        """A node is at this place: it has a listener from now on."""
        self.upstream.places[node_id] = host, port
        if node_id in self._known and self._known[node_id] in self._nodes.up:
            return
        node = self._known.get(node_id)
        if node is None:
            node = self._known[node_id] = self._new_node(node_id)
            self.nodes.append(node)
        self._nodes.up.append(node)
        log.warning("node %d of the cluster, %s, is at %s", node_id, host_port(host, port), self._shown(node))
        self._servers[node] = []
        for listener in node.listeners.values():
            self._listen_now(node, listener)

    def _shown(self, node: Node) -> str:
        return host_port(node.main.host, node.main.port)

    def _new_node(self, node_id: int) -> Node:
        """One whose listeners are as those of the others, on the ports that follow theirs, or free ones."""
        last = list(self._known.values())[-1]
        made = []
        for each in last.listeners.values():
            listener = copy(each)
            listener.port = 0
            if self._has_ports:
                ports = [node.listeners[each.name].port for node in self._known.values()]
                listener.port = max(ports) + 1 if max(ports) < MOST_PORT else 0
            if listener.advertised_port:
                listener.advertised_port = None
            made.append(listener)
        return Node(node_id, made)

    def _listen_now(self, node: Node, listener: Listener) -> None:
        """Bind at once, so that the port can be told, and accept in a moment; on a free port if this one is taken."""
        try:
            bound = _bound(listener.host, listener.port)
        except OSError as error:
            log.warning("%s: %s; a free port is taken", host_port(listener.host, listener.port), error.strerror)
            bound = _bound(listener.host, 0)
        listener.port = bound.getsockname()[1]
        receiver = self._receivers.receiver(lambda: self.broker, node, listener)

        async def accept() -> None:
            server = await self.loop.create_server(receiver, sock=bound, backlog=BACKLOG)
            self._servers.setdefault(node, []).append(server)

        task = asyncio.ensure_future(accept())
        self._links.add(task)
        task.add_done_callback(self._links.discard)

    async def _follow(self) -> None:
        """Ask for the nodes, again and again."""
        while True:
            try:
                async with asyncio.timeout(FOLLOW_S):
                    await self._look_soon.wait()
                await asyncio.sleep(SOON_S)
            except TimeoutError:
                pass
            self._look_soon.clear()
            try:
                found = await self.upstream.nodes()
            except (OSError, TimeoutError, MalformedError) as error:
                log.info("the cluster does not answer: %s", error)
                continue
            self._take(found)
            if self.book.lacks_names:
                self.book.lacks_names = False
                await self._learn_names()

    async def _learn_names(self) -> None:
        """Ask for the names of all topics: a client knows one that this proxy has not seen."""
        try:
            self.book.learn(await self.upstream.answer(metadata(None)))
        except (OSError, TimeoutError, MalformedError) as error:
            log.info("the names of topics are not known: %s", error)

    def _take(self, found: dict[int, Address]) -> None:
        """These are the nodes of the cluster now."""
        for node_id, place in found.items():
            self.book.follow(node_id, *place)
        for node in list(self._nodes.up):
            if node.node_id not in found and len(self._nodes.up) > 1:
                log.warning("node %d has left the cluster", node.node_id)
                self._nodes.up.remove(node)
                self.book.forget(node.node_id)
                self.close_node(node)


def _bound(host: str, port: int) -> socket.socket:
    """A socket that listens. Errors: OSError."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    made = socket.socket(family, socket.SOCK_STREAM)
    try:
        made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        made.bind((host, port))
        made.listen(BACKLOG)
        made.setblocking(False)
    except BaseException:
        made.close()
        raise
    return made
