"""The shards of the group coordinator: finds the shard of a group, its coordinator node, and loads it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from broker.base.placement import shard_index
from broker.cluster.metadata_plans import is_short_of_replicas
from broker.cluster.topic_names import OFFSETS_TOPIC
from broker.coordinator.groups.machine import GroupMachine
from broker.coordinator.lazy_shards import LazyShards
from broker.coordinator.runtime import READY, Shard
from broker.coordinator.shard_parts import PartitionLog
from protocol.errors import ErrorCode, KafkaError

if TYPE_CHECKING:
    from broker.base.context import Context
    from broker.cluster.data.directory import DataDirectory
    from broker.cluster.metadata import ClusterMetadata
    from broker.cluster.nodes import Nodes
    from broker.config.settings import BrokerConfig
    from broker.coordinator.shard_parts import Answers
    from broker.turn.turn import Turn


class GroupShards:
    """One shard for each partition of `__consumer_offsets`, whichever node leads it."""

    def __init__(
        self,
        turn: Turn,
        answers: Answers,
        config: BrokerConfig,
        directory: DataDirectory,
        nodes: Nodes,
        metadata_shard: Shard,
    ) -> None:
        self._turn = turn
        self._answers = answers
        self._config = config
        self._directory = directory
        self._nodes = nodes
        self._metadata_shard = metadata_shard
        self.shards = LazyShards(0, self._shard)

    def start(self) -> None:
        """Make the shards, unloaded. The metadata must be loaded."""
        self.shards = LazyShards(self.metadata.internal_partitions(), self._shard)

    def _shard(self, index: int) -> Shard:
        source = PartitionLog(self._directory, lambda: self.metadata, OFFSETS_TOPIC, index)

        def make_machine() -> GroupMachine:
            machine = GroupMachine(index, self._config, self)
            machine.offsets.dropped = self._turn.learned.drop
            return machine

        def is_short() -> bool:
            return is_short_of_replicas(self.metadata, OFFSETS_TOPIC, index)

        name = f"{OFFSETS_TOPIC}-{index}"
        short = None if self._nodes.is_one else is_short
        return Shard(self._turn, self._answers, name, source, make_machine, is_short=short)

    @property
    def metadata(self) -> ClusterMetadata:
        """The cluster's metadata."""
        metadata: ClusterMetadata = self._metadata_shard.machine
        return metadata

    @property
    def any_broker(self) -> bool:
        """Whether any node serves offset requests for any group, as the offset management proposal asks."""
        return self._nodes.is_one or self._config.offsets_any_broker

    def index_of(self, group_id: str) -> int:
        """The partition of `__consumer_offsets` that holds a group."""
        return shard_index(group_id, len(self.shards.made))

    def at(self, index: int) -> Shard:
        """The shard of a partition of `__consumer_offsets`, loaded or not."""
        return self.shards.made[index] or self.shards[index]

    def of(self, group_id: str) -> Shard:
        """The shard of a group, loaded or not."""
        return self.at(self.index_of(group_id))

    def coordinator_of(self, group_id: str) -> int:
        """The id of the node that coordinates a group."""
        return self.metadata.topics[OFFSETS_TOPIC].partitions[self.index_of(group_id)].leader

    def require(self, group_id: str, ctx: Context, *, anywhere: bool = False) -> Shard:
        """The loaded shard of a group; `anywhere`: for a request to any node.

        Errors:  NOT_COORDINATOR: another node coordinates the group.
                 COORDINATOR_LOAD_IN_PROGRESS: the shard is being loaded.
        """
        if not self._nodes.is_one and not anywhere and self.coordinator_of(group_id) != ctx.node_id:
            raise KafkaError(ErrorCode.NOT_COORDINATOR, f"node {ctx.node_id} does not coordinate group {group_id!r}")
        shard = self.of(group_id)
        if shard.state is not READY:
            shard.require()
        return shard

    def require_for_offsets(self, group_id: str, ctx: Context) -> Shard:
        """The loaded shard of a group, for an offset request. Errors: as `require`."""
        return self.require(group_id, ctx, anywhere=self.any_broker)

    def own(self, ctx: Context) -> Iterator[Shard]:
        """The loaded shards that the node coordinates. Errors: COORDINATOR_LOAD_IN_PROGRESS."""
        leaders = self.metadata.topics[OFFSETS_TOPIC].partitions
        for index, shard in enumerate(self.shards):
            if leaders[index].leader == ctx.node_id:
                shard.require()
                yield shard
