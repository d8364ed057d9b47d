"""ShareAcknowledge: take what a member of a share group says of the records that it has acquired (KIP-932).

ShareAcknowledge  v2: renewal of locks (KIP-1222); the response says how long a lock lasts.

Behaviour: what is rejected, or was delivered too often, goes to the group's dead-letter queue if it has one (KIP-1191,
           share.version 2). The answer does not wait for that, and is the same whatever becomes of it.
Differs:   an acknowledgement of records in front of all that are acquired is INVALID_RECORD_STATE; Kafka fails, with
           UNKNOWN_SERVER_ERROR. The end of a session releases its records before the response, in Kafka after it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, Protocol

from broker.base.context import Context
from broker.coordinator.share.acknowledge import RENEW, Acknowledgement, check_acknowledgements
from broker.coordinator.share.sessions import FINAL_EPOCH, INITIAL_EPOCH, PartitionKey
from broker.handlers.share_group import check_enabled, check_member_id
from broker.turn.decision import Decision
from protocol.errors import ErrorCode, KafkaError
from protocol.messages.share_fetch import (
    ShareAcknowledgeResponse,
    ShareAcknowledgeResponseLeaderIdAndEpoch,
    ShareAcknowledgeResponseNodeEndpoint,
    ShareAcknowledgeResponsePartitionData,
    ShareAcknowledgeTopicResponse,
)

if TYPE_CHECKING:
    from broker.cluster.nodes import Nodes
    from broker.coordinator.share.in_flight import Delivery
    from broker.coordinator.share.limits import Limits
    from broker.coordinator.share.table import LivePartition, SharePartitions
    from protocol.messages.share_fetch import ShareAcknowledgeRequest

RENEWAL_SINCE: Final = 2


class View(Protocol):
    """What this handler uses of the broker."""

    @property
    def nodes(self) -> Nodes: ...
    @property
    def share(self) -> SharePartitions: ...


def check_names(group_id: str | None, member_id: str | None) -> None:
    """Errors: INVALID_REQUEST: a request names no group, or not as a member is named."""
    if group_id is None:
        raise KafkaError(ErrorCode.INVALID_REQUEST)
    check_member_id(member_id)


def share_acknowledge(broker: Any, ctx: Context, request: ShareAcknowledgeRequest) -> Decision:
    """Take the acknowledgements of each partition; each succeeds or fails alone.

    Errors:  the whole request: UNSUPPORTED_VERSION, INVALID_REQUEST, SHARE_SESSION_NOT_FOUND,
             INVALID_SHARE_SESSION_EPOCH.
             a partition: INVALID_REQUEST, INVALID_RECORD_STATE, UNKNOWN_TOPIC_ID, UNKNOWN_TOPIC_OR_PARTITION,
             NOT_LEADER_OR_FOLLOWER, COORDINATOR_NOT_AVAILABLE.
    Source:  KIP-932; KafkaApis.handleShareAcknowledgeRequest.
    """
    check_enabled(broker)
    check_names(request.group_id, request.member_id)
    group_id, member_id = request.group_id or "", request.member_id or ""
    epoch = request.share_session_epoch
    if epoch == INITIAL_EPOCH:
        raise KafkaError(ErrorCode.INVALID_SHARE_SESSION_EPOCH)
    session = broker.share.sessions.require(ctx.node_id, group_id, member_id, epoch)
    if epoch != FINAL_EPOCH:
        session.advance()
    named = {
        (topic.topic_id, each.partition_index): [
            Acknowledgement(batch.first_offset, batch.last_offset, batch.acknowledge_types)
            for batch in each.acknowledgement_batches
        ]
        for topic in request.topics
        for each in topic.partitions
    }
    limits = broker.share.limits(group_id)
    results = acknowledge(broker.share, ctx, group_id, member_id, named, limits, is_renewal=request.is_renew_ack)
    if epoch == FINAL_EPOCH:
        broker.share.end_session(ctx.node_id, group_id, member_id)
    topics: dict[bytes, ShareAcknowledgeTopicResponse] = {}
    endpoints: dict[int, ShareAcknowledgeResponseNodeEndpoint] = {}
    for (topic_id, index), error in results.items():
        if error is None and not named[topic_id, index]:  # nothing was acknowledged, and Kafka says nothing of it
            continue
        answer = ShareAcknowledgeResponsePartitionData(partition_index=index)
        if error is not None:
            answer.error_code, answer.error_message = error.code, error.message
            if error.code == ErrorCode.NOT_LEADER_OR_FOLLOWER:
                leader, found = name_leader(broker, ctx, (topic_id, index))
                answer.current_leader = ShareAcknowledgeResponseLeaderIdAndEpoch(
                    leader_id=leader[0], leader_epoch=leader[1]
                )
                if found is not None:
                    endpoints[leader[0]] = ShareAcknowledgeResponseNodeEndpoint(
                        node_id=leader[0], host=found[0], port=found[1]
                    )
        topics.setdefault(topic_id, ShareAcknowledgeTopicResponse(topic_id=topic_id)).partitions.append(answer)
    response = ShareAcknowledgeResponse(
        acquisition_lock_timeout_ms=limits.lock_ms,
        responses=list(topics.values()),
        node_endpoints=list(endpoints.values()),
    )
    return Decision(response)


def acknowledge(
    share: SharePartitions,
    ctx: Context,
    group_id: str,
    member_id: str,
    named: dict[PartitionKey, list[Acknowledgement]],
    limits: Limits,
    *,
    is_renewal: bool,
    released: dict[LivePartition, list[Delivery]] | None = None,
) -> dict[PartitionKey, KafkaError | None]:
    """What came of each partition's acknowledgements; None: they are taken. `released`: see SharePartitions."""
    highest = RENEW if ctx.api_version >= RENEWAL_SINCE else RENEW - 1
    results: dict[PartitionKey, KafkaError | None] = {}
    known = share.metadata.topics_by_id
    for place, found in named.items():
        try:
            topic = known.get(place[0])
            if topic is None:
                raise KafkaError(ErrorCode.UNKNOWN_TOPIC_ID)
            check_acknowledgements(found, highest, is_renewal=is_renewal)
            if not 0 <= place[1] < len(topic.partitions):
                raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
            if found:
                if topic.partitions[place[1]].leader != ctx.node_id:
                    raise KafkaError(ErrorCode.NOT_LEADER_OR_FOLLOWER)
                live = share.known(group_id, *place)
                if live is None:
                    raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
                later = None if released is None else released.setdefault(live, [])
                share.acknowledge(live, member_id, found, limits, later)
            results[place] = None
        except KafkaError as error:
            results[place] = error
    return results


def name_leader(broker: Any, ctx: Context, place: PartitionKey) -> tuple[tuple[int, int], tuple[str, int] | None]:
    """(id, epoch) of a partition's leader, and its host and port if the client can reach it."""
    info = broker.share.metadata.topics_by_id[place[0]].partitions[place[1]]
    host, port = broker.nodes.endpoint(info.leader, ctx)
    return (info.leader, info.leader_epoch), (host, port) if port >= 0 else None
