"""The response to a ShareFetch: what was acquired of each partition, or an error, and what acknowledgements came to."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from broker.handlers.share_acknowledge import name_leader
from broker.wire.route import MOST_INT32
from protocol.errors import ErrorCode, KafkaError
from protocol.messages.share_fetch import (
    ShareFetchableTopicResponse,
    ShareFetchResponse,
    ShareFetchResponseAcquiredRecords,
    ShareFetchResponseLeaderIdAndEpoch,
    ShareFetchResponseNodeEndpoint,
    ShareFetchResponsePartitionData,
)

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from broker.base.context import Context
    from broker.coordinator.share.reader import AcquiredRecords
    from broker.coordinator.share.sessions import PartitionKey, ShareSession

LEADER_ERRORS: Final = (ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.FENCED_LEADER_EPOCH)


class Responder:
    """Makes the responses to one ShareFetch and its repeats.

    is_clean        the last response has no error.
    records_bytes   of the last response, if they are all in memory; else MOST_INT32 or more.
    """

    __slots__ = ("_broker", "_ctx", "is_clean", "records_bytes")

    def __init__(self, broker: Any, ctx: Context) -> None:
        self._broker = broker
        self._ctx = ctx
        self.is_clean = True
        self.records_bytes = 0

    def refuse(self, code: int, text: str | None = None) -> ShareFetchResponse:
        """The whole request is refused."""
        self.is_clean = False
        return ShareFetchResponse(error_code=code, error_message=text)

    def respond(
        self,
        session: ShareSession | None,
        lock_ms: int,
        places: Sequence[PartitionKey],
        taken: Mapping[PartitionKey, AcquiredRecords],
        errors: Mapping[PartitionKey, KafkaError],
        ready: Collection[PartitionKey],
        acknowledged: Mapping[PartitionKey, KafkaError | None],
    ) -> ShareFetchResponse:
        """The response. In a session it leaves out partitions about which there is nothing new.

        ready          partitions from which something could be acquired.
        acknowledged   what came of the acknowledgements with the request.
        Units:         `lock_ms`: how long a lock lasts.
        """
        self.is_clean, self.records_bytes = not errors, 0
        response = ShareFetchResponse(acquisition_lock_timeout_ms=lock_ms)
        answers: dict[PartitionKey, ShareFetchResponsePartitionData] = {}
        # not in turn: that order would bring the same one to the front again
        for place in sorted(places) if len(places) > 1 else places:
            got, error = taken.get(place), errors.get(place)
            if got is None and error is None and place not in ready:
                continue
            if session is not None and not session.must_answer(
                place, has_records=got is not None, has_error=error is not None
            ):
                continue
            answer = answers[place] = ShareFetchResponsePartitionData(partition_index=place[1], records=b"")
            if got is not None:
                records = answer.records = got.records
                self.records_bytes += len(records) if isinstance(records, bytes) else MOST_INT32
                answer.acquired_records = [
                    ShareFetchResponseAcquiredRecords(first_offset=first, last_offset=last, delivery_count=count)
                    for first, last, count in got.acquired
                ]
            elif error is not None:
                self._tell(answer, error, place, response.node_endpoints)
        for place, refused in acknowledged.items():
            if place not in answers:
                answers[place] = ShareFetchResponsePartitionData(partition_index=place[1], records=b"")
            if refused is not None:
                self.is_clean = False
                answer = answers[place]
                answer.acknowledge_error_code, answer.acknowledge_error_message = refused.code, refused.message
        topics: dict[bytes, ShareFetchableTopicResponse] = {}
        for (topic_id, _), answer in answers.items():
            topic = topics.get(topic_id)
            if topic is None:
                topic = topics[topic_id] = ShareFetchableTopicResponse(topic_id=topic_id)
            topic.partitions.append(answer)
        response.responses = list(topics.values())
        return response

    def _tell(
        self,
        answer: ShareFetchResponsePartitionData,
        error: KafkaError,
        place: PartitionKey,
        endpoints: list[ShareFetchResponseNodeEndpoint],
    ) -> None:
        """A partition cannot be read."""
        answer.error_code = error.code
        if error.code in LEADER_ERRORS:
            leader, found = name_leader(self._broker, self._ctx, place)
            answer.current_leader = ShareFetchResponseLeaderIdAndEpoch(leader_id=leader[0], leader_epoch=leader[1])
            if found is not None and all(each.node_id != leader[0] for each in endpoints):
                endpoints.append(ShareFetchResponseNodeEndpoint(node_id=leader[0], host=found[0], port=found[1]))
