"""Topics and their partitions as the metadata has them, and the records that say so."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import ClassVar, Final

from broker.cluster.topic_names import (
    INTERNAL_TOPICS,
)
from broker.config.config_values import Value
from protocol.messages.metadata_records import (
    ConfigRecord,
    PartitionRecord,
    encode_record,
)

WITH_ELIGIBLE: Final = 2  # the version of partition records that knows eligible leader replicas


class TopicPartition:
    """Leader (-1: none) and replicas of one partition. Whoever is up is in sync: they share one log."""

    __slots__ = ("elr", "index", "isr", "last_known_elr", "leader", "leader_epoch", "partition_epoch", "replicas")

    VOLATILE: ClassVar[Mapping[str, str]] = {}

    def __init__(
        self, index: int, leader: int, replicas: list[int], leader_epoch: int = 0, partition_epoch: int = 0
    ) -> None:
        self.index = index
        self.leader = leader
        self.replicas = replicas
        self.leader_epoch = leader_epoch
        self.partition_epoch = partition_epoch
        self.isr = list(replicas)
        self.elr: list[int] = []  # eligible leader replicas (KIP-966)
        self.last_known_elr: list[int] = []


class Topic:
    """A topic. `configs` holds only values set for it, as text."""

    __slots__ = ("configs", "internal", "name", "partitions", "topic_id", "values")

    VOLATILE: ClassVar[Mapping[str, str]] = {"values": "a cache of what configs and the broker's settings say"}

    def __init__(self, name: str, topic_id: bytes, configs: Mapping[str, str] | None = None) -> None:
        self.name = name
        self.topic_id = topic_id
        self.partitions: list[TopicPartition] = []
        self.configs: dict[str, str] = dict(configs or {})
        self.internal = name in INTERNAL_TOPICS
        self.values: dict[str, Value] = {}  # parsed values, since the last change

    def leader_epoch(self, index: int) -> int:
        """The epoch of a partition's leader. Errors: IndexError: there is no such partition."""
        return self.partitions[index].leader_epoch


def partition_record(topic_id: bytes, partition: TopicPartition) -> bytes:
    """One partition as a record."""
    return encode_record(
        PartitionRecord(
            partition_id=partition.index,
            topic_id=topic_id,
            replicas=partition.replicas,
            isr=partition.isr,
            leader=partition.leader,
            leader_epoch=partition.leader_epoch,
            partition_epoch=partition.partition_epoch,
            eligible_leader_replicas=partition.elr or None,
            last_known_elr=partition.last_known_elr or None,
        ),
        WITH_ELIGIBLE if partition.elr or partition.last_known_elr else 0,
    )


def config_record(kind: int, resource: str, key: str, value: str | None) -> bytes:
    """One setting as a record; a value of None removes it."""
    return encode_record(ConfigRecord(resource_type=kind, resource_name=resource, name=key, value=value), 0)


def config_records(kind: int, resource: str, configs: dict[str, str]) -> Iterator[bytes]:
    """A record for each setting of a resource."""
    return (config_record(kind, resource, key, value) for key, value in configs.items())
