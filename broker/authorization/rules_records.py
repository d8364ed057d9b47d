"""What Produce, ListOffsets, DeleteRecords and the other requests about partitions' logs need."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from broker.authorization.access import Access
from broker.authorization.split import Merge, chain, partition, refuse_parts
from broker.cluster.acls import CLUSTER_ACTION, DELETE, DESCRIBE, READ, TOPIC, TRANSACTIONAL_ID, WRITE
from broker.partitions.record_rules import is_transactional
from protocol.errors import ErrorCode, KafkaError

if TYPE_CHECKING:
    from broker.base.context import Context
    from broker.cluster.metadata import ClusterMetadata

DENIED = ErrorCode.TOPIC_AUTHORIZATION_FAILED
DENIED_TEXT = "Topic authorization failed."
NO_ID = bytes(16)


def produce(access: Access, metadata: ClusterMetadata, ctx: Context, request: Any) -> Merge | None:
    """WRITE on each topic, and on the transactional id of transactional records. Errors: as Kafka's."""
    transactional = any(
        each.records and len(each.records) > 22 and is_transactional(memoryview(each.records))
        for topic in request.topic_data
        for each in topic.partition_data
    )
    if transactional:
        name = request.transactional_id
        if name is None or not access.may(WRITE, TRANSACTIONAL_ID, name):
            raise KafkaError(ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED)

    def name_of(topic: Any) -> str | None:
        if topic.topic_id == NO_ID:
            return str(topic.name)
        found = metadata.topics_by_id.get(topic.topic_id)
        return None if found is None else found.name  # the handler answers what is unknown

    names = [name for topic in request.topic_data for name in [name_of(topic)] * len(topic.partition_data) if name]
    allowed = access.allowed(WRITE, TOPIC, names)
    request.topic_data, refused = partition(
        request.topic_data, lambda topic: (name := name_of(topic)) is None or name in allowed
    )
    if refused and request.acks == 0:
        access.closes = True
    return refuse_parts(ctx, request, "topic_data", refused, "responses", DENIED)


def list_offsets(access: Access, metadata: ClusterMetadata, ctx: Context, request: Any) -> Merge | None:
    """DESCRIBE on each topic."""
    return _by_name(access, ctx, request, DESCRIBE)


def offset_for_leader_epoch(access: Access, metadata: ClusterMetadata, ctx: Context, request: Any) -> Merge | None:
    """DESCRIBE on each topic, or CLUSTER_ACTION."""
    if access.may_cluster(CLUSTER_ACTION, log=False):
        return None
    allowed = access.allowed(DESCRIBE, TOPIC, [topic.topic for topic in request.topics])
    request.topics, refused = partition(request.topics, lambda topic: topic.topic in allowed)
    return refuse_parts(ctx, request, "topics", refused, "topics", DENIED)


def delete_records(access: Access, metadata: ClusterMetadata, ctx: Context, request: Any) -> Merge | None:
    """DELETE on each topic."""
    return _by_name(access, ctx, request, DELETE)


def describe_producers(access: Access, metadata: ClusterMetadata, ctx: Context, request: Any) -> Merge | None:
    """READ on each topic."""
    return _by_name(access, ctx, request, READ, DENIED_TEXT)


def _by_name(access: Access, ctx: Context, request: Any, operation: int, message: str | None = None) -> Merge | None:
    allowed = access.allowed(operation, TOPIC, [topic.name for topic in request.topics])
    request.topics, refused = partition(request.topics, lambda topic: topic.name in allowed)
    return chain(refuse_parts(ctx, request, "topics", refused, "topics", DENIED, message))
