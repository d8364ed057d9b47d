"""Alters and deletes topics, by the requests of Kafka's admin clients."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, TypedDict

from broker.shell.control.calls.records import TIMEOUT_MS, check_answer
from broker.shell.control.routes import Call, RefusedError
from broker.shell.local_client import LocalClient
from protocol.messages.configs import (
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsRequestAlterableConfig,
    IncrementalAlterConfigsRequestAlterConfigsResource,
)
from protocol.messages.topics import (
    CreatePartitionsRequest,
    CreatePartitionsTopic,
    DeleteTopicsRequest,
    DeleteTopicState,
)

if TYPE_CHECKING:
    from broker.shell.cluster_server import ClusterServer

TOPIC_RESOURCE: Final = 2
SET, DELETE = 0, 1
ALTER_VERSION: Final = 1
PARTITIONS_VERSION: Final = 3
DELETE_VERSION: Final = 6
NO_ID: Final = bytes(16)


class NamedTopic(TypedDict):
    """The name of a topic."""

    topic: str


class AlteredTopic(NamedTopic):
    """A topic and its partitions, as they are now."""

    partitions: int


async def alter_topic(cluster: ClusterServer, call: Call) -> AlteredTopic:
    """Set and unset settings, then add partitions; each is checked before anything is changed. Errors: RefusedError."""
    name, body, client = call.words["topic"], call.body, LocalClient(cluster.broker, cluster.config)
    if name not in cluster.broker.metadata.topics:
        raise RefusedError(404, f"no such topic: {name:.100}")
    changes = [_change(key, SET, value) for key, value in body.get("config", {}).items()]
    changes += [_change(key, DELETE, None) for key in body.get("unset", ())]
    resource = IncrementalAlterConfigsRequestAlterConfigsResource(
        resource_type=TOPIC_RESOURCE, resource_name=name, configs=changes
    )
    places = CreatePartitionsTopic(name=name, count=body.get("partitions", 0), assignments=None)
    try:
        for only_asks in (True, False):
            if changes:
                request = IncrementalAlterConfigsRequest(resources=[resource], validate_only=only_asks)
                (row,) = (await client.call(request, ALTER_VERSION)).responses
                check_answer(row.error_code, f"topic {name}", row.error_message)
            if "partitions" in body:
                more = CreatePartitionsRequest(topics=[places], timeout_ms=TIMEOUT_MS, validate_only=only_asks)
                (result,) = (await client.call(more, PARTITIONS_VERSION)).results
                check_answer(result.error_code, f"topic {name}", result.error_message)
    finally:
        client.close()
    return {"topic": name, "partitions": len(cluster.broker.metadata.topics[name].partitions)}


def _change(key: str, operation: int, value: str | None) -> IncrementalAlterConfigsRequestAlterableConfig:
    return IncrementalAlterConfigsRequestAlterableConfig(name=key, config_operation=operation, value=value)


async def delete_topic(cluster: ClusterServer, call: Call) -> NamedTopic:
    """Delete a topic with its records. Errors: RefusedError."""
    name, client = call.words["topic"], LocalClient(cluster.broker, cluster.config)
    request = DeleteTopicsRequest(topics=[DeleteTopicState(name=name, topic_id=NO_ID)], timeout_ms=TIMEOUT_MS)
    try:
        (row,) = (await client.call(request, DELETE_VERSION)).responses
    finally:
        client.close()
    check_answer(row.error_code, f"topic {name:.100}", row.error_message)
    return {"topic": name}
