"""The virtual brokers that are up, and the address by which a client reaches each."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Protocol

from broker.cluster.followers import Followers

if TYPE_CHECKING:
    from broker.cluster.listeners import Listener, Node


class Asker(Protocol):
    """The connection of a request."""

    @property
    def listener(self) -> Listener:
        """The listener that the client connected to."""

    @property
    def local_host(self) -> str:
        """The broker's address that the client connected to."""


class Nodes:
    """The virtual brokers that are up, the controller first."""

    def __init__(self, nodes: list[Node]) -> None:
        self.up = list(nodes)
        self.followers = Followers()
        # what partitions need so that the nodes that are up lead and follow them: VirtualNodes sets it
        self.records_of_moves: Callable[[], list[bytes]] = list
        self.is_one = len(nodes) == 1  # not: the last one that is up, for a partition may be without a leader then

    def __len__(self) -> int:
        return len(self.up)

    @property
    def ids(self) -> list[int]:
        """Their node ids."""
        return [node.node_id for node in self.up]

    @property
    def controller_id(self) -> int:
        """The node that answers as the controller."""
        return self.up[0].node_id

    def endpoint(self, node_id: int, asker: Asker) -> tuple[str, int]:
        """Host and port of a node for this client, on the listener that it connected to. ("", -1): the node is not
        up."""
        for node in self.up:
            if node.node_id == node_id:
                listener = node.listeners.get(asker.listener.name) or node.main
                host = listener.advertised_host or asker.local_host or listener.host
                return host, listener.advertised_port or listener.port
        return "", -1
