"""Which node of a broker a request goes to: the leader of its partition or the coordinator of its id, or, where a
step asks for it, another one.

With one node there is nothing to choose.
"""

from __future__ import annotations

import time

from differential.brokers import Peer
from differential.links import Link, LinkError, call
from differential.plain import Values

GROUP_APIS = {
    "OffsetCommit": "GroupId",
    "OffsetFetch": "GroupId",
    "OffsetDelete": "GroupId",
    "JoinGroup": "GroupId",
    "SyncGroup": "GroupId",
    "Heartbeat": "GroupId",
    "LeaveGroup": "GroupId",
    "TxnOffsetCommit": "GroupId",
    "ConsumerGroupHeartbeat": "GroupId",
    "StreamsGroupHeartbeat": "GroupId",
    "ShareGroupHeartbeat": "GroupId",
}
GROUP_LISTS = {
    "DescribeGroups": "Groups",
    "DeleteGroups": "GroupsNames",
    "ConsumerGroupDescribe": "GroupIds",
    "StreamsGroupDescribe": "GroupIds",
    "ShareGroupDescribe": "GroupIds",
}
TRANSACTION_APIS = {
    "InitProducerId": "TransactionalId",
    "AddPartitionsToTxn": "V3AndBelowTransactionalId",
    "AddOffsetsToTxn": "TransactionalId",
    "EndTxn": "TransactionalId",
}
LOG_APIS = {  # list of topics, name of a topic, list of partitions, index of a partition
    "Produce": ("TopicData", "Name", "PartitionData", "Index"),
    "Fetch": ("Topics", "Topic", "Partitions", "Partition"),
    "ListOffsets": ("Topics", "Name", "Partitions", "PartitionIndex"),
    "DeleteRecords": ("Topics", "Name", "Partitions", "PartitionIndex"),
    "OffsetForLeaderEpoch": ("Topics", "Topic", "Partitions", "Partition"),
    "DescribeProducers": ("Topics", "Name", "PartitionIndexes", ""),
}
COORDINATOR_LIMIT_S = 20.0


class Router:
    """The nodes of one broker, by what they lead and coordinate."""

    def __init__(self, peer: Peer) -> None:
        self._peer = peer
        self._links: dict[int, Link] = {}
        self._leaders: dict[tuple[str, int], int] = {}
        self._coordinators: dict[tuple[int, str], int] = {}

    def node_for(self, step: Values, body: Values) -> int:
        """A number of a node, from 0."""
        if self._peer.nodes == 1:
            return 0
        right = self._right_node(step["api"], body)
        return (right + int(step.get("off", 0))) % self._peer.nodes

    def _right_node(self, api: str, body: Values) -> int:
        if api in GROUP_APIS:
            groups = body.get("Groups") or []
            name = body.get("GroupId") or (groups[0].get("GroupId") if groups else "")
            return self._coordinator(0, name) if name else 0
        if api in GROUP_LISTS:
            names = body.get(GROUP_LISTS[api]) or []
            return self._coordinator(0, names[0]) if names and names[0] else 0
        if api in TRANSACTION_APIS:
            name = body.get(TRANSACTION_APIS[api])
            return self._coordinator(1, name) if name else 0
        if api == "DescribeTransactions":
            names = body.get("TransactionalIds") or []
            return self._coordinator(1, names[0]) if names and names[0] else 0
        if api in LOG_APIS:
            topics, name, parts, index = LOG_APIS[api]
            for topic in body.get(topics) or []:
                for part in topic.get(parts) or [] if isinstance(topic, dict) else []:
                    at = part.get(index) if isinstance(part, dict) else part
                    return self._leader(topic.get(name) or "", at if isinstance(at, int) else 0)
        return 0

    def _coordinator(self, kind: int, name: str) -> int:
        key = (kind, name)
        if key not in self._coordinators:
            end = time.monotonic() + COORDINATOR_LIMIT_S
            while True:
                answer = self.ask("FindCoordinator", 4, {"KeyType": kind, "CoordinatorKeys": [name]})["Coordinators"][0]
                if not answer["ErrorCode"] or time.monotonic() > end:
                    break
            self._coordinators[key] = max(0, answer["NodeId"] - 1)
        return self._coordinators[key]

    def _leader(self, topic: str, partition: int) -> int:
        if (topic, partition) not in self._leaders:
            rows = self.ask("Metadata", 9, {"Topics": [{"Name": topic}], "AllowAutoTopicCreation": False})["Topics"]
            for part in rows[0]["Partitions"] if rows else []:
                self._leaders[topic, part["PartitionIndex"]] = max(0, part["LeaderId"] - 1)
        return self._leaders.get((topic, partition), 0)

    def ask(self, api: str, version: int, body: Values, node: int = 0) -> Values:
        """A request on a connection of its own. Errors: LinkError."""
        link = self._links.get(node)
        if link is None or not link.is_open:
            link = self._links[node] = self._peer.link(node)
        try:
            return call(link, api, version, body)
        except LinkError:
            link.close()
            raise

    def forget_leaders(self) -> None:
        """Topics have changed."""
        self._leaders = {}

    def forget(self) -> None:
        """The broker has been started again."""
        for link in self._links.values():
            link.close()
        self._links, self._leaders, self._coordinators = {}, {}, {}
