"""Plans: the records of each administrative operation. Replaying them changes the state.

A plan is a list of record values for one batch, so the operation happens whole or not at all.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING

from broker.cluster.metadata import NO_LEADER_CHANGE, TOPIC, ClusterMetadata
from broker.cluster.replicas import Sync, least_in_sync
from broker.cluster.topic_names import (
    INTERNAL_TOPICS,
    METADATA_TOPIC,
    OFFSETS_TOPIC,
    SHARE_STATE_TOPIC,
    TRANSACTIONS_TOPIC,
    collision_key,
    name_fault,
)
from broker.cluster.topics import WITH_ELIGIBLE, Topic, TopicPartition, config_record, partition_record
from broker.config.features import METADATA_VERSION
from broker.config.settings import ConfigError
from protocol.errors import ErrorCode, KafkaError
from protocol.messages.metadata_records import (
    FeatureLevelRecord,
    PartitionChangeRecord,
    RemoveTopicRecord,
    TopicRecord,
    encode_record,
)

if TYPE_CHECKING:
    from storage.files.env import Rng

_MARK = bytes(range(0xA0, 0xB0))  # a topic id that no other bytes of a record look like
_CODEC_NAMES = ("none", "gzip", "snappy", "lz4", "zstd")


def place(metadata: ClusterMetadata, start: int, count: int, replication_factor: int) -> list[list[int]]:
    """Replicas of `count` partitions: leaders round robin from node `start` on, followers on the next nodes."""
    nodes = metadata.node_ids
    return [
        [nodes[(start + index + replica) % len(nodes)] for replica in range(replication_factor)]
        for index in range(count)
    ]


def check_new_name(metadata: ClusterMetadata, name: str) -> None:
    """Check that a topic of this name may be made.

    Errors:  INVALID_TOPIC_EXCEPTION, TOPIC_ALREADY_EXISTS, INVALID_REQUEST: the broker keeps the name for itself.
    """
    fault = name_fault(name)
    if fault:
        raise KafkaError(ErrorCode.INVALID_TOPIC_EXCEPTION, fault)
    if name in metadata.topics:
        raise KafkaError(ErrorCode.TOPIC_ALREADY_EXISTS, f"Topic '{name}' already exists.")
    if name == METADATA_TOPIC or name in INTERNAL_TOPICS:
        raise KafkaError(ErrorCode.INVALID_REQUEST, f"Creation of internal topic {name} is prohibited.")
    key = collision_key(name)
    if key is not None and key in metadata.colliding:
        other = metadata.colliding[key][0]
        raise KafkaError(ErrorCode.INVALID_TOPIC_EXCEPTION, f"Topic '{name}' collides with existing topic: {other}")


def create_topic(
    metadata: ClusterMetadata,
    rng: Rng,
    name: str,
    replicas: Sequence[Sequence[int]],
    configs: Mapping[str, str],
) -> tuple[Topic, list[bytes]]:
    """A new topic with its partitions on these nodes, and the records that make it.

    Its id has 122 random bits. Ids of deleted topics are not kept: of a thousand million topics in a data directory two
    would get the same id with a probability of 1 in 10^19.
    """
    topic_id = _new_id(metadata, rng)
    topic = Topic(name, topic_id, configs)
    topic.partitions += [TopicPartition(index, nodes[0], list(nodes)) for index, nodes in enumerate(replicas)]
    return topic, _new_topic(name, topic_id, replicas, configs)


def _new_id(metadata: ClusterMetadata, rng: Rng) -> bytes:
    topic_id = rng.uuid_bytes()
    while topic_id in metadata.topics_by_id:
        topic_id = rng.uuid_bytes()
    return topic_id


def _new_topic(
    name: str, topic_id: bytes, replicas: Sequence[Sequence[int]], configs: Mapping[str, str]
) -> list[bytes]:
    """The records that make a topic."""
    records = [encode_record(TopicRecord(name=name, topic_id=topic_id), 0)]
    records += [config_record(TOPIC, name, key, value) for key, value in configs.items()]
    return records + [_new_partition(topic_id, index, nodes) for index, nodes in enumerate(replicas)]


def _new_partition(topic_id: bytes, index: int, nodes: Sequence[int]) -> bytes:
    """The record of a partition that begins with these nodes."""
    before, after = _around_id(index, tuple(nodes))
    return before + topic_id + after


@lru_cache(maxsize=256)  # the internal topics of many clusters in one process
def _around_id(index: int, nodes: tuple[int, ...]) -> tuple[bytes, bytes]:
    """The bytes of such a record before and after the topic id: all else is the same for each topic."""
    before, found, after = partition_record(_MARK, TopicPartition(index, nodes[0], list(nodes))).partition(_MARK)
    assert found, "a partition's record has the id of its topic"
    assert _MARK not in after, "and once only"
    return before, after


def create_default_topic(
    metadata: ClusterMetadata, rng: Rng, name: str, planned: int = 0, configs: Mapping[str, str] | None = None
) -> tuple[Topic, list[bytes]]:
    """A topic with default settings but for `configs`, for auto-creation. `planned`: topics before it in the batch."""
    config = metadata.config
    if name in INTERNAL_TOPICS:
        return create_internal_topic(metadata, rng, name)
    replication_factor = min(config.default_replication_factor, len(metadata.node_ids))
    start = len(metadata.topics) + planned
    replicas = place(metadata, start, config.num_partitions, replication_factor)
    return create_topic(metadata, rng, name, replicas, configs or {})


def create_internal_topic(metadata: ClusterMetadata, rng: Rng, name: str) -> tuple[Topic, list[bytes]]:
    """An internal topic; partition i is on node i modulo the number of nodes."""
    return create_topic(metadata, rng, name, *_internal_topic(metadata, name))


def _internal_topic(metadata: ClusterMetadata, name: str) -> tuple[list[list[int]], dict[str, str]]:
    """Replicas of its partitions, and its configs."""
    config = metadata.config
    if name == OFFSETS_TOPIC:
        factor = config.offsets_topic_replication_factor
        codec = config.value("offsets.topic.compression.codec")
        assert isinstance(codec, int)
        configs = {
            "cleanup.policy": "compact",
            "compression.type": _CODEC_NAMES[codec] if codec else "producer",
            "segment.bytes": str(config.offsets_topic_segment_bytes),
        }
    elif name == SHARE_STATE_TOPIC:
        factor = config.share_coordinator_state_topic_replication_factor
        configs = {
            "cleanup.policy": "delete",
            "compression.type": "producer",
            "min.insync.replicas": str(config.share_coordinator_state_topic_min_isr),
            "retention.ms": "-1",
            "segment.bytes": str(config.share_coordinator_state_topic_segment_bytes),
        }
    else:
        factor = config.transaction_state_log_replication_factor
        configs = {
            "cleanup.policy": "compact",
            "compression.type": "uncompressed",
            "min.insync.replicas": str(config.transaction_state_log_min_isr),
            "segment.bytes": str(config.transaction_state_log_segment_bytes),
            "unclean.leader.election.enable": "false",
        }
    replicas = place(metadata, 0, metadata.internal_partitions(name), min(factor, len(metadata.node_ids)))
    return replicas, configs


def ensure_internal_topic(metadata: ClusterMetadata, rng: Rng, name: str = OFFSETS_TOPIC) -> list[bytes]:
    """The records that make an internal topic; none if it exists."""
    if name in metadata.topics:
        return []
    return _new_topic(name, _new_id(metadata, rng), *_internal_topic(metadata, name))


def delete_topic(topic: Topic) -> list[bytes]:
    """Delete a topic with its partitions and configs."""
    return [encode_record(RemoveTopicRecord(topic_id=topic.topic_id), 0)]


def grow_topic(topic: Topic, replicas: Sequence[Sequence[int]]) -> list[bytes]:
    """Add partitions on these nodes."""
    first = len(topic.partitions)
    return [
        partition_record(topic.topic_id, TopicPartition(first + index, nodes[0], list(nodes)))
        for index, nodes in enumerate(replicas)
    ]


def move_partition(
    metadata: ClusterMetadata, topic: Topic, partition: TopicPartition, replicas: Sequence[int]
) -> list[bytes]:
    """Move a partition to these nodes; the leader stays if it is one of them. No records if nothing changes.

    A new leader epoch begins with a new leader, and when a replica is removed, as in Kafka.
    """
    if list(replicas) == partition.replicas:
        return []
    leader = partition.leader if partition.leader in replicas else replicas[0]
    begins_epoch = leader != partition.leader or not set(partition.replicas) <= set(replicas)
    change = PartitionChangeRecord(
        topic_id=topic.topic_id,
        partition_id=partition.index,
        replicas=list(replicas),
        isr=[node for node in replicas if node not in partition.replicas or node in partition.isr],
        leader=leader if begins_epoch else NO_LEADER_CHANGE,
    )
    least = least_in_sync(metadata.value(topic, "min.insync.replicas"), replicas)
    return [_with_eligible(partition, change, least)]


def _with_eligible(partition: TopicPartition, change: PartitionChangeRecord, least: int) -> bytes:
    """A change of replicas, with who is eligible after it: no node if enough are in sync, else who was and stays."""
    replicas, isr = change.replicas or [], change.isr or []
    eligible = [] if len(isr) >= least else [node for node in partition.elr if node in replicas and node not in isr]
    if eligible == partition.elr and not partition.last_known_elr:
        return encode_record(change, 0)
    change.eligible_leader_replicas, change.last_known_elr = eligible, []
    return encode_record(change, WITH_ELIGIBLE)


def elect_leader(topic: Topic, partition: TopicPartition, leader: int) -> list[bytes]:
    """Make another replica the leader."""
    change = PartitionChangeRecord(topic_id=topic.topic_id, partition_id=partition.index, leader=leader)
    return [encode_record(change, 0)]


def sync_of(partition: TopicPartition) -> Sync:
    """Who leads a partition and who is in sync."""
    return Sync(partition.leader, partition.isr, partition.elr, partition.last_known_elr)


def is_short_of_replicas(metadata: ClusterMetadata, topic_name: str, index: int) -> bool:
    """Whether fewer replicas of a partition are in sync than min.insync.replicas asks for."""
    topic = metadata.topics[topic_name]
    partition = topic.partitions[index]
    least = least_in_sync(metadata.value(topic, "min.insync.replicas"), partition.replicas)
    return len(partition.isr) < least


def follow_nodes(topic: Topic, partition: TopicPartition, after: Sync) -> list[bytes]:
    """Another leader, other in-sync replicas; no records if nothing changes."""
    if after == sync_of(partition):
        return []
    knows_eligible = after[2:] != sync_of(partition)[2:]
    change = PartitionChangeRecord(
        topic_id=topic.topic_id,
        partition_id=partition.index,
        isr=after.isr if after.isr != partition.isr else None,
        leader=after.leader if after.leader != partition.leader else NO_LEADER_CHANGE,
        eligible_leader_replicas=after.elr if knows_eligible else None,
        last_known_elr=after.last_known_elr if knows_eligible else None,
    )
    return [encode_record(change, WITH_ELIGIBLE if knows_eligible else 0)]


def set_feature_level(name: str, level: int) -> list[bytes]:
    """The encoded metadata record that sets a feature to a level."""
    return [encode_record(FeatureLevelRecord(name=name, feature_level=level), 0)]


def start_up(metadata: ClusterMetadata, rng: Rng) -> list[bytes]:
    """The records that a start writes after loading. Errors: ConfigError: settings do not fit the data directory.

    A new log begins with the metadata version, as Kafka's tools expect, and with `__consumer_offsets`. Partitions
    of nodes that no longer exist get present nodes as leaders and replicas.
    """
    config = metadata.config
    for name, key in (
        (OFFSETS_TOPIC, "offsets.topic.num.partitions"),
        (TRANSACTIONS_TOPIC, "transaction.state.log.num.partitions"),
        (SHARE_STATE_TOPIC, "share.coordinator.state.topic.num.partitions"),
    ):
        topic = metadata.topics.get(name)
        wanted = config.value(key)
        if topic is not None and key in config.props and wanted != len(topic.partitions):
            raise ConfigError(
                key,
                wanted,
                f"the data directory was made with {len(topic.partitions)}, and the partition of a group "
                "follows from this number; keep it or use another directory",
            )
    records = []
    if "metadata.version" not in metadata.feature_levels:
        records += set_feature_level("metadata.version", METADATA_VERSION)
    for name, level in config.feature_levels.items():
        if metadata.feature_levels.get(name) != level:
            records += set_feature_level(name, level)
    for topic in metadata.topics.values():
        for partition in topic.partitions:
            records += _with_present_nodes(metadata, topic, partition)
    return records + ensure_internal_topic(metadata, rng)


def _with_present_nodes(metadata: ClusterMetadata, topic: Topic, partition: TopicPartition) -> list[bytes]:
    present = [node for node in partition.replicas if node in metadata.node_ids]
    if len(present) == len(partition.replicas):  # all are up, and so in sync
        leader = partition.leader if partition.leader in present else present[0]
        return follow_nodes(topic, partition, Sync(leader, present, [], []))
    if not present:
        present = [metadata.node_ids[partition.index % len(metadata.node_ids)]]
    change = PartitionChangeRecord(topic_id=topic.topic_id, partition_id=partition.index, replicas=present, isr=present)
    if partition.leader not in present:
        change.leader = present[0]
    return [_with_eligible(partition, change, len(present))]
