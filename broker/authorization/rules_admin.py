"""What requests about topics, settings and the cluster need."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

from broker.authorization.access import FAILED, Access
from broker.authorization.split import Merge, appending, chain, partition, refuse_parts
from broker.cluster.acls import (
    ALTER,
    ALTER_CONFIGS,
    CLUSTER,
    CLUSTER_NAME,
    CREATE,
    DELETE,
    DESCRIBE,
    DESCRIBE_CONFIGS,
    GROUP,
    TOPIC,
)
from protocol.errors import ErrorCode
from protocol.messages.cluster import MetadataResponseTopic
from protocol.messages.topics import DeletableTopicResult

if TYPE_CHECKING:
    from broker.base.context import Context
    from broker.cluster.metadata import ClusterMetadata

NO_ID: Final = bytes(16)
NOT_ASKED: Final = -(1 << 31)
IDS_SINCE: Final = 12  # of Metadata: topics may be named by their ids
DENIED: Final = ErrorCode.TOPIC_AUTHORIZATION_FAILED
DENIED_TEXT: Final = "Topic authorization failed."
_TEXTS: Final = {
    TOPIC: DENIED_TEXT,
    GROUP: "Group authorization failed.",
    CLUSTER: "Cluster authorization failed.",
}
_OF_CONFIGS: Final = {2: TOPIC, 32: GROUP}  # by config resource type; others are settings of the cluster


def cluster(operation: int) -> Callable[[Access, ClusterMetadata, Context, Any], None]:
    """An operation on the cluster."""

    def rule(access: Access, metadata: ClusterMetadata, ctx: Context, request: Any) -> None:
        access.need_cluster(operation)

    return rule


def metadata(access: Access, metadata: ClusterMetadata, ctx: Context, request: Any) -> Merge | None:
    """DESCRIBE on each topic, and CREATE on those that are to be made. Of all topics those that may be described."""
    asked = request.topics
    everything = asked is None or (ctx.api_version == 0 and not asked)
    refused: list[MetadataResponseTopic] = []
    if not everything and ctx.api_version < IDS_SINCE and any(t.topic_id != NO_ID or t.name is None for t in asked):
        return None  # the handler refuses all of it
    if not everything:
        known = metadata.topics_by_id
        if ids := [topic for topic in asked if topic.topic_id != NO_ID]:
            kept, denied = partition(
                ids, lambda topic: (t := known.get(topic.topic_id)) is None or access.may(DESCRIBE, TOPIC, t.name)
            )
            refused = [MetadataResponseTopic(error_code=DENIED, name=None, topic_id=topic.topic_id) for topic in denied]
        else:
            allowed = access.allowed(DESCRIBE, TOPIC, [topic.name for topic in asked if topic.name is not None])
            kept, denied = partition(asked, lambda topic: topic.name is None or topic.name in allowed)
            kept, uncreatable = _creatable(access, metadata, request, kept)
            refused = [
                MetadataResponseTopic(error_code=DENIED, name=topic.name, topic_id=NO_ID)
                for topic in {each.name: each for each in (*uncreatable, *denied)}.values()
            ]
        request.topics = kept
    wants_none = not everything and not request.topics

    def merge(response: Any) -> Any:
        if wants_none:
            response.topics = []  # an empty list asks for all topics in v0
        elif everything:
            response.topics = [each for each in response.topics if access.may(DESCRIBE, TOPIC, each.name, log=False)]
        for topic in response.topics:
            if topic.topic_authorized_operations != NOT_ASKED and topic.name is not None:
                topic.topic_authorized_operations = access.operations(TOPIC, topic.name)
        response.topics = [*response.topics, *refused]
        return cluster_operations(access, response)

    return merge


def _creatable(
    access: Access, metadata: ClusterMetadata, request: Any, topics: list[Any]
) -> tuple[list[Any], list[Any]]:
    if not request.allow_auto_topic_creation or not metadata.config.auto_create_topics_enable:
        return topics, []
    missing = [topic.name for topic in topics if topic.name is not None and topic.name not in metadata.topics]
    if not missing or access.may_cluster(CREATE, log=False):
        return topics, []
    allowed = access.allowed(CREATE, TOPIC, missing)
    return partition(topics, lambda topic: topic.name in metadata.topics or topic.name in allowed)


def cluster_operations(access: Access, response: Any) -> Any:
    """Tell what the client may do with the cluster, if it asks and may describe it."""
    if response.cluster_authorized_operations != NOT_ASKED:
        may = access.may_cluster(DESCRIBE)
        response.cluster_authorized_operations = access.operations(CLUSTER, CLUSTER_NAME) if may else 0
    return response


def describe_cluster(access: Access, metadata: ClusterMetadata, ctx: Context, request: Any) -> Merge:
    """Nothing; what the client may do is returned if it may describe the cluster."""
    return lambda response: cluster_operations(access, response)


def create_topics(access: Access, metadata: ClusterMetadata, ctx: Context, request: Any) -> Merge | None:
    """CREATE on the cluster or on each topic; settings are shown with DESCRIBE_CONFIGS."""
    refused: list[Any] = []
    if not access.may_cluster(CREATE, log=False):
        allowed = access.allowed(CREATE, TOPIC, [topic.name for topic in request.topics])
        request.topics, refused = partition(request.topics, lambda topic: topic.name in allowed)
    described = access.allowed(DESCRIBE_CONFIGS, TOPIC, [topic.name for topic in request.topics], log=False)

    def hide(response: Any) -> Any:
        for topic in response.topics:
            if not topic.error_code and topic.name not in described:
                topic.topic_config_error_code = DENIED
                topic.num_partitions = topic.replication_factor = -1
                topic.configs = []
        return response

    return chain(hide, refuse_parts(ctx, request, "topics", refused, "topics", DENIED, "Authorization failed."))


def delete_topics(access: Access, metadata: ClusterMetadata, ctx: Context, request: Any) -> Merge | None:
    """DELETE on the cluster or on each topic; who may not describe a topic is not told its name."""
    if access.may_cluster(DELETE, log=False):
        return None
    if ctx.api_version >= 6:
        pairs = [(topic, _name(metadata, topic)) for topic in request.topics]
    else:
        pairs = [(name, name) for name in request.topic_names]
    names = [name for _, name in pairs if name is not None]
    described, deletable = access.allowed(DESCRIBE, TOPIC, names), access.allowed(DELETE, TOPIC, names)
    kept, refused = [], []
    for topic, name in pairs:
        topic_id = NO_ID if isinstance(topic, str) or topic.name is not None else topic.topic_id
        is_hidden = name is not None and name not in described
        is_there = name in metadata.topics
        if name is None or name in deletable or (not is_hidden and not is_there):
            kept.append(topic)
            continue
        shown = None if topic_id != NO_ID and is_hidden else name
        refused.append(
            DeletableTopicResult(name=shown, topic_id=topic_id, error_code=DENIED, error_message=DENIED_TEXT)
        )
    setattr(request, "topics" if ctx.api_version >= 6 else "topic_names", kept)
    return appending("responses", refused) if refused else None


def _name(metadata: ClusterMetadata, topic: Any) -> str | None:
    if topic.name is not None:
        return str(topic.name)
    found = metadata.topics_by_id.get(topic.topic_id)
    return None if found is None else found.name


def create_partitions(access: Access, metadata: ClusterMetadata, ctx: Context, request: Any) -> Merge | None:
    """ALTER on each topic."""
    allowed = access.allowed(ALTER, TOPIC, [topic.name for topic in request.topics])
    request.topics, refused = partition(request.topics, lambda topic: topic.name in allowed)
    return refuse_parts(ctx, request, "topics", refused, "results", DENIED)


def describe_configs(access: Access, metadata: ClusterMetadata, ctx: Context, request: Any) -> Merge | None:
    """DESCRIBE_CONFIGS on each topic, group, or the cluster."""
    return _configs(access, ctx, request, DESCRIBE_CONFIGS, "results")


def alter_configs(access: Access, metadata: ClusterMetadata, ctx: Context, request: Any) -> Merge | None:
    """ALTER_CONFIGS on each topic, group, or the cluster."""
    return _configs(access, ctx, request, ALTER_CONFIGS, "responses")


def _configs(access: Access, ctx: Context, request: Any, operation: int, answered: str) -> Merge | None:
    def is_allowed(resource: Any) -> bool:
        kind = _OF_CONFIGS.get(resource.resource_type, CLUSTER)
        return access.may(operation, kind, CLUSTER_NAME if kind == CLUSTER else resource.resource_name)

    request.resources, refused = partition(request.resources, is_allowed)
    by_kind: dict[int, list[Any]] = {}
    for resource in refused:
        by_kind.setdefault(_OF_CONFIGS.get(resource.resource_type, CLUSTER), []).append(resource)
    return chain(
        *(
            refuse_parts(ctx, request, "resources", resources, answered, FAILED[kind], _TEXTS[kind])
            for kind, resources in by_kind.items()
        )
    )
