"""Stops and starts virtual brokers, and moves their partitions.

A stopped node is not in the metadata, and nothing is placed on it. A partition with one replica moves to a node that
is up, since all nodes serve the same logs, and moves back when its node starts, unless a client has moved it since. One
with several keeps them and behaves as in Kafka (replicas.py): it shrinks its in-sync replicas, may have no leader, and
loses what a leader has missed, but its preferred leader leads again at once. Which nodes are stopped is not stored: a
start of the process starts all nodes.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Protocol

from broker.cluster.metadata_plans import elect_leader, follow_nodes, move_partition, sync_of
from broker.cluster.replicas import NOBODY, follow, least_in_sync
from broker.config.features import level_of

if TYPE_CHECKING:
    from broker.cluster.listeners import Node
    from broker.cluster.metadata import ClusterMetadata, Topic, TopicPartition
    from broker.cluster.nodes import Nodes
    from broker.coordinator.runtime import Shard
    from broker.turn.turn import Turn


class Logs(Protocol):
    """The logs of partitions."""

    def end_of(self, topic: Topic, index: int) -> int:
        """The end of a partition's log. Errors: KafkaError."""

    def cut(self, topic: Topic, index: int, end_offset: int) -> None:
        """Lose what lies from an offset on. Errors: KafkaError, OSError, StorageError."""


class VirtualNodes:
    """All nodes of the process; those that are up are in `nodes`."""

    def __init__(self, nodes: Nodes, metadata_shard: Shard, turn: Turn, logs: Logs) -> None:
        self._nodes = nodes
        self._metadata_shard = metadata_shard
        self._turn = turn
        self._logs = logs
        self.all = list(nodes.up)
        # partition -> node that left the in-sync replicas -> the end of its log then
        self._ends: dict[tuple[bytes, int], dict[int, int]] = {}
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
        cuts: list[tuple[Topic, int, int]] = []
        records = [
            (None, record)
            for topic in metadata.topics.values()
            for partition in topic.partitions
            for record in self._follow(topic, partition, node_ids, cuts)
        ]
        for cut in cuts:
            self._logs.cut(*cut)
        if records:
            shard.append(records, turn.now_ms)
        self._nodes.up[:] = up
        metadata.node_ids[:] = node_ids
        turn.learned.drop()  # which node serves what has changed, even if no partition has moved
        shard.flush_state.then(then)
        turn.touch(shard.flush_state)

    def _follow(
        self, topic: Topic, partition: TopicPartition, up: list[int], cuts: list[tuple[Topic, int, int]]
    ) -> list[bytes]:
        """The records of one partition, and where its log is to be cut."""
        if len(partition.replicas) == 1:
            return self._move(topic, partition, up)
        metadata: ClusterMetadata = self._metadata_shard.machine
        now, replicas = sync_of(partition), partition.replicas
        after = follow(
            now,
            replicas,
            up,
            least_in_sync(metadata.value(topic, "min.insync.replicas"), replicas),
            keeps_eligible=level_of("eligible.leader.replicas.version", metadata.feature_levels) > 0,
            unclean=bool(metadata.value(topic, "unclean.leader.election.enable")),
        )
        preferred = replicas[0]
        if after.leader not in (NOBODY, preferred) and preferred in after.isr and preferred not in now.isr:
            after = after._replace(leader=preferred)
        ends = self._ends.setdefault((topic.topic_id, partition.index), {})
        for node_id in now.isr if now.leader != NOBODY else ():  # in sync: an end from before a reassignment is stale
            ends.pop(node_id, None)
        for node_id in {*now.isr} - {*up} - ends.keys():
            ends[node_id] = self._logs.end_of(topic, partition.index)
        if now.leader == NOBODY and after.leader != NOBODY:
            first = next(
                (each for each in replicas if each in up and (each in now.isr or each in now.elr)), after.leader
            )
            if first in ends and ends[first] < self._logs.end_of(topic, partition.index):
                cuts.append((topic, partition.index, ends[first]))
        for node_id in after.isr if after.leader != NOBODY else ():
            ends.pop(node_id, None)
        return follow_nodes(topic, partition, after)

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
