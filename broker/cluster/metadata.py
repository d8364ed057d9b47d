"""ClusterMetadata: the state machine of topics, configs, features, client settings and producer ids.

The state is made by replaying Kafka's metadata records from the log `__cluster_metadata-0`, live and at a start.
metadata_plans.py decides what to write. Nothing else changes the state, except one counter: the next producer id within
the block that the log has reserved. It is lost with a restart on purpose: a start takes a new block.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Final

from broker.base.context import Context
from broker.base.facts import facts
from broker.base.placement import shard_index
from broker.cluster.acls import Acls
from broker.cluster.client_records import ClientSettings
from broker.cluster.followers import Followers
from broker.cluster.topic_names import (
    OFFSETS_TOPIC,
    SHARE_STATE_TOPIC,
    TRANSACTIONS_TOPIC,
    collision_key,
)
from broker.cluster.topics import Topic, TopicPartition, config_records, partition_record
from broker.config.config_values import Value
from broker.config.settings import BrokerConfig
from broker.turn.decision import Decision
from protocol.messages.metadata_records import (
    ConfigRecord,
    FeatureLevelRecord,
    PartitionChangeRecord,
    PartitionRecord,
    ProducerIdsRecord,
    RemoveTopicRecord,
    TopicRecord,
    decode_record,
    encode_record,
)

if TYPE_CHECKING:
    from storage.files.env import Rng

TOPIC, BROKER, BROKER_LOGGER, GROUP = 2, 4, 8, 32  # config resource types
NO_LEADER_CHANGE: Final = -2


class ClusterMetadata:
    """The state machine. `listeners` are called with (event, topic, partition); -1: all partitions.

    Events: created, configured, deleted, moved, in sync. New partitions are no event: there may be 10,000, none open.
    """

    __slots__ = (
        "_changed",
        "_next_producer_id",
        "_replays",
        "_start_up",
        "acls",
        "broker_configs",
        "clients",
        "colliding",
        "config",
        "feature_levels",
        "followers",
        "group_configs",
        "listeners",
        "node_ids",
        "reserved_producer_id",
        "topics",
        "topics_by_id",
        "topics_made",
        "version",
    )

    VOLATILE: ClassVar[Mapping[str, str]] = {
        "_changed": "given",
        "_next_producer_id": "what is left of a block is not used after a start",
        "_replays": "the same for every state",
        "_start_up": "given",
        "config": "given; replay sets its dynamic values to broker_configs",
        "followers": "given; a start has none that lag",
        "listeners": "given",
        "node_ids": "given; a start writes what follows from new ones",
        "topics_made": "an image leaves out the topics that were deleted",
        "version": "counts records; an image has fewer of them",
    }

    def __init__(
        self,
        config: BrokerConfig,
        node_ids: Sequence[int],
        *,
        start_up: Callable[[ClusterMetadata, Rng], list[bytes]] | None = None,
        changed: Callable[[], None] | None = None,
        followers: Followers | None = None,
    ) -> None:
        self.config = config
        self._start_up = start_up  # makes the records that a start writes: metadata_plans.start_up
        self._changed = changed  # called after each batch of changes
        self.node_ids = list(node_ids)
        self.followers = followers or Followers()
        self.topics: dict[str, Topic] = {}
        self.topics_by_id: dict[bytes, Topic] = {}
        self.colliding: dict[str, list[str]] = {}  # names with '.' or '_' by their common key
        self.topics_made = 0  # so far, deleted ones included
        self.broker_configs: dict[str, dict[str, str]] = {}  # by node id; "" for all
        self.group_configs: dict[str, dict[str, str]] = {}
        self.clients = ClientSettings()
        self.acls = Acls()
        self.feature_levels: dict[str, int] = {}  # as recorded; features.py computes the levels in force
        self.reserved_producer_id = 0  # ids below may have been handed out
        self.version = 0  # records replayed so far
        self.listeners: list[Callable[[str, Topic, int], None]] = []
        self._next_producer_id = -1  # in the block below reserved_producer_id; -1: none taken since loading
        config.set_dynamic({})
        self._replays: dict[type, Callable[[Any], None]] = {
            TopicRecord: self._replay_topic,
            PartitionRecord: self._replay_partition,
            PartitionChangeRecord: self._replay_partition_change,
            RemoveTopicRecord: self._replay_remove_topic,
            ConfigRecord: self._replay_config,
            FeatureLevelRecord: self._replay_feature_level,
            ProducerIdsRecord: self._replay_producer_ids,
            **self.clients.replays,
            **self.acls.replays,
        }

    # -- queries

    def topic(self, name: str) -> Topic | None:
        """The topic of this name; None: there is none."""
        return self.topics.get(name)

    def value(self, topic: Topic, key: str) -> Value:
        """A topic key's value for this topic: its own, or the broker's."""
        if key not in topic.values:
            value = self.config.topic_value(key, topic.configs)
            if key == "segment.bytes":
                small = self.config.topic_value("internal.segment.bytes", topic.configs)
                value = value if small is None else small
            topic.values[key] = value
        return topic.values[key]

    def group_value(self, group_id: str, key: str) -> Value:
        """A group key's value for this group: its own, or the broker's."""
        return self.config.group_value(key, self.group_configs.get(group_id, {}))

    def coordinator_index(self, key: str, topic_name: str = OFFSETS_TOPIC) -> int:
        """The partition of an internal topic that owns a group or transactional id."""
        return shard_index(key, self.internal_partitions(topic_name))

    def coordinator_node(self, key: str, topic_name: str = OFFSETS_TOPIC) -> int:
        """The node that coordinates a group or transactional id, also before the topic is made."""
        index = self.coordinator_index(key, topic_name)
        topic = self.topics.get(topic_name)
        return topic.partitions[index].leader if topic else self.node_ids[index % len(self.node_ids)]

    def internal_partitions(self, topic_name: str = OFFSETS_TOPIC) -> int:
        """How many partitions an internal topic has, or will have."""
        topic = self.topics.get(topic_name)
        if topic is not None and topic.partitions:
            return len(topic.partitions)
        if topic_name == TRANSACTIONS_TOPIC:
            return self.config.transaction_state_log_num_partitions
        if topic_name == SHARE_STATE_TOPIC:
            return self.config.share_coordinator_state_topic_num_partitions
        return self.config.offsets_topic_num_partitions

    def next_producer_id(self) -> tuple[int, list[bytes]]:
        """A new producer id, and the records that must be durable before a client gets it."""
        producer_id = self._next_producer_id
        records = []
        if producer_id < 0 or producer_id >= self.reserved_producer_id:
            producer_id = self.reserved_producer_id
            block = ProducerIdsRecord(broker_id=self.node_ids[0], next_producer_id=producer_id + PRODUCER_ID_BLOCK)
            records = [encode_record(block, 0)]
        self._next_producer_id = producer_id + 1
        return producer_id, records

    # -- replay

    def replay(self, key: bytes | None, value: bytes | None, offset: int = -1, producer_id: int = -1) -> None:
        """Apply one record. Unknown types are skipped."""
        self.version += 1
        assert value is not None, "metadata records have no tombstones"
        record = decode_record(value)
        replay = self._replays.get(type(record))
        if replay is not None:
            replay(record)

    def after_batch(self) -> None:
        """Call `changed`."""
        if self._changed is not None:
            self._changed()

    def on_load(self, ctx: Context) -> Decision:
        """The whole log is replayed: the records that a start writes. Errors: ConfigError (metadata_plans.start_up)."""
        if self._start_up is None:
            return Decision()
        return Decision(records=[(None, value) for value in self._start_up(self, ctx.rng)])

    def on_timer(self, name: Hashable, ctx: Context) -> Decision:
        """The metadata sets no timers."""
        raise AssertionError(f"no such timer: {name}")

    def _replay_topic(self, record: TopicRecord) -> None:
        topic = Topic(record.name, record.topic_id)
        self.topics[topic.name] = topic
        self.topics_by_id[topic.topic_id] = topic
        self.topics_made += 1
        key = collision_key(topic.name)
        if key is not None:
            self.colliding.setdefault(key, []).append(topic.name)
        self._tell("created", topic)

    def _replay_partition(self, record: PartitionRecord) -> None:
        topic = self.topics_by_id[record.topic_id]
        partition = TopicPartition(
            record.partition_id, record.leader, list(record.replicas), record.leader_epoch, record.partition_epoch
        )
        partition.isr = list(record.isr)
        partition.elr = list(record.eligible_leader_replicas or ())
        partition.last_known_elr = list(record.last_known_elr or ())
        if partition.index < len(topic.partitions):
            topic.partitions[partition.index] = partition
        else:
            assert partition.index == len(topic.partitions), "partitions are recorded in order"
            topic.partitions.append(partition)

    def _replay_partition_change(self, record: PartitionChangeRecord) -> None:
        topic = self.topics_by_id[record.topic_id]
        partition = topic.partitions[record.partition_id]
        if record.replicas is not None:
            partition.replicas = list(record.replicas)
        if record.isr is not None:
            partition.isr = list(record.isr)
        if record.eligible_leader_replicas is not None:
            partition.elr = list(record.eligible_leader_replicas)
        if record.last_known_elr is not None:
            partition.last_known_elr = list(record.last_known_elr)
        if record.leader != NO_LEADER_CHANGE:
            partition.leader = record.leader
            partition.leader_epoch += 1
        partition.partition_epoch += 1
        moved = record.replicas is not None or record.leader != NO_LEADER_CHANGE
        self._tell("moved" if moved else "in sync", topic, partition.index)

    def _replay_remove_topic(self, record: RemoveTopicRecord) -> None:
        topic = self.topics_by_id.pop(record.topic_id)
        del self.topics[topic.name]
        key = collision_key(topic.name)
        if key is not None:
            self.colliding[key].remove(topic.name)
            if not self.colliding[key]:
                del self.colliding[key]
        self._tell("deleted", topic)

    def _replay_config(self, record: ConfigRecord) -> None:
        kind, name = record.resource_type, record.resource_name
        if kind == TOPIC:
            topic = self.topics.get(name)
            if topic is None:
                return
            _put(topic.configs, record)
            topic.values.clear()
            self._tell("configured", topic)
            return
        table = {BROKER: self.broker_configs, GROUP: self.group_configs}.get(kind)
        if table is None:
            return
        configs = table.setdefault(name, {})
        _put(configs, record)
        if not configs:
            del table[name]
        if kind == BROKER:
            self.config.set_dynamic(self.broker_configs)
            for topic in self.topics.values():
                topic.values.clear()
                self._tell("configured", topic)

    def _replay_feature_level(self, record: FeatureLevelRecord) -> None:
        self.feature_levels[record.name] = record.feature_level

    def _replay_producer_ids(self, record: ProducerIdsRecord) -> None:
        self.reserved_producer_id = record.next_producer_id

    def _tell(self, event: str, topic: Topic, index: int = -1) -> None:
        for listener in self.listeners:
            listener(event, topic, index)

    # -- the state as a whole

    def image_records(self) -> Iterator[bytes]:
        """The state as records: replaying them gives the same fingerprint."""
        for name, level in sorted(self.feature_levels.items(), key=lambda item: item[0] != "metadata.version"):
            yield encode_record(FeatureLevelRecord(name=name, feature_level=level), 0)
        for kind, table in ((BROKER, self.broker_configs), (GROUP, self.group_configs)):
            for resource, configs in table.items():
                yield from config_records(kind, resource, configs)
        yield from self.clients.image_records()
        yield from self.acls.image_records()
        for topic in self.topics.values():
            yield encode_record(TopicRecord(name=topic.name, topic_id=topic.topic_id), 0)
            yield from config_records(TOPIC, topic.name, topic.configs)
            for partition in topic.partitions:
                yield partition_record(topic.topic_id, partition)
        if self.reserved_producer_id:
            yield encode_record(
                ProducerIdsRecord(broker_id=self.node_ids[0], next_producer_id=self.reserved_producer_id), 0
            )

    @property
    def record_count(self) -> int:
        """About the number of records of an image."""
        topics = sum(1 + len(topic.configs) + len(topic.partitions) for topic in self.topics.values())
        configs = sum(len(table) for table in (*self.broker_configs.values(), *self.group_configs.values()))
        clients = len(self.clients.credentials) + len(self.clients.tokens)
        clients += sum(len(quotas) for quotas in self.clients.quotas.values())
        return topics + configs + clients + len(self.acls) + len(self.feature_levels) + 1

    def fingerprint(self) -> dict[str, object]:
        """Equal for two states that answer every request alike: all but what is VOLATILE."""
        return {**facts(self), "order": list(self.topics)}


PRODUCER_ID_BLOCK: Final = 1000


def _put(configs: dict[str, str], record: ConfigRecord) -> None:
    if record.value is None:
        configs.pop(record.name, None)
    else:
        configs[record.name] = record.value
