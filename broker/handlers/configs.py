"""DescribeConfigs and its changes: configs of topics, brokers, loggers and groups.

DescribeConfigs          v1: sources and synonyms. v3: types and documentation.
AlterConfigs             Replaces all configs of a resource; deprecated, still used by older tools.
IncrementalAlterConfigs  SET, DELETE, APPEND, SUBTRACT, key by key (KIP-339). Loggers: KIP-412.
ListConfigResources      v0: client metrics only (KIP-714). v1: every kind (KIP-1142).

Behaviour: the changes of one resource are applied together or refused together; all resources of a request are one
           batch. Levels of loggers change at once and are forgotten by a restart. Any node answers for every node:
           they are one process.
Differs:   the description of a broker lists the keys that mean something in one process, and momus's own. Those of the
           quorum, of replication between brokers, tiered storage and authentication are left out. Its loggers are
           momus's own. as.version limits the versions of APIs and the levels of features; settings, defaults and rules
           are those of Kafka 4.4 with it too.
Absent:    subscriptions to client metrics.
Source:    Kafka's ConfigHelper, ConfigAdminManager and ConfigurationControlManager.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any, Protocol

from broker.base.context import Context
from broker.cluster.metadata import BROKER, BROKER_LOGGER, GROUP, TOPIC
from broker.cluster.topic_names import name_fault
from broker.cluster.topics import config_record
from broker.config.config_defs import Row
from broker.config.settings import BROKER_KEYS, GROUP_KEYS, TOPIC_KEYS
from broker.handlers import config_entries as entries
from broker.handlers.admin_view import after_metadata, refuse, repeated
from broker.handlers.config_rules import check_broker_configs, check_group_configs, check_topic_configs
from broker.turn.decision import Decision
from protocol.errors import ErrorCode, KafkaError
from protocol.messages.configs import (
    AlterConfigsRequest,
    AlterConfigsResponse,
    AlterConfigsResponseAlterConfigsResourceResponse,
    ConfigResource,
    DescribeConfigsRequest,
    DescribeConfigsResource,
    DescribeConfigsResourceResult,
    DescribeConfigsResponse,
    DescribeConfigsResult,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
    IncrementalAlterConfigsResponseAlterConfigsResourceResponse,
    ListConfigResourcesRequest,
    ListConfigResourcesResponse,
)

if TYPE_CHECKING:
    from broker.cluster.metadata import ClusterMetadata
    from broker.cluster.nodes import Nodes
    from broker.config.settings import BrokerConfig
    from broker.coordinator.runtime import Shard

CLIENT_METRICS = 16
SET, DELETE, APPEND, SUBTRACT = 0, 1, 2, 3
_KEYS: dict[int, dict[str, Row]] = {TOPIC: TOPIC_KEYS, BROKER: BROKER_KEYS, GROUP: GROUP_KEYS}


class View(Protocol):
    """What these handlers use of the broker."""

    @property
    def metadata(self) -> ClusterMetadata: ...
    @property
    def metadata_shard(self) -> Shard: ...
    @property
    def config(self) -> BrokerConfig: ...
    @property
    def nodes(self) -> Nodes: ...


def describe_configs(broker: View, ctx: Context, request: DescribeConfigsRequest) -> Decision:
    """Answer the configs of each resource, or its error. A resource of an unknown type refuses all of them."""
    for resource in request.resources:
        if resource.resource_type not in (TOPIC, BROKER, BROKER_LOGGER, CLIENT_METRICS, GROUP):
            raise KafkaError(ErrorCode.INVALID_REQUEST, f"Unexpected resource type {resource.resource_type}")
    results = []
    for resource in request.resources:
        result = DescribeConfigsResult(
            resource_type=resource.resource_type, resource_name=resource.resource_name, error_message=None
        )
        detail = entries.Detail(resource.configuration_keys, request.include_synonyms, request.include_documentation)
        try:
            result.configs = _describe(broker, ctx, resource, detail)
        except KafkaError as error:
            refuse(result, error)
        results.append(result)
    return Decision(DescribeConfigsResponse(results=results))


def _describe(
    broker: View, ctx: Context, resource: DescribeConfigsResource, detail: entries.Detail
) -> list[DescribeConfigsResourceResult]:
    kind, name = resource.resource_type, resource.resource_name
    config, node = broker.config, str(ctx.node_id)
    if kind == TOPIC:
        _check_topic_name(name)
        topic = broker.metadata.topics.get(name)
        if topic is None:
            raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
        return entries.topic_entries(config, topic.configs, node, detail)
    if kind == BROKER:
        if not name:
            return entries.all_nodes_entries(config, detail)
        return entries.node_entries(config, _node_of(broker, name), detail)
    if kind == BROKER_LOGGER:
        _node_of(broker, name)
        return entries.logger_entries(detail)
    if kind == GROUP:
        if not name:
            raise KafkaError(ErrorCode.INVALID_REQUEST, "Group name must not be empty")
        return entries.group_entries(config, broker.metadata.group_configs.get(name, {}), node, detail)
    raise KafkaError(ErrorCode.INVALID_REQUEST, f"Unsupported resource type {kind}")


def _check_topic_name(name: str) -> None:
    fault = name_fault(name)
    if fault:
        raise KafkaError(ErrorCode.INVALID_TOPIC_EXCEPTION, fault)


def _node_of(broker: View, name: str) -> str:
    """The node that a resource names. Errors: INVALID_REQUEST."""
    text = name.strip().removeprefix("+")
    if not (text.isascii() and text.isdigit()):
        raise KafkaError(ErrorCode.INVALID_REQUEST, f"Node id must be an integer, but it is: {name}")
    known = broker.nodes.ids
    if int(text) not in known:
        expected = " or ".join(map(str, known))
        raise KafkaError(ErrorCode.INVALID_REQUEST, f"Unexpected broker id, expected {expected}, but received {name}")
    return str(int(text))


def alter_configs(broker: View, ctx: Context, request: AlterConfigsRequest) -> Decision:
    """Replace all configs of a resource: keys that are not sent lose their values."""

    def wanted(resource: Any, present: Mapping[str, str]) -> dict[str, str]:
        return {config.name: config.value for config in resource.configs}

    return _alter(
        broker,
        request,
        wanted,
        AlterConfigsResponse,
        AlterConfigsResponseAlterConfigsResourceResponse,
        (TOPIC, BROKER, GROUP),
    )


def incremental_alter_configs(broker: View, ctx: Context, request: IncrementalAlterConfigsRequest) -> Decision:
    """Change single keys."""
    return _alter(
        broker,
        request,
        _changed,
        IncrementalAlterConfigsResponse,
        IncrementalAlterConfigsResponseAlterConfigsResourceResponse,
        (TOPIC, BROKER, GROUP, BROKER_LOGGER),
    )


def _changed(resource: Any, present: Mapping[str, str]) -> dict[str, str]:
    """The configs after the operations of an incremental change."""
    kind = resource.resource_type
    configs = dict(present)
    for config in resource.configs:
        key, operation = config.name, config.config_operation
        if operation == SET:
            configs[key] = config.value
        elif operation == DELETE:
            configs.pop(key, None)
        elif operation in (APPEND, SUBTRACT):
            row = _KEYS[kind].get(key)
            if row is None or row[1] != "LIST":
                word = "APPEND" if operation == APPEND else "SUBTRACT"
                raise KafkaError(ErrorCode.INVALID_CONFIG, f"Can't {word} to key {key} because its type is not LIST.")
            configs[key] = _edited(configs.get(key, row[2] or ""), operation, config.value)
        else:
            raise KafkaError(ErrorCode.INVALID_REQUEST, f"Unknown operations type {operation}")
    return configs


def _edited(text: str, operation: int, change: str) -> str:
    words = [word for word in text.split(",") if word]
    changes = change.split(",")
    if operation == APPEND:
        return ",".join(dict.fromkeys(words + changes))
    return ",".join(word for word in words if word not in changes)


def _alter(
    broker: View,
    request: Any,
    wanted: Callable[[Any, Mapping[str, str]], dict[str, str]],
    response_class: Callable[..., Any],
    result_class: Callable[..., Any],
    kinds: Iterable[int],
) -> Decision:
    records: list[bytes] = []
    results = []
    twice = repeated((resource.resource_type, resource.resource_name) for resource in request.resources)
    for resource in request.resources:
        kind, name = resource.resource_type, resource.resource_name
        result = result_class(resource_type=kind, resource_name=name, error_message=None)
        results.append(result)
        try:
            if (kind, name) in twice:
                raise KafkaError(ErrorCode.INVALID_REQUEST, "Each resource must appear at most once.")
            if kind not in kinds:
                raise KafkaError(ErrorCode.INVALID_REQUEST, f"Unknown resource type {kind}")
            _check_keys(resource)
            if kind == BROKER_LOGGER:
                _node_of(broker, name)
                _set_levels(resource, request.validate_only)
            else:
                if kind == BROKER and name:
                    name = _node_of(broker, name)
                present = _present(broker, kind, name)
                configs = wanted(resource, present)
                _check(broker, kind, name, configs)
                records += _changes(kind, name, present, configs)
        except KafkaError as error:
            refuse(result, error)
    response = response_class(responses=results)
    return after_metadata(broker, response, () if request.validate_only else records)


def _check_keys(resource: Any) -> None:
    if repeated(config.name for config in resource.configs):
        raise KafkaError(ErrorCode.INVALID_REQUEST, "Error due to duplicate config keys")
    nulls = [
        config.name
        for config in resource.configs
        if config.value is None and getattr(config, "config_operation", SET) != DELETE
    ]
    if nulls:
        raise KafkaError(ErrorCode.INVALID_REQUEST, f"Null value not supported for : {', '.join(nulls)}")


def _present(broker: View, kind: int, name: str) -> Mapping[str, str]:
    metadata = broker.metadata
    if kind == TOPIC:
        topic = metadata.topics.get(name)
        return topic.configs if topic else {}
    return (metadata.broker_configs if kind == BROKER else metadata.group_configs).get(name, {})


def _check(broker: View, kind: int, name: str, configs: Mapping[str, str]) -> None:
    if kind == TOPIC:
        if not name:
            raise KafkaError(ErrorCode.INVALID_REQUEST, "Default topic resources are not allowed.")
        _check_topic_name(name)
        check_topic_configs(broker.config, configs)
        if name not in broker.metadata.topics:
            raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"The topic '{name}' does not exist.")
    elif kind == GROUP:
        if not name:
            raise KafkaError(ErrorCode.INVALID_REQUEST, "Default group resources are not allowed.")
        check_group_configs(broker.config, configs)
    else:
        check_broker_configs(configs)


def _changes(kind: int, name: str, present: Mapping[str, str], configs: Mapping[str, str]) -> list[bytes]:
    records = [config_record(kind, name, key, text) for key, text in configs.items() if present.get(key) != text]
    return records + [config_record(kind, name, key, None) for key in present if key not in configs]


def _set_levels(resource: Any, validate_only: bool) -> None:
    """Set logger levels, all or none."""
    changes = []
    for config in resource.configs:
        logger = entries.logger_named(config.name)
        if logger is None:
            raise KafkaError(ErrorCode.INVALID_CONFIG, f"Logger {config.name} does not exist!")
        if config.config_operation == SET:
            if config.value not in entries.LEVELS:
                raise KafkaError(
                    ErrorCode.INVALID_CONFIG,
                    f"Cannot set the log level of {config.name} to {config.value} as it is not a supported log "
                    f"level. Valid log levels are {', '.join(sorted(entries.LEVELS))}",
                )
            changes.append((logger, entries.LEVELS[config.value]))
        elif config.config_operation != DELETE:
            raise KafkaError(ErrorCode.INVALID_REQUEST, "Levels can only be set and deleted.")
        elif config.name == "root":
            raise KafkaError(ErrorCode.INVALID_REQUEST, "Removing the log level of the root logger is not allowed")
        else:
            changes.append((logger, 0))
    if not validate_only:
        for logger, level in changes:
            logger.setLevel(level)


def list_config_resources(broker: View, ctx: Context, request: ListConfigResourcesRequest) -> Decision:
    """Answer the resources that can be described."""
    nodes = [str(node_id) for node_id in broker.nodes.ids]
    names: dict[int, Iterable[str]] = {
        GROUP: broker.metadata.group_configs,
        CLIENT_METRICS: (),
        BROKER_LOGGER: nodes,
        BROKER: nodes,
        TOPIC: broker.metadata.topics,
    }
    if ctx.api_version == 0:
        names = {CLIENT_METRICS: ()}
    wanted = request.resource_types or list(names)
    if not set(wanted) <= set(names):
        raise KafkaError(ErrorCode.UNSUPPORTED_VERSION, "A resource type is not known here")
    return Decision(
        ListConfigResourcesResponse(
            config_resources=[
                ConfigResource(resource_type=kind, resource_name=name)
                for kind, found in names.items()
                if kind in wanted
                for name in found
            ]
        )
    )
