"""CreateTopics, DeleteTopics and CreatePartitions.

CreateTopics      v4: -1 for default partitions and replication. v5: configs in the response. v7: topic ids.
DeleteTopics      v5: messages. v6: by name or id (KIP-516).
CreatePartitions  More partitions for topics (KIP-195).

Behaviour: one request is one batch: every topic in it that passes is changed together with the others.
Differs:   clients cannot create, delete or grow the topics that the broker keeps for itself. Kafka lets them; the shard
           of a group follows from the number of partitions, so groups would be lost.
Absent:    policies for topics and configs, which Kafka loads as classes; the quota on changes of topics.
Source:    Kafka's ReplicationControlManager and ControllerApis.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Protocol

from broker.base.context import Context
from broker.cluster.metadata import ClusterMetadata
from broker.cluster.metadata_plans import check_new_name, create_topic, delete_topic, grow_topic, place
from broker.cluster.topics import Topic
from broker.handlers.admin_view import after_metadata, refuse, repeated
from broker.handlers.config_entries import source_and_value
from broker.handlers.config_rules import check_topic_configs
from broker.turn.decision import Decision
from protocol.errors import ErrorCode, KafkaError
from protocol.messages.topics import (
    CreatableTopic,
    CreatableTopicConfigs,
    CreatableTopicResult,
    CreatePartitionsRequest,
    CreatePartitionsResponse,
    CreatePartitionsTopic,
    CreatePartitionsTopicResult,
    CreateTopicsRequest,
    CreateTopicsResponse,
    DeletableTopicResult,
    DeleteTopicsRequest,
    DeleteTopicsResponse,
)

if TYPE_CHECKING:
    from broker.config.settings import BrokerConfig
    from broker.coordinator.runtime import Shard

MAX_PARTITIONS_PER_REQUEST = 10_000
NO_ID = bytes(16)


class View(Protocol):
    """What these handlers use of the broker."""

    @property
    def metadata(self) -> ClusterMetadata: ...
    @property
    def metadata_shard(self) -> Shard: ...
    @property
    def config(self) -> BrokerConfig: ...


def create_topics(broker: View, ctx: Context, request: CreateTopicsRequest) -> Decision:
    """Create the valid topics; answer an error for each of the others."""
    metadata = broker.metadata
    wanted = sum(len(topic.assignments) or max(topic.num_partitions, 1) for topic in request.topics)
    if wanted > MAX_PARTITIONS_PER_REQUEST:
        raise KafkaError(ErrorCode.POLICY_VIOLATION, "Excessively large number of partitions per request.")
    twice = repeated(topic.name for topic in request.topics)
    records: list[bytes] = []
    results: dict[str, CreatableTopicResult] = {}
    planned = 0
    for asked in request.topics:
        try:
            if asked.name in twice:
                raise KafkaError(ErrorCode.INVALID_REQUEST, "Duplicate topic name.")
            check_new_name(metadata, asked.name)
            configs = _creation_configs(broker, asked)
            replicas = _replicas(metadata, asked, planned)
            topic, made = create_topic(metadata, ctx.rng, asked.name, replicas, configs)
        except KafkaError as error:
            results[asked.name] = CreatableTopicResult(name=asked.name)
            refuse(results[asked.name], error)
            continue
        planned += 1
        records += made
        results[asked.name] = CreatableTopicResult(
            name=topic.name,
            error_message=None,
            topic_id=topic.topic_id,
            num_partitions=len(topic.partitions),
            replication_factor=len(topic.partitions[0].replicas),
            configs=_config_list(broker, configs),
        )
    response = CreateTopicsResponse(topics=list(results.values()))
    return after_metadata(broker, response, () if request.validate_only else records)


def _creation_configs(broker: View, asked: CreatableTopic) -> dict[str, str]:
    nulls = [config.name for config in asked.configs if config.value is None]
    if nulls:
        raise KafkaError(ErrorCode.INVALID_CONFIG, f"Null value not supported for topic configs: {','.join(nulls)}")
    configs = {config.name: config.value for config in asked.configs if config.value is not None}
    check_topic_configs(broker.config, configs)
    return configs


def _replicas(metadata: ClusterMetadata, asked: CreatableTopic, planned: int) -> list[list[int]]:
    """The nodes of each partition, as assigned by the client or round robin."""
    if asked.assignments:
        return _assigned(metadata, asked)
    factor, count = asked.replication_factor, asked.num_partitions
    if factor < -1 or factor == 0:
        raise KafkaError(
            ErrorCode.INVALID_REPLICATION_FACTOR,
            "Replication factor must be larger than 0, or -1 to use the default value.",
        )
    if count < -1 or count == 0:
        raise KafkaError(ErrorCode.INVALID_PARTITIONS, "Number of partitions was set to an invalid non-positive value.")
    nodes = len(metadata.node_ids)
    if factor == -1:
        factor = min(metadata.config.default_replication_factor, nodes)
    if factor > nodes:
        raise KafkaError(
            ErrorCode.INVALID_REPLICATION_FACTOR,
            f"Unable to replicate the partition {factor} time(s): The target replication factor of {factor} "
            f"cannot be reached because only {nodes} broker(s) are registered.",
        )
    if count == -1:
        count = metadata.config.num_partitions
    return place(metadata, len(metadata.topics) + planned, count, factor)


def _assigned(metadata: ClusterMetadata, asked: CreatableTopic) -> list[list[int]]:
    for field, value in (
        ("replication factor", asked.replication_factor),
        ("numPartitions", asked.num_partitions),
    ):
        if value != -1:
            raise KafkaError(
                ErrorCode.INVALID_REQUEST,
                f"A manual partition assignment was specified, but {field} was not set to -1.",
            )
    by_index: dict[int, list[int]] = {}
    factor = None
    for assignment in asked.assignments:
        if assignment.partition_index in by_index:
            raise KafkaError(
                ErrorCode.INVALID_REPLICA_ASSIGNMENT,
                f"Found multiple manual partition assignments for partition {assignment.partition_index}",
            )
        check_assignment(metadata, assignment.broker_ids, factor)
        factor = len(assignment.broker_ids)
        by_index[assignment.partition_index] = assignment.broker_ids
    if sorted(by_index) != list(range(len(by_index))):
        raise KafkaError(
            ErrorCode.INVALID_REPLICA_ASSIGNMENT,
            "partitions should be a consecutive 0-based integer sequence",
        )
    return [by_index[index] for index in range(len(by_index))]


def check_assignment(metadata: ClusterMetadata, node_ids: list[int], factor: int | None) -> None:
    """Check that a partition may be on these nodes. Errors: INVALID_REPLICA_ASSIGNMENT."""
    fault = None
    if not node_ids:
        fault = "includes an empty replica list."
    for node_id in sorted(node_ids):
        if node_id not in metadata.node_ids:
            fault = fault or f"includes broker {node_id}, but no such broker is registered."
        elif node_ids.count(node_id) > 1:
            fault = fault or f"includes the broker {node_id} more than once."
    if factor is not None and len(node_ids) != factor:
        fault = fault or (
            f"includes a partition with {len(node_ids)} replica(s), but this is not consistent with previous "
            f"partitions, which have {factor} replica(s)."
        )
    if fault:
        raise KafkaError(ErrorCode.INVALID_REPLICA_ASSIGNMENT, f"The manual partition assignment {fault}")


def _config_list(broker: View, configs: Mapping[str, str]) -> list[CreatableTopicConfigs]:
    return [
        CreatableTopicConfigs(
            name=key,
            value=configs.get(key, value),  # as it was sent, not as it is understood
            read_only=False,
            config_source=source,
            is_sensitive=False,
        )
        for key, source, value in source_and_value(broker.config, configs)
    ]


def delete_topics(broker: View, ctx: Context, request: DeleteTopicsRequest) -> Decision:
    """Delete topics by name or id. A topic named twice, even once by name and once by id, is not deleted."""
    if not broker.config.delete_topic_enable:
        if ctx.api_version < 3:
            raise KafkaError(ErrorCode.INVALID_REQUEST, "This version does not support topic deletion.")
        raise KafkaError(ErrorCode.TOPIC_DELETION_DISABLED, "Topic deletion is disabled.")
    results: list[DeletableTopicResult] = []
    named: list[str] = list(request.topic_names)
    ids: list[bytes] = []
    for state in request.topics:
        if state.name is None and state.topic_id == NO_ID:
            results.append(_refused(None, NO_ID, "Neither topic name nor id were specified."))
        elif state.name is not None and state.topic_id != NO_ID:
            results.append(_refused(state.name, state.topic_id, "You may not specify both topic name and topic id."))
        elif state.name is not None:
            named.append(state.name)
        else:
            ids.append(state.topic_id)
    records: list[bytes] = []
    for topic in _to_delete(broker.metadata, named, ids, results):
        if topic.internal:
            message = f"Deletion of internal topic {topic.name} is prohibited."
            results.append(_refused(topic.name, topic.topic_id, message, ErrorCode.INVALID_TOPIC_EXCEPTION))
            continue
        records += delete_topic(topic)
        results.append(DeletableTopicResult(name=topic.name, topic_id=topic.topic_id, error_message=None))
    return after_metadata(broker, DeleteTopicsResponse(responses=results), records)


def _to_delete(
    metadata: ClusterMetadata, names: list[str], ids: list[bytes], results: list[DeletableTopicResult]
) -> Iterable[Topic]:
    """The existing topics that are named once; `results` gets an error for each of the others."""
    found: dict[bytes, Topic] = {}
    ids_twice, names_twice, all_ids = repeated(ids), repeated(names), set(ids)
    for topic_id in dict.fromkeys(ids):
        topic = metadata.topics_by_id.get(topic_id)
        if topic_id in ids_twice:
            results.append(_refused(None, topic_id, "Duplicate topic id."))
        elif topic is None:
            message = "This server does not host this topic ID."
            results.append(_refused(None, topic_id, message, ErrorCode.UNKNOWN_TOPIC_ID))
        else:
            found[topic_id] = topic
    for name in dict.fromkeys(names):
        topic = metadata.topics.get(name)
        if name in names_twice:
            results.append(_refused(name, NO_ID, "Duplicate topic name."))
        elif topic is None:
            message = "This server does not host this topic-partition."
            results.append(_refused(name, NO_ID, message, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION))
        elif topic.topic_id in all_ids:
            found.pop(topic.topic_id, None)
            message = "The provided topic name maps to an ID that was already supplied."
            results.append(_refused(name, topic.topic_id, message))
        else:
            found[topic.topic_id] = topic
    return found.values()


def _refused(
    name: str | None, topic_id: bytes, message: str, code: ErrorCode = ErrorCode.INVALID_REQUEST
) -> DeletableTopicResult:
    return DeletableTopicResult(name=name, topic_id=topic_id, error_code=code, error_message=message)


def create_partitions(broker: View, ctx: Context, request: CreatePartitionsRequest) -> Decision:
    """Grow topics to the requested number of partitions."""
    twice = repeated(topic.name for topic in request.topics)
    results: dict[str, CreatePartitionsTopicResult] = {}
    records: list[bytes] = []
    for asked in request.topics:
        result = results[asked.name] = CreatePartitionsTopicResult(name=asked.name, error_message=None)
        try:
            if asked.name in twice:
                raise KafkaError(ErrorCode.INVALID_REQUEST, "Duplicate topic name.")
            records += _grown(broker.metadata, asked)
        except KafkaError as error:
            refuse(result, error)
    response = CreatePartitionsResponse(results=list(results.values()))
    return after_metadata(broker, response, () if request.validate_only else records)


def _grown(metadata: ClusterMetadata, asked: CreatePartitionsTopic) -> list[bytes]:
    topic = metadata.topics.get(asked.name)
    if topic is None:
        raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    present = len(topic.partitions)
    if asked.count == present:
        raise KafkaError(ErrorCode.INVALID_PARTITIONS, f"Topic already has {present} partition(s).")
    if asked.count < present:
        raise KafkaError(
            ErrorCode.INVALID_PARTITIONS,
            f"The topic {asked.name} currently has {present} partition(s); {asked.count} would not be an increase.",
        )
    if topic.internal:
        raise KafkaError(
            ErrorCode.INVALID_PARTITIONS, f"The number of partitions of internal topic {topic.name} is fixed."
        )
    more = asked.count - present
    if more > MAX_PARTITIONS_PER_REQUEST:
        raise KafkaError(ErrorCode.POLICY_VIOLATION, "Excessively large number of partitions per request.")
    first = topic.partitions[0]
    factor = len(first.replicas)
    if asked.assignments is None:
        is_up = first.leader in metadata.node_ids
        start = (metadata.node_ids.index(first.leader) if is_up else 0) + present
        return grow_topic(topic, place(metadata, start, more, factor))
    if len(asked.assignments) != more:
        raise KafkaError(
            ErrorCode.INVALID_REPLICA_ASSIGNMENT,
            f"Attempted to add {more} additional partition(s), but only {len(asked.assignments)} "
            "assignment(s) were specified.",
        )
    for assignment in asked.assignments:
        check_assignment(metadata, assignment.broker_ids, factor)
    return grow_topic(topic, [assignment.broker_ids for assignment in asked.assignments])
