"""What requests about groups and their offsets need."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from typing import TYPE_CHECKING, Any

from broker.authorization.access import Access
from broker.authorization.split import Merge, appending, chain, partition, refuse_parts
from broker.cluster.acls import CLUSTER_ACTION, DELETE, DESCRIBE, GROUP, READ, TOPIC, TRANSACTIONAL_ID
from broker.cluster.topic_names import INTERNAL_TOPICS, name_fault
from protocol.api import ApiKey
from protocol.errors import ErrorCode, KafkaError
from protocol.messages.cluster import Coordinator
from protocol.messages.offsets import (
    OffsetDeleteResponsePartition,
    OffsetDeleteResponseTopic,
    OffsetFetchResponseGroup,
    OffsetFetchResponsePartition,
    OffsetFetchResponsePartitions,
    OffsetFetchResponseTopic,
    OffsetFetchResponseTopics,
)

if TYPE_CHECKING:
    from broker.base.context import Context
    from broker.cluster.metadata import ClusterMetadata

TOPIC_IDS_SINCE: dict[int, int] = {ApiKey.OFFSET_COMMIT: 10, ApiKey.OFFSET_FETCH: 10}
NEVER = 1 << 15
DENIED_TOPIC = ErrorCode.TOPIC_AUTHORIZATION_FAILED
DENIED_GROUP = ErrorCode.GROUP_AUTHORIZATION_FAILED
NOT_ASKED = -(1 << 31)


def member(access: Access, metadata: ClusterMetadata, ctx: Context, request: Any) -> None:
    """READ on the group: JoinGroup, SyncGroup, Heartbeat, LeaveGroup, StreamsGroupTopologyDescriptionUpdate."""
    access.need(READ, GROUP, request.group_id)


def heartbeat(access: Access, metadata: ClusterMetadata, ctx: Context, request: Any) -> None:
    """READ on the group, DESCRIBE on each subscribed topic. Errors: TOPIC_AUTHORIZATION_FAILED of the whole request."""
    access.need(READ, GROUP, request.group_id)
    names = list(dict.fromkeys(request.subscribed_topic_names or ()))
    if len(access.allowed(DESCRIBE, TOPIC, names)) < len(names):
        raise KafkaError(DENIED_TOPIC)


def consumer_heartbeat(access: Access, metadata: ClusterMetadata, ctx: Context, request: Any) -> Merge | None:
    """As `heartbeat`; a regular expression stands for topics that the client may describe: see `regex.resolve`."""
    heartbeat(access, metadata, ctx, request)
    return None


def streams_heartbeat(access: Access, metadata: ClusterMetadata, ctx: Context, request: Any) -> None:
    """READ on the group, DESCRIBE on each topic of the topology; the handler asks for CREATE on those it makes."""
    access.need(READ, GROUP, request.group_id)
    if request.topology is None:
        return
    names: dict[str, None] = {}
    for each in request.topology.subtopologies:
        names.update(dict.fromkeys([*each.source_topics, *each.repartition_sink_topics]))
        names.update((topic.name, None) for topic in (*each.repartition_source_topics, *each.state_changelog_topics))
    if any(name in INTERNAL_TOPICS or name_fault(name) for name in names):
        return  # the handler refuses all of it
    if len(access.allowed(DESCRIBE, TOPIC, names)) < len(names):
        raise KafkaError(DENIED_TOPIC)


def offset_commit(access: Access, metadata: ClusterMetadata, ctx: Context, request: Any) -> Merge | None:
    """READ on the group and on each topic."""
    access.need(READ, GROUP, request.group_id)
    return _topics_read(access, metadata, ctx, request)


def _topics_read(access: Access, metadata: ClusterMetadata, ctx: Context, request: Any) -> Merge | None:
    name_of = _names(metadata, ctx)
    allowed = access.allowed(READ, TOPIC, [name for topic in request.topics if (name := name_of(topic)) is not None])
    request.topics, refused = partition(
        request.topics, lambda topic: (name := name_of(topic)) is None or name in allowed
    )
    return refuse_parts(ctx, request, "topics", refused, "topics", DENIED_TOPIC)


def _names(metadata: ClusterMetadata, ctx: Context) -> Callable[[Any], str | None]:
    """The name of a topic in a request, by its id in versions that have ids; None: unknown, which the handler reports.

    Such a version may have an id of zeros: no topic, and not the topic without a name.
    """
    by_id = ctx.api_version >= TOPIC_IDS_SINCE.get(ctx.api_key, NEVER)

    def name_of(topic: Any) -> str | None:
        if not by_id:
            return str(topic.name)
        found = metadata.topics_by_id.get(topic.topic_id)
        return None if found is None else found.name

    return name_of


def offset_fetch(access: Access, metadata: ClusterMetadata, ctx: Context, request: Any) -> Merge | None:
    """DESCRIBE on each group and topic; of all topics those that the client may describe."""
    if ctx.api_version < 8:
        return _offset_fetch_of_one(access, request)
    kept, refused = partition(request.groups, lambda group: access.may(DESCRIBE, GROUP, group.group_id))
    failed = [OffsetFetchResponseGroup(group_id=group.group_id, error_code=DENIED_GROUP) for group in refused]
    request.groups = kept
    name_of = _names(metadata, ctx)
    errors: dict[str, list[OffsetFetchResponseTopics]] = {}
    of_all = set()
    for group in kept:
        if group.topics is None:
            of_all.add(group.group_id)
            continue
        allowed = access.allowed(DESCRIBE, TOPIC, [n for topic in group.topics if (n := name_of(topic)) is not None])
        group.topics, denied = partition(group.topics, partial(_is_among, name_of, allowed))
        errors[group.group_id] = [
            OffsetFetchResponseTopics(
                name=topic.name,
                topic_id=topic.topic_id,
                partitions=[
                    OffsetFetchResponsePartitions(
                        partition_index=index, committed_offset=-1, metadata="", error_code=DENIED_TOPIC
                    )
                    for index in topic.partition_indexes
                ],
            )
            for topic in denied
        ]

    def merge(response: Any) -> Any:
        for group in response.groups:
            if group.group_id in of_all:
                group.topics = _described(access, name_of, group.topics)
            elif not group.error_code:
                group.topics = [*group.topics, *errors.get(group.group_id, ())]
        response.groups = [*response.groups, *failed]
        return response

    return merge


def _is_among(name_of: Callable[[Any], str | None], names: set[str], topic: Any) -> bool:
    name = name_of(topic)
    return name is None or name in names


def _described(access: Access, name_of: Callable[[Any], str | None], topics: Iterable[Any]) -> list[Any]:
    named = [(name_of(topic), topic) for topic in topics]
    allowed = access.allowed(DESCRIBE, TOPIC, [name for name, _ in named if name is not None], log=False)
    return [topic for name, topic in named if name in allowed]


def _offset_fetch_of_one(access: Access, request: Any) -> Merge | None:
    access.need(DESCRIBE, GROUP, request.group_id)
    if request.topics is None:

        def filtered(response: Any) -> Any:
            response.topics = _described(access, lambda topic: str(topic.name), response.topics)
            return response

        return filtered
    allowed = access.allowed(DESCRIBE, TOPIC, [topic.name for topic in request.topics])
    request.topics, denied = partition(request.topics, lambda topic: topic.name in allowed)
    if not denied:
        return None
    return appending(
        "topics",
        [
            OffsetFetchResponseTopic(
                name=topic.name,
                partitions=[
                    OffsetFetchResponsePartition(
                        partition_index=index, committed_offset=-1, metadata="", error_code=DENIED_TOPIC
                    )
                    for index in topic.partition_indexes
                ],
            )
            for topic in denied
        ],
    )


def offset_delete(access: Access, metadata: ClusterMetadata, ctx: Context, request: Any) -> Merge | None:
    """DELETE on the group, READ on each topic."""
    access.need(DELETE, GROUP, request.group_id)
    allowed = access.allowed(READ, TOPIC, [topic.name for topic in request.topics])
    request.topics, refused = partition(request.topics, lambda topic: topic.name in allowed)
    if not refused:
        return None
    topics = [
        OffsetDeleteResponseTopic(
            name=topic.name,
            partitions=[
                OffsetDeleteResponsePartition(partition_index=each.partition_index, error_code=DENIED_TOPIC)
                for each in topic.partitions
            ],
        )
        for topic in refused
    ]

    def merge(response: Any) -> Any:
        if not response.error_code:
            response.topics = [*response.topics, *topics]
        return response

    return merge


def find_coordinator(access: Access, metadata: ClusterMetadata, ctx: Context, request: Any) -> Merge | None:
    """DESCRIBE on each group or transactional id; CLUSTER_ACTION for the state of share groups."""
    kind = {0: GROUP, 1: TRANSACTIONAL_ID}.get(request.key_type)
    if kind is None:
        if request.key_type == 2:
            access.need_cluster(CLUSTER_ACTION)
        return None
    if ctx.api_version < 4:
        access.need(DESCRIBE, kind, request.key)
        return None
    request.coordinator_keys, refused = partition(request.coordinator_keys, lambda key: access.may(DESCRIBE, kind, key))
    code = DENIED_GROUP if kind == GROUP else ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
    failed = [Coordinator(key=key, node_id=-1, host="", port=-1, error_code=code) for key in refused]
    return appending("coordinators", failed) if failed else None


def describe_groups(access: Access, metadata: ClusterMetadata, ctx: Context, request: Any) -> Merge | None:
    """DESCRIBE on each group."""
    return _describe(access, ctx, request, "groups")


def describe_modern_groups(access: Access, metadata: ClusterMetadata, ctx: Context, request: Any) -> Merge | None:
    """DESCRIBE on each group, and on the topics that its members have or are to have."""
    return chain(_describe(access, ctx, request, "group_ids"), lambda response: _hide_groups(access, response))


def _describe(access: Access, ctx: Context, request: Any, field: str) -> Merge | None:
    kept, refused = partition(getattr(request, field), lambda group: access.may(DESCRIBE, GROUP, group))
    setattr(request, field, kept)

    def operations(response: Any) -> Any:
        for group in response.groups:
            if group.authorized_operations != NOT_ASKED:
                group.authorized_operations = access.operations(GROUP, group.group_id)
        return response

    return chain(operations, refuse_parts(ctx, request, field, refused, "groups", DENIED_GROUP))


def _hide_groups(access: Access, response: Any) -> Any:
    for index, group in enumerate(response.groups):
        if group.error_code:
            continue
        names = {
            each.topic_name
            for one in group.members
            for assignment in (one.assignment, getattr(one, "target_assignment", None))
            for each in getattr(assignment, "topic_partitions", ())
        }
        topology = getattr(group, "topology", None)
        for each in topology.subtopologies if topology is not None else ():
            names |= {*each.source_topics, *each.repartition_sink_topics}
            names |= {topic.name for topic in (*each.repartition_source_topics, *each.state_changelog_topics)}
        if len(access.allowed(DESCRIBE, TOPIC, names)) < len(names):
            text = "The group has described topic(s) that the client is not authorized to describe."
            response.groups[index] = type(group)(
                group_id=group.group_id, error_code=DENIED_TOPIC, error_message=text, members=[]
            )
    return response


def list_groups(access: Access, metadata: ClusterMetadata, ctx: Context, request: Any) -> Merge | None:
    """DESCRIBE on the cluster, or only the groups that may be described."""
    if access.may_cluster(DESCRIBE, log=False):
        return None

    def merge(response: Any) -> Any:
        response.groups = [each for each in response.groups if access.may(DESCRIBE, GROUP, each.group_id, log=False)]
        return response

    return merge


def delete_groups(access: Access, metadata: ClusterMetadata, ctx: Context, request: Any) -> Merge | None:
    """DELETE on each group."""
    request.groups_names, refused = partition(request.groups_names, lambda group: access.may(DELETE, GROUP, group))
    return refuse_parts(ctx, request, "groups_names", refused, "results", DENIED_GROUP)
