"""Stops and starts virtual brokers, moves their partitions, and makes followers lag.

A stopped node is not in the metadata, and nothing is placed on it. A partition with one replica moves to a node that
is up, since all nodes serve the same logs, and moves back when its node starts, unless a client has moved it since. One
with several keeps them and behaves as in Kafka (replicas.py): it shrinks its in-sync replicas, may have no leader, and
loses what a leader has missed, but its preferred leader leads again at once. Which nodes are stopped or lag is not
stored: a start of the process starts all nodes.

A node that lags is up, leads what it led, and fetches nothing: the high watermark of what it follows stands still. It
leaves the in-sync replicas of a partition once it has missed something and has lagged for replica.lag.time.max.ms,
which is looked at then and each half of that time. A node that is stopped does not lag when it starts.

A node that is paused lags, and is up until broker.session.timeout.ms have passed: then it is as one that is stopped, if
another one goes on that could notice. Its connections are the shell's: they stay.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Protocol

from broker.cluster.metadata_plans import elect_leader, follow_nodes, move_partition, sync_of
from broker.cluster.replicas import NOBODY, follow, least_in_sync
from broker.config.features import level_of

if TYPE_CHECKING:
    from broker.cluster.listeners import Node
    from broker.cluster.metadata import ClusterMetadata
    from broker.cluster.nodes import Nodes
    from broker.cluster.topics import Topic, TopicPartition
    from broker.turn.decision import Record
    from broker.turn.flush_state import FlushState
    from broker.turn.turn import Turn


class MetadataShard(Protocol):
    """The metadata and its log."""

    machine: Any  # ClusterMetadata
    flush_state: FlushState

    def append(self, records: Sequence[Record], now_ms: int) -> None:
        """Append and replay some records. Errors: KafkaError, OSError, StorageError: nothing has changed."""


class Logs(Protocol):
    """The logs of partitions."""

    def end_of(self, topic: Topic, index: int) -> int:
        """The end of a partition's log. Errors: KafkaError."""

    def follow_again(self) -> None:
        """Each partition looks how far its high watermark may get."""


class VirtualNodes:
    """All nodes of the process; those that are up are in `nodes`."""

    def __init__(self, nodes: Nodes, metadata_shard: MetadataShard, turn: Turn, logs: Logs) -> None:
        self._nodes = nodes
        self._followers = nodes.followers
        self._metadata_shard = metadata_shard
        self._turn = turn
        self._logs = logs
        self.all = list(nodes.up)
        # partition -> its replicas before any of them was stopped, and what they were changed into
        self._homes: dict[tuple[bytes, int], tuple[list[int], list[int]]] = {}
        self._alarms: dict[int, int] = {}  # node that lags -> timer that looks whether it is still in sync
        self._paused: dict[int, bool] = {}  # node that is paused -> whether it lagged before
        self._sessions: dict[int, int] = {}  # node that is paused and up -> timer of the end of its session
        nodes.records_of_moves = lambda: self._records(nodes.ids)

    def find(self, node_id: int) -> Node | None:
        """A node by its id, up or not."""
        return next((node for node in self.all if node.node_id == node_id), None)

    def is_up(self, node: Node) -> bool:
        """Whether a virtual broker is running."""
        return node in self._nodes.up

    def lags(self, node: Node) -> bool:
        """Whether the node was told to fetch nothing."""
        return node.node_id in self._followers.lagging

    def is_paused(self, node: Node) -> bool:
        """Whether the node was told to do nothing; it is up until its session ends."""
        return node.node_id in self._paused

    def stop(self, node: Node, then: Callable[[bool], None]) -> None:
        """Move everything off a node. `then(True)` once that is durable, `then(False)` if it cannot be written.

        Errors:  KafkaError, OSError, StorageError: nothing has changed.
        """
        self._change([each for each in self._nodes.up if each is not node], then)
        self._no_longer_lags(node)
        self._forget_pause(node)

    def start(self, node: Node, then: Callable[[bool], None]) -> None:
        """Start a node and move its partitions back."""
        up = self._nodes.up
        self._change([each for each in self.all if each is node or each in up], then)

    def lag(self, node: Node, then: Callable[[bool], None]) -> None:
        """Let a node that is up fetch nothing more from leaders. Errors: KafkaError: nothing has changed."""
        assert self.is_up(node)
        node_id, turn, shard = node.node_id, self._turn, self._metadata_shard
        if not self.lags(node):
            turn.begin()
            ends = [
                (topic, partition.index, self._logs.end_of(topic, partition.index))
                for topic in shard.machine.topics.values()
                for partition in topic.partitions
                if node_id in partition.isr and node_id != partition.leader
            ]
            for topic, index, end_offset in ends:
                self._followers.of(topic.topic_id, index)[node_id] = end_offset
            self._followers.lagging.add(node_id)
            self._logs.follow_again()
            turn.learned.drop()
            limit_ms = shard.machine.config.value("replica.lag.time.max.ms")
            self._look_later(node, turn.steady_ms + limit_ms, limit_ms, is_deadline=True)
        shard.flush_state.then(then)
        turn.touch(shard.flush_state)

    def release(self, node: Node, then: Callable[[bool], None]) -> None:
        """Let a node that lags follow again: it has caught up and is in sync at once."""
        self._no_longer_lags(node)
        self._change(list(self._nodes.up), then)
        self._logs.follow_again()

    def pause(self, node: Node, then: Callable[[bool], None]) -> None:
        """Let a node that is up do nothing: it fetches nothing, and its session ends. Errors: as `lag`."""
        lagged = self.lags(node)
        self.lag(node, then)
        if not self.is_paused(node):
            self._paused[node.node_id] = lagged
            self._end_session_later(node)

    def resume(self, node: Node, then: Callable[[bool], None]) -> None:
        """Let a node that is paused go on; one whose session has ended is started."""
        lagged = self._paused[node.node_id]
        if not self.is_up(node):
            self.start(node, then)
        elif lagged:
            self._change(list(self._nodes.up), then)
        else:
            self.release(node, then)
        self._forget_pause(node)
        for each in self._nodes.up:  # the end of their sessions went unnoticed: they begin again
            if self.is_paused(each) and each.node_id not in self._sessions:
                self._end_session_later(each)

    def _forget_pause(self, node: Node) -> None:
        self._paused.pop(node.node_id, None)
        self._turn.timers.cancel(self._sessions.pop(node.node_id, 0))

    def _end_session_later(self, node: Node) -> None:
        def end(due_ms: int, now_ms: int) -> None:
            del self._sessions[node.node_id]
            if any(not self.is_paused(each) for each in self._nodes.up):
                self._end_session_later(node)  # once more, should this fail
                self._change([each for each in self._nodes.up if each is not node], lambda durable: None)
                self._no_longer_lags(node)
                self._turn.timers.cancel(self._sessions.pop(node.node_id))

        limit_ms: int = self._metadata_shard.machine.config.value("broker.session.timeout.ms")
        due_ms = self._turn.steady_ms + limit_ms
        self._sessions[node.node_id] = self._turn.timers.at(due_ms, end, is_deadline=True)

    def _no_longer_lags(self, node: Node) -> None:
        self._followers.lagging.discard(node.node_id)
        alarm = self._alarms.pop(node.node_id, None)
        if alarm is not None:
            self._turn.timers.cancel(alarm)

    def _look_later(self, node: Node, due_ms: int, limit_ms: int, *, is_deadline: bool = False) -> None:
        """Look at that time whether a node that lags has missed something."""

        def look(due_ms: int, now_ms: int) -> None:
            self._look_later(node, now_ms + max(limit_ms // 2, 1), limit_ms)
            self._change(list(self._nodes.up), lambda durable: None, late=node.node_id)

        self._alarms[node.node_id] = self._turn.timers.at(due_ms, look, is_deadline=is_deadline)

    def _change(self, up: list[Node], then: Callable[[bool], None], late: int | None = None) -> None:
        """Let exactly these nodes be up. `late`: a node that has lagged for too long."""
        assert up, "the last node cannot be stopped"
        turn, shard = self._turn, self._metadata_shard
        turn.begin()
        metadata: ClusterMetadata = shard.machine
        self._homes = {key: home for key, home in self._homes.items() if key[0] in metadata.topics_by_id}
        node_ids = [node.node_id for node in up]
        records = self._records(node_ids, late)
        if records:
            shard.append([(None, record) for record in records], turn.now_ms)
        self._nodes.up[:] = up
        metadata.node_ids[:] = node_ids
        turn.learned.drop()  # which node serves what has changed, even if no partition has moved
        shard.flush_state.then(then)
        turn.touch(shard.flush_state)

    def _records(self, node_ids: list[int], late: int | None = None) -> list[bytes]:
        """What partitions need so that these nodes lead and follow them."""
        metadata: ClusterMetadata = self._metadata_shard.machine
        return [
            record
            for topic in metadata.topics.values()
            for partition in topic.partitions
            for record in self._follow(topic, partition, node_ids, late)
        ]

    def _follow(self, topic: Topic, partition: TopicPartition, up: list[int], late: int | None) -> list[bytes]:
        """The records of one partition. Its log is cut to what a new leader has when these are durable."""
        if len(partition.replicas) == 1:
            return self._move(topic, partition, up)
        metadata: ClusterMetadata = self._metadata_shard.machine
        lagging, now, replicas = self._followers.lagging, sync_of(partition), partition.replicas
        ends = self._followers.of(topic.topic_id, partition.index)
        for node_id in now.isr if now.leader != NOBODY else ():  # in sync: an end from before a reassignment is stale
            if node_id not in lagging:
                ends.pop(node_id, None)
        for node_id in {*now.isr} - {*up} - ends.keys():
            ends[node_id] = self._logs.end_of(topic, partition.index)
        left = {node_id for node_id in lagging if node_id not in now.isr}
        if late in ends and ends[late] < self._logs.end_of(topic, partition.index):
            left.add(late)
        after = elected = follow(
            now,
            replicas,
            up,
            least_in_sync(metadata.value(topic, "min.insync.replicas"), replicas),
            keeps_eligible=level_of("eligible.leader.replicas.version", metadata.feature_levels) > 0,
            unclean=bool(metadata.value(topic, "unclean.leader.election.enable")),
            lagging=left,
        )
        preferred = replicas[0]
        if after.leader not in (NOBODY, preferred) and preferred in after.isr and preferred not in now.isr:
            after = after._replace(leader=preferred)
        first = elected.leader  # who leads before the preferred one takes over
        if now.leader == NOBODY:
            first = next((each for each in replicas if each in up and (each in now.isr or each in now.elr)), first)
        missed_from = ends.get(first) if after.leader not in (NOBODY, now.leader) else None
        for node_id in after.isr if after.leader != NOBODY else ():
            if node_id not in lagging or node_id == after.leader:
                ends.pop(node_id, None)
        if missed_from is not None:
            ends[after.leader] = missed_from
        if not ends:
            self._followers.forget(topic.topic_id, partition.index)
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
        records = move_partition(self._metadata_shard.machine, topic, partition, replicas)
        if partition.leader in replicas and partition.leader != replicas[0]:  # the preferred leader is back
            records += elect_leader(topic, partition, replicas[0])
        return records
