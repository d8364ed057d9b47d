"""Whose address stands in an answer: that of a node of the upstream cluster becomes that of its listener here.

What an answer tells besides is kept: where each node is, and the names of topic ids, which faults and the journal need.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any, Final

from broker.proxy.kinds import SASL_AUTHENTICATE, SASL_HANDSHAKE, readable
from protocol.api import ApiKey, api_label

if TYPE_CHECKING:
    from collections.abc import Callable

    from broker.cluster.nodes import Asker, Nodes

log: Final = logging.getLogger("momus.proxy")

MOST_NAMES: Final = 200_000  # of topics
_ENDPOINTS: Final = (ApiKey.PRODUCE, ApiKey.FETCH, ApiKey.SHARE_FETCH, ApiKey.SHARE_ACKNOWLEDGE)


class TopicName:
    """What is known of a topic; it stands in the place of the broker's own topics for those who look for names."""

    __slots__ = ("name",)

    def __init__(self, name: str) -> None:
        self.name = name


class Addresses:
    """The nodes of the upstream cluster, and what becomes of their addresses.

    nodes   the proxy's own listeners by node.
    meet    (node id, host, port): a node is, or has moved, there; afterwards it is among `nodes`. It may not wait.
    """

    def __init__(self, nodes: Nodes, meet: Callable[[int, str, int], None]) -> None:
        self.nodes = nodes
        self.topics_by_id: dict[bytes, TopicName] = {}
        self.cluster_id = ""
        self.lacks_names = False  # a topic was named by an id that no answer has told
        self.sasl_is_here = False
        self.created: Any = None  # is told of each answer to CreateTopics, if it is set
        self._places: dict[int, tuple[str, int]] = {}
        self._meet = meet
        self._told: set[str] = set()
        self.readable = readable()

    def place_of(self, node_id: int) -> tuple[str, int] | None:
        """Where a node of the upstream cluster is; None: it is not known."""
        return self._places.get(node_id)

    def follow(self, node_id: int, host: str, port: int) -> None:
        """A node is there."""
        if node_id >= 0 and host and self._places.get(node_id) != (host, port):
            self._places[node_id] = host, port
            self._meet(node_id, host, port)

    def forget(self, node_id: int) -> None:
        """A node is no longer in the cluster."""
        self._places.pop(node_id, None)

    def rewrite(self, api_key: int, response: Any, asker: Asker) -> bool:
        """Put the proxy's addresses into a response, for a client of `asker`. Returns whether anything has changed."""
        if api_key == ApiKey.METADATA:
            self.learn(response)
            return self._of_nodes(response.brokers, asker)
        if api_key == ApiKey.DESCRIBE_CLUSTER:
            return response.endpoint_type == 1 and self._of_nodes(response.brokers, asker, "broker_id")
        if api_key == ApiKey.FIND_COORDINATOR:
            return self._of_nodes(response.coordinators or [response], asker)
        if api_key in _ENDPOINTS:
            return self._of_nodes(response.node_endpoints, asker)
        if api_key == ApiKey.CREATE_TOPICS:
            self.created.answered(response)
            return False
        if api_key == ApiKey.DESCRIBE_QUORUM:
            return self._of_quorum(response, asker)
        return self._clip(response)

    def name_of(self, topic_id: bytes) -> str:
        """The name of a topic; "": it is not known yet."""
        topic = self.topics_by_id.get(topic_id)
        self.lacks_names |= topic is None and topic_id != bytes(16)
        return "" if topic is None else topic.name

    def learn(self, response: Any) -> None:
        """Keep what a Metadata response tells of topics and of the cluster."""
        self.cluster_id = response.cluster_id or self.cluster_id
        for topic in response.topics:
            if topic.name and topic.topic_id != bytes(16) and topic.topic_id not in self.topics_by_id:
                if len(self.topics_by_id) >= MOST_NAMES:
                    self.topics_by_id.clear()
                self.topics_by_id[topic.topic_id] = TopicName(topic.name)

    def _of_nodes(self, rows: list[Any], asker: Asker, id_field: str = "node_id") -> bool:
        is_changed = False
        for row in rows:
            node_id: int = getattr(row, id_field)
            if node_id < 0 or not row.host:
                continue
            self.follow(node_id, row.host, row.port)
            host, port = self.nodes.endpoint(node_id, asker)
            if port >= 0:
                row.host, row.port = host, port
                is_changed = True
        return is_changed

    def _of_quorum(self, response: Any, asker: Asker) -> bool:
        """A controller that is no broker keeps its address: it has no listener here, and clients need none."""
        is_changed = False
        for row in response.nodes:
            host, port = self.nodes.endpoint(row.node_id, asker)
            if port >= 0:
                for listener in row.listeners:
                    listener.host, listener.port = host, port
                    is_changed = True
        return is_changed

    # -- versions

    def _clip(self, response: Any) -> bool:
        """Take out of an ApiVersions response what the proxy could not read, though it would have to."""
        is_changed = False
        rows = []
        for row in response.api_keys:
            first, last = self.readable.get(row.api_key, (0, 1 << 15))
            if row.api_key == SASL_HANDSHAKE and not self.sasl_is_here:
                first = 1  # what follows version 0 has no heads
            if first > row.min_version or last < row.max_version:
                self._tell(row, max(first, row.min_version), min(last, row.max_version))
                row.min_version, row.max_version = max(first, row.min_version), min(last, row.max_version)
                is_changed = True
            if row.min_version <= row.max_version:
                rows.append(row)
        is_changed |= len(rows) < len(response.api_keys)
        response.api_keys = rows
        return self._with_sasl(response) or is_changed

    def _with_sasl(self, response: Any) -> bool:
        """Where clients authenticate here, the versions of these requests are the proxy's own."""
        if not self.sasl_is_here:
            return False
        from protocol.messages.cluster import ApiVersion  # 0 ms: the response is one of that file

        own = (SASL_HANDSHAKE, SASL_AUTHENTICATE)
        kept = [row for row in response.api_keys if row.api_key not in own]
        kept += [ApiVersion(api_key=SASL_HANDSHAKE, min_version=0, max_version=1)]
        kept += [ApiVersion(api_key=SASL_AUTHENTICATE, min_version=0, max_version=2)]
        response.api_keys = kept
        return True

    def _tell(self, row: Any, first: int, last: int) -> None:
        """Log once what clients are not offered."""
        text = (
            f"{api_label(row.api_key)} {row.min_version} to {row.max_version} of the cluster: clients are offered"
            f" {first} to {last}, which the proxy can read"
            if first <= last
            else f"{api_label(row.api_key)} is left out"
        )
        if text not in self._told:
            self._told.add(text)
            if row.api_key != SASL_HANDSHAKE:
                log.warning("%s", text)
