"""ShareFetch and ShareAcknowledge: read records for a share group, and say what became of them (KIP-932).

ShareFetch        v2: acquire mode (KIP-1206), renewal of locks (KIP-1222).
ShareAcknowledge  v2: renewal of locks; the response says how long a lock lasts.

Behaviour: the records that a response names as acquired are locked for the member until it acknowledges them, its
           session ends, or the lock expires. ShareFetch takes acknowledgements too, before it reads. Without records it
           is parked for up to max_wait_ms. Partitions take turns at the front of a response.
Differs:   a ShareFetch that finds the log's start moved goes on to read from there; Kafka answers it without records.
           Where DeleteRecords cuts a record batch of which a member then takes a part, the rest below the log's start
           is passed over; Kafka delivers nothing more of the partition.
Differs:   an acknowledgement of records in front of all that are acquired is INVALID_RECORD_STATE; Kafka fails, with
           UNKNOWN_SERVER_ERROR. The end of a session releases its records before the response, in Kafka after it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, Protocol

from broker.base.context import Context
from broker.coordinator.share.acknowledge import RENEW, Acknowledgement, check_acknowledgements, make_available
from broker.coordinator.share.acquire import BATCH_OPTIMIZED, RECORD_LIMIT
from broker.coordinator.share.sessions import FINAL_EPOCH, INITIAL_EPOCH, Place, ShareSession
from broker.handlers.share_fetch_wait import Asked, ShareFetchWait, name_leader
from broker.handlers.share_group import check_enabled, check_member_id
from broker.turn.decision import LATER, Decision
from protocol.errors import ErrorCode, KafkaError
from protocol.messages.share_fetch import (
    ShareAcknowledgeResponse,
    ShareAcknowledgeResponseLeaderIdAndEpoch,
    ShareAcknowledgeResponseNodeEndpoint,
    ShareAcknowledgeResponsePartitionData,
    ShareAcknowledgeTopicResponse,
)

if TYPE_CHECKING:
    from broker.cluster.metadata import ClusterMetadata
    from broker.cluster.nodes import Nodes
    from broker.config.settings import BrokerConfig
    from broker.coordinator.share.in_flight import Delivery
    from broker.coordinator.share.table import Live, SharePartitions
    from broker.partitions.table import Partitions
    from broker.turn.turn import Turn
    from broker.wire.parked import ParkedRequests
    from protocol.messages.share_fetch import ShareAcknowledgeRequest, ShareFetchRequest

RENEWAL_SINCE: Final = 2


class View(Protocol):
    """What these handlers use of the broker."""

    @property
    def config(self) -> BrokerConfig: ...
    @property
    def nodes(self) -> Nodes: ...
    @property
    def parked(self) -> ParkedRequests: ...
    @property
    def partitions(self) -> Partitions: ...
    @property
    def turn(self) -> Turn: ...
    @property
    def share(self) -> SharePartitions: ...


def metadata_of(broker: View) -> ClusterMetadata:
    """The cluster's metadata."""
    return broker.share.metadata


def share_fetch(broker: Any, ctx: Context, request: ShareFetchRequest) -> Decision:
    """Answer now, or LATER: the ShareFetchWait answers later.

    Errors:  the whole request: UNSUPPORTED_VERSION, INVALID_REQUEST, SHARE_SESSION_NOT_FOUND,
             INVALID_SHARE_SESSION_EPOCH, SHARE_SESSION_LIMIT_REACHED (after max_wait_ms).
             a partition: UNKNOWN_TOPIC_ID, UNKNOWN_TOPIC_OR_PARTITION, NOT_LEADER_OR_FOLLOWER, KAFKA_STORAGE_ERROR,
             those of SharePartitions.get; its acknowledgements: as ShareAcknowledge.
    Source:  KIP-932; KafkaApis.handleShareFetchRequest.
    """
    check_enabled(broker)
    group_id, member_id = _names(request)
    if request.is_renew_ack:
        _check_renewal(request)
    named = {(t.topic_id, p.partition_index): p.acknowledgement_batches for t in request.topics for p in t.partitions}
    forgotten = [(t.topic_id, p) for t in request.forgotten_topics_data for p in t.partitions]
    has_acknowledgements = any(named.values())
    sessions, epoch = broker.share.sessions, request.share_session_epoch
    session: ShareSession | None = None
    places: list[Place] = []
    if epoch == FINAL_EPOCH:
        sessions.require(ctx.node_id, group_id, member_id, FINAL_EPOCH)
    elif epoch == INITIAL_EPOCH:
        if has_acknowledgements:
            raise KafkaError(ErrorCode.INVALID_REQUEST)
        places = list(named)
        try:
            sessions.begin(ctx.node_id, group_id, member_id, places, ctx.connection)
        except KafkaError as error:
            wait = ShareFetchWait(broker, ctx, Asked.of(request, group_id, member_id), [], None, {})
            return Decision(wait.refuse_later(error, request.max_wait_ms))
    else:
        session = sessions.require(ctx.node_id, group_id, member_id, epoch)
        session.update(named, forgotten)
        session.advance()
        places = _in_turn(list(session.partitions), epoch)
    acknowledged: dict[Place, KafkaError | None] = {}
    released: dict[Live, list[Delivery]] = {}
    if has_acknowledgements:
        renews = request.is_renew_ack
        acknowledged = _acknowledge(broker, ctx, group_id, member_id, named, is_renewal=renews, released=released)
    if places and not request.is_renew_ack and request.share_acquire_mode not in (BATCH_OPTIMIZED, RECORD_LIMIT):
        _make_available(broker, released)
        raise KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR, "there is no such acquire mode")
    wait = ShareFetchWait(broker, ctx, Asked.of(request, group_id, member_id), places, session, acknowledged)
    if epoch == FINAL_EPOCH:
        broker.share.end_session(ctx.node_id, group_id, member_id)
    response = wait.first_answer(0 if request.is_renew_ack else request.max_wait_ms)
    if released:  # as in Kafka, which reads before what is given back is stored
        for live, deliveries in released.items():
            make_available(live.state, deliveries)
        if response is None:
            response = wait.look_again()
        for live in released:
            broker.share.poll(live)
    return Decision(LATER if response is None else response)


def _make_available(broker: View, released: dict[Live, list[Delivery]]) -> None:
    for live, deliveries in released.items():
        make_available(live.state, deliveries)
        broker.share.poll(live)


def _names(request: ShareFetchRequest | ShareAcknowledgeRequest) -> tuple[str, str]:
    """Group and member. Errors: INVALID_REQUEST."""
    if request.group_id is None:
        raise KafkaError(ErrorCode.INVALID_REQUEST)
    check_member_id(request.member_id)
    assert request.member_id is not None
    return request.group_id, request.member_id


def _check_renewal(request: ShareFetchRequest) -> None:
    """A ShareFetch that renews locks reads nothing. Errors: INVALID_REQUEST."""
    if request.max_bytes or request.min_bytes or request.max_records or request.max_wait_ms:
        raise KafkaError(ErrorCode.INVALID_REQUEST)


def _in_turn(places: list[Place], epoch: int) -> list[Place]:
    """The partitions, another one first each time."""
    if not places:
        return places
    at = epoch % len(places)
    return places[at:] + places[:at]


def share_acknowledge(broker: Any, ctx: Context, request: ShareAcknowledgeRequest) -> Decision:
    """Take the acknowledgements of each partition; each succeeds or fails alone.

    Errors:  the whole request: UNSUPPORTED_VERSION, INVALID_REQUEST, SHARE_SESSION_NOT_FOUND,
             INVALID_SHARE_SESSION_EPOCH.
             a partition: INVALID_REQUEST, INVALID_RECORD_STATE, UNKNOWN_TOPIC_ID, UNKNOWN_TOPIC_OR_PARTITION,
             NOT_LEADER_OR_FOLLOWER, COORDINATOR_NOT_AVAILABLE.
    Source:  KIP-932; KafkaApis.handleShareAcknowledgeRequest.
    """
    check_enabled(broker)
    group_id, member_id = _names(request)
    epoch = request.share_session_epoch
    if epoch == INITIAL_EPOCH:
        raise KafkaError(ErrorCode.INVALID_SHARE_SESSION_EPOCH)
    session = broker.share.sessions.require(ctx.node_id, group_id, member_id, epoch)
    if epoch != FINAL_EPOCH:
        session.advance()
    named = {(t.topic_id, p.partition_index): p.acknowledgement_batches for t in request.topics for p in t.partitions}
    results = _acknowledge(broker, ctx, group_id, member_id, named, is_renewal=request.is_renew_ack)
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
        acquisition_lock_timeout_ms=broker.share.limits(group_id).lock_ms,
        responses=list(topics.values()),
        node_endpoints=list(endpoints.values()),
    )
    return Decision(response)


def _acknowledge(
    broker: View,
    ctx: Context,
    group_id: str,
    member_id: str,
    named: dict[Place, list[Any]],
    *,
    is_renewal: bool,
    released: dict[Live, list[Delivery]] | None = None,
) -> dict[Place, KafkaError | None]:
    """What came of each partition's acknowledgements; None: they are taken. `released`: see SharePartitions."""
    highest = RENEW if ctx.api_version >= RENEWAL_SINCE else RENEW - 1
    results: dict[Place, KafkaError | None] = {}
    for place, batches in named.items():
        found = [Acknowledgement(b.first_offset, b.last_offset, b.acknowledge_types) for b in batches]
        try:
            topic = metadata_of(broker).topics_by_id.get(place[0])
            if topic is None:
                raise KafkaError(ErrorCode.UNKNOWN_TOPIC_ID)
            check_acknowledgements(found, highest, is_renewal=is_renewal)
            if not 0 <= place[1] < len(topic.partitions):
                raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
            if found:
                live = _live(broker, ctx, group_id, place)
                later = None if released is None else released.setdefault(live, [])
                broker.share.acknowledge(live, member_id, found, later)
            results[place] = None
        except KafkaError as error:
            results[place] = error
    return results


def _live(broker: View, ctx: Context, group_id: str, place: Place) -> Live:
    """The share partition that is acknowledged. Errors: NOT_LEADER_OR_FOLLOWER, UNKNOWN_TOPIC_OR_PARTITION."""
    topic = metadata_of(broker).topics_by_id[place[0]]
    if topic.partitions[place[1]].leader != ctx.node_id:
        raise KafkaError(ErrorCode.NOT_LEADER_OR_FOLLOWER)
    live = broker.share.known(group_id, *place)
    if live is None:
        raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    return live
