"""The shards of the transaction coordinator: makes and loads them, and finds that of a transactional id."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from broker.base.placement import shard_index
from broker.cluster.metadata_plans import ensure_internal_topic, is_short_of_replicas
from broker.cluster.topic_names import TRANSACTIONS_TOPIC
from broker.coordinator.loading import drop_shards, load_shards
from broker.coordinator.runtime import READY, Shard
from broker.coordinator.shard_parts import PartitionLog
from broker.coordinator.transactions.machine import TransactionMachine
from protocol.errors import ErrorCode, KafkaError

if TYPE_CHECKING:
    from broker.base.context import Context
    from broker.cluster.data.directory import DataDirectory
    from broker.cluster.metadata import ClusterMetadata
    from broker.cluster.nodes import Nodes
    from broker.config.settings import BrokerConfig
    from broker.coordinator.shard_parts import Answers
    from broker.coordinator.transactions.transaction import Transaction
    from broker.turn.turn import Turn


class TransactionShards:
    """All shards of the transaction coordinator, whichever node leads them."""

    def __init__(
        self,
        turn: Turn,
        answers: Answers,
        config: BrokerConfig,
        directory: DataDirectory,
        nodes: Nodes,
        metadata_shard: Shard,
    ) -> None:
        self.turn = turn
        self.config = config
        self._answers = answers
        self._directory = directory
        self._nodes = nodes
        self._metadata_shard = metadata_shard
        self.shards: list[Shard] = []
        metadata_shard.when_reloaded.append(self._metadata_reloaded)

    def resume(self, index: int, prepared: Sequence[Transaction]) -> None:
        """A shard was loaded with these transactions in Prepare*: send their markers, some for the second time."""
        raise NotImplementedError

    def abort(self, index: int, transaction: Transaction) -> None:
        """A transaction has timed out: abort it."""
        raise NotImplementedError

    @property
    def metadata(self) -> ClusterMetadata:
        """The cluster's metadata."""
        metadata: ClusterMetadata = self._metadata_shard.machine
        return metadata

    def open(self) -> None:
        """Make the shards, if `__transaction_state` exists and they do not."""
        if not self.shards and TRANSACTIONS_TOPIC in self.metadata.topics:
            count = self.metadata.internal_partitions(TRANSACTIONS_TOPIC)
            self.shards = [self._shard(index) for index in range(count)]

    def _shard(self, index: int) -> Shard:
        source = PartitionLog(self._directory, lambda: self.metadata, TRANSACTIONS_TOPIC, index)

        def make_machine() -> TransactionMachine:
            return TransactionMachine(index, self.config, self)

        def is_short() -> bool:
            return is_short_of_replicas(self.metadata, TRANSACTIONS_TOPIC, index)

        name = f"{TRANSACTIONS_TOPIC}-{index}"
        short = None if self._nodes.is_one else is_short
        return Shard(self.turn, self._answers, name, source, make_machine, is_short=short)

    def load(self) -> Iterator[None]:
        """Load the shards, one a step: transactions must end and time out without a request."""
        self.open()
        yield from load_shards(self._directory, TRANSACTIONS_TOPIC, self.shards)

    def ensure_topic(self, rng: Any) -> None:
        """Make `__transaction_state` when it is first needed."""
        if not self.shards:
            records = ensure_internal_topic(self.metadata, rng, TRANSACTIONS_TOPIC)
            if records:
                self._metadata_shard.append([(None, value) for value in records])
            self.open()

    def _metadata_reloaded(self) -> None:
        if TRANSACTIONS_TOPIC not in self.metadata.topics:
            drop_shards(self.turn, self._directory, TRANSACTIONS_TOPIC, self.shards)

    def shard(self, transactional_id: str, ctx: Context | None = None) -> Shard:
        """The loaded shard of an id. Errors: NOT_COORDINATOR (of ctx's node), COORDINATOR_LOAD_IN_PROGRESS."""
        if not self.shards:
            self.open()
            if not self.shards:
                raise KafkaError(ErrorCode.NOT_COORDINATOR, "there are no transactions yet")
        index = shard_index(transactional_id, len(self.shards))
        if ctx is not None and not self._nodes.is_one and self._leader(index) != ctx.node_id:
            raise KafkaError(ErrorCode.NOT_COORDINATOR, f"node {ctx.node_id} does not coordinate {transactional_id!r}")
        shard = self.shards[index]
        if shard.state is not READY:
            shard.require()
        return shard

    def own_shards(self, ctx: Context) -> Iterator[Shard]:
        """The loaded shards that a node coordinates. Errors: COORDINATOR_LOAD_IN_PROGRESS."""
        self.open()
        for index, shard in enumerate(self.shards):
            if self._leader(index) == ctx.node_id:
                shard.require()
                yield shard

    def _leader(self, index: int) -> int:
        return self.metadata.topics[TRANSACTIONS_TOPIC].partitions[index].leader
