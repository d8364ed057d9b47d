"""ShareFetch: acquire records for a member of a share group, and take acknowledgements with it (KIP-932).

ShareFetch  v2: acquire mode (KIP-1206), renewal of locks (KIP-1222).

Behaviour: the records that a response names as acquired are locked for the member until it acknowledges them, its
           session ends, or the lock expires. ShareFetch takes acknowledgements too, before it reads. Without records it
           is parked for up to max_wait_ms. Partitions take turns at the front of a response.
Differs:   a ShareFetch that finds the log's start moved goes on to read from there; Kafka answers it without records.
           Where DeleteRecords cuts a record batch of which a member then takes a part, the rest below the log's start
           is passed over; Kafka delivers nothing more of the partition.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from broker.coordinator.share.acknowledge import Acknowledgement
from broker.coordinator.share.sessions import FINAL_EPOCH, INITIAL_EPOCH
from broker.handlers.share_acknowledge import check_names
from broker.handlers.share_group import check_enabled
from broker.requests.repeated import HotRequest
from broker.requests.share_fetch_wait import Ask
from broker.turn.decision import Decision
from broker.wire.route import encode_reply
from protocol.errors import ErrorCode, KafkaError
from protocol.messages.share_fetch import ShareFetchRequest, ShareFetchResponse
from protocol.shape import Shape

if TYPE_CHECKING:
    from broker.base.context import Context
    from broker.coordinator.share.sessions import PartitionKey
    from broker.requests.kept import Kept
    from broker.requests.share_fetch_read import View
    from broker.wire.reply_stream import Reply


class ShareFetch(HotRequest):
    """The rule, the general codec, and further requests of a session that acknowledge other offsets."""

    REQUEST = Shape(ShareFetchRequest, "share_session_epoch", "first_offset", "last_offset")
    REPLY = Shape(ShareFetchResponse)
    HAS_TEMPLATE = False

    def __init__(self, broker: Any) -> None:
        super().__init__(broker)
        self._view: View = broker
        self._again = Decision(then=self._begin_again)  # the decision on a repeat; each is carried out before the next

    def decide(self, ask: Ask, ctx: Context) -> Decision:
        """Acknowledge and acquire, now or when there are records. The reply is a ShareFetchResponse.

        Errors:  the whole request: UNSUPPORTED_VERSION, INVALID_REQUEST, SHARE_SESSION_NOT_FOUND,
                 INVALID_SHARE_SESSION_EPOCH, SHARE_SESSION_LIMIT_REACHED (after max_wait_ms).
                 a partition: UNKNOWN_TOPIC_ID, UNKNOWN_TOPIC_OR_PARTITION, NOT_LEADER_OR_FOLLOWER, KAFKA_STORAGE_ERROR,
                 those of SharePartitions.get; its acknowledgements: as ShareAcknowledge.
        Source:  KIP-932; KafkaApis.handleShareFetchRequest.
        """
        if ask.parked:  # what is kept for repeats serves one at a time
            return OTHERWISE
        view, epoch = self._view, ask.share_session_epoch
        if ask.repeats:
            if epoch in (INITIAL_EPOCH, FINAL_EPOCH):
                return OTHERWISE
            ask.session = view.share.sessions.require(ctx.node_id, ask.group_id, ask.member_id, epoch)
            decision = self._again
            decision.repeats = ask
            return decision
        if ask.is_renew_ack and (ask.max_bytes or ask.min_bytes or ask.max_records or ask.max_wait_ms):
            raise KafkaError(ErrorCode.INVALID_REQUEST)  # it reads nothing
        if epoch != INITIAL_EPOCH:
            session = view.share.sessions.require(ctx.node_id, ask.group_id, ask.member_id, epoch)
            ask.session = None if epoch == FINAL_EPOCH else session
        elif any(ask.named.values()):
            raise KafkaError(ErrorCode.INVALID_REQUEST)
        may_repeat = ask.session is not None and not ask.forgotten
        return Decision(then=ask.begin, repeats=ask if may_repeat else None)

    def _begin_again(self) -> Any:
        ask: Ask = self._again.repeats
        self._again.repeats = None  # or the connection would be kept
        return ask.begin()

    def message(self, ctx: Context, request: ShareFetchRequest) -> Decision:
        """See HotRequest."""
        check_enabled(self._view)
        check_names(request.group_id, request.member_id)
        named: dict[PartitionKey, list[Acknowledgement]] = {}
        count = 0
        for topic in request.topics:
            count += len(topic.partitions)
            for each in topic.partitions:
                named[topic.topic_id, each.partition_index] = [
                    Acknowledgement(batch.first_offset, batch.last_offset, batch.acknowledge_types)
                    for batch in each.acknowledgement_batches
                ]
        ask = Ask(self._view, ctx, request, named)
        ask.forgotten = [(topic.topic_id, each) for topic in request.forgotten_topics_data for each in topic.partitions]
        decision = self.decide(ask, ctx)
        if count != len(named):  # one of them twice: the fields of a repeat would not be found by their places
            decision.repeats = None
        return decision

    def prepare(self, kept: Kept, decision: Decision) -> None:
        """Keep an Ask of its own: that of the first request may be parked."""
        kept.ask = kept.ask.again()

    def fill(self, ask: Ask, fields: tuple[Any, ...], width: int) -> None:
        """See HotRequest. The epoch stands apart from the offsets, so each field is alone. A parked Ask reads none."""
        ask.share_session_epoch = fields[0]
        at = 2
        for batches in ask.named.values():
            for place, (_, _, types) in enumerate(batches):
                batches[place] = Acknowledgement(fields[at], fields[at + 2], types)
                at += 4

    def write_reply(self, kept: Kept, reply: ShareFetchResponse, correlation_id: int) -> Reply:
        """See HotRequest."""
        ask: Ask = kept.ask
        if not ask.responder.is_clean:
            return None
        return encode_reply(self.route, ask.ctx.api_version, correlation_id, reply, ask.responder.records_bytes)


OTHERWISE: Final = Decision()  # the general codec serves it
