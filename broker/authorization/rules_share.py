"""What requests of share groups need, beside heartbeats and descriptions."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from broker.authorization.access import Access
from broker.authorization.split import Merge, appending, partition
from broker.cluster.acls import DELETE, DESCRIBE, GROUP, READ, TOPIC
from protocol.errors import ErrorCode
from protocol.messages.share_fetch import (
    ShareAcknowledgeResponsePartitionData,
    ShareAcknowledgeTopicResponse,
    ShareFetchableTopicResponse,
    ShareFetchResponsePartitionData,
)
from protocol.messages.share_offsets import (
    AlterShareGroupOffsetsResponsePartition,
    AlterShareGroupOffsetsResponseTopic,
    DeleteShareGroupOffsetsResponseTopic,
    DescribeShareGroupOffsetsResponseGroup,
    DescribeShareGroupOffsetsResponsePartition,
    DescribeShareGroupOffsetsResponseTopic,
)

if TYPE_CHECKING:
    from broker.base.context import Context
    from broker.cluster.metadata import ClusterMetadata

DENIED = ErrorCode.TOPIC_AUTHORIZATION_FAILED
DENIED_TEXT = "Topic authorization failed."


def share_fetch(access: Access, metadata: ClusterMetadata, ctx: Context, request: Any) -> Merge | None:
    """READ on the group, and on each topic that is named; on those of the session the handler asks itself."""
    of_partition = partial(ShareFetchResponsePartitionData, records=b"")
    return _records(access, metadata, request, ShareFetchableTopicResponse, of_partition)


def share_acknowledge(access: Access, metadata: ClusterMetadata, ctx: Context, request: Any) -> Merge | None:
    """READ on the group and on each topic."""
    return _records(access, metadata, request, ShareAcknowledgeTopicResponse, ShareAcknowledgeResponsePartitionData)


def _records(access: Access, metadata: ClusterMetadata, request: Any, of_topic: Any, of_partition: Any) -> Merge | None:
    access.need(READ, GROUP, request.group_id or "")
    names = {each.topic_id: metadata.topics_by_id.get(each.topic_id) for each in request.topics}
    allowed = access.allowed(READ, TOPIC, [topic.name for topic in names.values() if topic is not None])
    request.topics, refused = partition(
        request.topics, lambda each: (topic := names[each.topic_id]) is None or topic.name in allowed
    )
    if not refused:
        return None
    failed = [
        of_topic(
            topic_id=each.topic_id,
            partitions=[
                of_partition(partition_index=one.partition_index, error_code=DENIED) for one in each.partitions
            ],
        )
        for each in refused
    ]

    def merge(response: Any) -> Any:
        if response.error_code:
            return response
        told = {each.topic_id for each in response.responses}  # the handler refuses those of the session
        return appending("responses", [each for each in failed if each.topic_id not in told])(response)

    return merge


def describe_offsets(access: Access, metadata: ClusterMetadata, ctx: Context, request: Any) -> Merge:
    """DESCRIBE on each group and topic."""
    request.groups, refused = partition(request.groups, lambda group: access.may(DESCRIBE, GROUP, group.group_id))
    failed = [
        DescribeShareGroupOffsetsResponseGroup(
            group_id=group.group_id,
            error_code=ErrorCode.GROUP_AUTHORIZATION_FAILED,
            error_message="Group authorization failed.",
        )
        for group in refused
    ]
    hidden: dict[str, list[Any]] = {}
    of_all = set()
    for group in request.groups:
        if group.topics is None:
            of_all.add(group.group_id)
            continue
        allowed = access.allowed(DESCRIBE, TOPIC, [topic.topic_name for topic in group.topics])
        group.topics, hidden[group.group_id] = partition(group.topics, partial(_is_among, allowed))

    def merge(response: Any) -> Any:
        for group in response.groups:
            if group.error_code:
                continue
            if group.group_id in of_all:
                group.topics = [t for t in group.topics if access.may(DESCRIBE, TOPIC, t.topic_name, log=False)]
            group.topics = [*group.topics, *map(_hidden_topic, hidden.get(group.group_id, ()))]
        response.groups = [*response.groups, *failed]
        return response

    return merge


def _is_among(names: set[str], topic: Any) -> bool:
    return topic.topic_name in names


def _hidden_topic(topic: Any) -> DescribeShareGroupOffsetsResponseTopic:
    return DescribeShareGroupOffsetsResponseTopic(
        topic_name=topic.topic_name,
        partitions=[
            DescribeShareGroupOffsetsResponsePartition(
                partition_index=index, error_code=DENIED, error_message=DENIED_TEXT, start_offset=-1
            )
            for index in topic.partitions
        ],
    )


def alter_offsets(access: Access, metadata: ClusterMetadata, ctx: Context, request: Any) -> Merge | None:
    """READ on the group and on each topic."""
    access.need(READ, GROUP, request.group_id)
    request.topics, refused = partition(request.topics, lambda topic: access.may(READ, TOPIC, topic.topic_name))
    failed = [
        AlterShareGroupOffsetsResponseTopic(
            topic_name=topic.topic_name,
            partitions=[
                AlterShareGroupOffsetsResponsePartition(
                    partition_index=each.partition_index, error_code=DENIED, error_message=DENIED_TEXT
                )
                for each in topic.partitions
            ],
        )
        for topic in refused
    ]
    return appending("responses", failed) if failed else None


def delete_offsets(access: Access, metadata: ClusterMetadata, ctx: Context, request: Any) -> Merge | None:
    """DELETE on the group, READ on each topic."""
    access.need(DELETE, GROUP, request.group_id)
    request.topics, refused = partition(request.topics, lambda topic: access.may(READ, TOPIC, topic.topic_name))
    failed = [
        DeleteShareGroupOffsetsResponseTopic(topic_name=topic.topic_name, error_code=DENIED, error_message=DENIED_TEXT)
        for topic in refused
    ]
    return appending("responses", failed) if failed else None
