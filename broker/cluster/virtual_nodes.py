"""Stops and starts virtual brokers, and moves their partitions.

A stopped node counts as absent: it is not in the metadata, and nothing is placed on it. Its partitions are led by their
other replicas; a partition without one moves to a node that is up, since all nodes serve the same logs. When the node
starts, they move back, unless a client has moved them since. Which nodes are stopped is not stored: a start of the
process starts all nodes, and partitions stay where they are then.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from broker.cluster.metadata_plans import elect_leader, move_partition

if TYPE_CHECKING:
    from broker.cluster.listeners import Node
    from broker.cluster.metadata import ClusterMetadata, Topic, TopicPartition
    from broker.cluster.nodes import Nodes
    from broker.coordinator.runtime import Shard
    from broker.turn.turn import Turn


class VirtualNodes:
    """All nodes of the process; those that are up are in `nodes`."""

    def __init__(self, nodes: Nodes, metadata_shard: Shard, turn: Turn) -> None:
        self._nodes = nodes
        self._metadata_shard = metadata_shard
        self._turn = turn
        self.all = list(nodes.up)
        # partition -> its replicas before any of them was stopped, and what they were changed into
        self._homes: dict[tuple[bytes, int], tuple[list[int], list[int]]] = {}

    def find(self, node_id: int) -> Node | None:
        """A node by its id, up or not."""
        return next((node for node in self.all if node.node_id == node_id), None)

    def is_up(self, node: Node) -> bool:
        return node in self._nodes.up

    def stop(self, node: Node, then: Callable[[bool], None]) -> None:
        """Move everything off a node. `then(True)` once that is durable, `then(False)` if it cannot be written.

        Errors:  KafkaError, OSError, StorageError: nothing has changed.
        """
        self._change([each for each in self._nodes.up if each is not node], then)

    def start(self, node: Node, then: Callable[[bool], None]) -> None:
        """Start a node and move its partitions back."""
        up = self._nodes.up
        self._change([each for each in self.all if each is node or each in up], then)

    def _change(self, up: list[Node], then: Callable[[bool], None]) -> None:
        assert up, "the last node cannot be stopped"
        turn, shard = self._turn, self._metadata_shard
        turn.begin()
        metadata: ClusterMetadata = shard.machine
        node_ids = [node.node_id for node in up]
        records = [
            (None, record)
            for topic in metadata.topics.values()
            for partition in topic.partitions
            for record in self._move(topic, partition, node_ids)
        ]
        if records:
            shard.append(records, turn.now_ms)
        self._nodes.up[:] = up
        metadata.node_ids[:] = node_ids
        turn.learned.drop()  # which node serves what has changed, even if no partition has moved
        shard.flush_state.then(then)
        turn.touch(shard.flush_state)

    def _move(self, topic: Topic, partition: TopicPartition, up: list[int]) -> list[bytes]:
        key = topic.topic_id, partition.index
        home, changed = self._homes.get(key, (partition.replicas, partition.replicas))
        if partition.replicas != changed:  # a client has moved it since: these are its replicas now
            home = partition.replicas
        replicas = (
            [node_id for node_id in home if node_id in up]
            or [node_id for node_id in partition.replicas if node_id in up]
            or [up[partition.index % len(up)]]
        )
        if replicas == home:
            self._homes.pop(key, None)
        else:
            self._homes[key] = home, replicas
        if replicas == partition.replicas:
            return []
        records = move_partition(topic, partition, replicas)
        if partition.leader in replicas and partition.leader != replicas[0]:  # the preferred leader is back
            records += elect_leader(topic, partition, replicas[0])
        return records
