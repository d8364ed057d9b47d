"""What requests of the transaction coordinator need."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from broker.authorization.access import Access
from broker.authorization.rules_groups import _topics_read
from broker.authorization.split import Merge, partition, refuse_parts
from broker.cluster.acls import (
    ALTER,
    CLUSTER_ACTION,
    DESCRIBE,
    GROUP,
    IDEMPOTENT_WRITE,
    READ,
    TOPIC,
    TRANSACTIONAL_ID,
    TWO_PHASE_COMMIT,
    WRITE,
)
from broker.cluster.topic_names import INTERNAL_TOPICS
from broker.wire.errors import Answered
from protocol.errors import ErrorCode
from protocol.messages.transactions import (
    AddPartitionsToTxnPartitionResult,
    AddPartitionsToTxnResponse,
    AddPartitionsToTxnTopicResult,
)

if TYPE_CHECKING:
    from broker.base.context import Context
    from broker.cluster.metadata import ClusterMetadata

DENIED = ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED


def init_producer_id(access: Access, metadata: ClusterMetadata, ctx: Context, request: Any) -> None:
    """WRITE on the transactional id; without one IDEMPOTENT_WRITE on the cluster, or WRITE on any topic (KIP-679)."""
    name = request.transactional_id
    if name is not None:
        access.need(WRITE, TRANSACTIONAL_ID, name)
        if getattr(request, "enable_2pc", False):
            access.need(TWO_PHASE_COMMIT, TRANSACTIONAL_ID, name)
    elif not access.may_cluster(IDEMPOTENT_WRITE, log=False) and not access.may_any(WRITE, TOPIC):
        access.need_cluster(IDEMPOTENT_WRITE)


def end_txn(access: Access, metadata: ClusterMetadata, ctx: Context, request: Any) -> None:
    """WRITE on the transactional id."""
    access.need(WRITE, TRANSACTIONAL_ID, request.transactional_id)


def add_offsets_to_txn(access: Access, metadata: ClusterMetadata, ctx: Context, request: Any) -> None:
    """WRITE on the transactional id, READ on the group."""
    access.need(WRITE, TRANSACTIONAL_ID, request.transactional_id)
    access.need(READ, GROUP, request.group_id)


def txn_offset_commit(access: Access, metadata: ClusterMetadata, ctx: Context, request: Any) -> Merge | None:
    """WRITE on the transactional id, READ on the group and on each topic."""
    access.need(WRITE, TRANSACTIONAL_ID, request.transactional_id)
    access.need(READ, GROUP, request.group_id)
    return _topics_read(access, metadata, ctx, request)


def add_partitions_to_txn(access: Access, metadata: ClusterMetadata, ctx: Context, request: Any) -> None:
    """WRITE on the transactional id and on each topic, all or none; CLUSTER_ACTION from v4 on, which brokers send.

    Errors: of a partition: OPERATION_NOT_ATTEMPTED where another one is refused.
    """
    if ctx.api_version >= 4:
        access.need_cluster(CLUSTER_ACTION)
        return
    access.need(WRITE, TRANSACTIONAL_ID, request.v3_and_below_transactional_id)
    topics = request.v3_and_below_topics
    names = [topic.name for topic in topics for _ in topic.partitions if topic.name not in INTERNAL_TOPICS]
    allowed = access.allowed(WRITE, TOPIC, names)
    if all(topic.name in allowed for topic in topics):
        return

    def code_of(topic: Any, index: int) -> int:
        if topic.name not in allowed:
            return ErrorCode.TOPIC_AUTHORIZATION_FAILED
        known = metadata.topics.get(topic.name)
        if known is None or not 0 <= index < len(known.partitions):
            return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        return ErrorCode.OPERATION_NOT_ATTEMPTED

    results = [
        AddPartitionsToTxnTopicResult(
            name=topic.name,
            results_by_partition=[
                AddPartitionsToTxnPartitionResult(partition_index=index, partition_error_code=code_of(topic, index))
                for index in topic.partitions
            ],
        )
        for topic in topics
    ]
    raise Answered(AddPartitionsToTxnResponse(results_by_topic_v3_and_below=results))


def write_txn_markers(access: Access, metadata: ClusterMetadata, ctx: Context, request: Any) -> None:
    """ALTER or CLUSTER_ACTION on the cluster."""
    if not access.may_cluster(ALTER, log=False):
        access.need_cluster(CLUSTER_ACTION)


def describe_transactions(access: Access, metadata: ClusterMetadata, ctx: Context, request: Any) -> Merge | None:
    """DESCRIBE on each transactional id; of its topics those that may be described."""
    kept, refused = partition(request.transactional_ids, lambda name: access.may(DESCRIBE, TRANSACTIONAL_ID, name))
    request.transactional_ids = kept
    refusal = refuse_parts(ctx, request, "transactional_ids", refused, "transaction_states", DENIED)

    def merge(response: Any) -> Any:
        for state in response.transaction_states:
            state.topics = [topic for topic in state.topics if access.may(DESCRIBE, TOPIC, topic.topic)]
        return response if refusal is None else refusal(response)

    return merge


def list_transactions(access: Access, metadata: ClusterMetadata, ctx: Context, request: Any) -> Merge:
    """The transactional ids that may be described."""

    def merge(response: Any) -> Any:
        response.transaction_states = [
            state
            for state in response.transaction_states
            if access.may(DESCRIBE, TRANSACTIONAL_ID, state.transactional_id)
        ]
        return response

    return merge
