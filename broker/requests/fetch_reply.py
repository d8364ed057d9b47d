"""The response to a Fetch, from what was read: for each partition its offsets and records, or an error."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from broker.partitions.fetch_read import FENCED, NOT_LEADER, UNKNOWN, FetchReader, Found, Unusual
from protocol.errors import ErrorCode
from protocol.messages.fetch import (
    AbortedTransaction,
    FetchableTopicResponse,
    FetchResponse,
    FetchResponseEpochEndOffset,
    FetchResponseLeaderIdAndEpoch,
    FetchResponseNodeEndpoint,
    PartitionData,
)

if TYPE_CHECKING:
    from collections.abc import Iterable

    from broker.base.context import Context
    from broker.cluster.nodes import Nodes
    from broker.partitions.fetch_session import FetchSession, Wanted
    from broker.partitions.partition import Partition
    from storage.log.log import FileSlice

LEADER_SINCE: Final = 16
EMPTY_LIST: Final = UNKNOWN | {int(ErrorCode.TOPIC_AUTHORIZATION_FAILED)}  # of transactions; else null


class Responder:
    """Makes the responses to one Fetch and its repeats, of the same messages as long as nothing is unusual.

    is_clean   the last response has no error and nothing else unusual.
    """

    __slots__ = ("_answers", "_ctx", "_nodes", "_reader", "_response", "_topics", "is_clean")

    def __init__(self, ctx: Context, reader: FetchReader, nodes: Nodes) -> None:
        self._ctx = ctx
        self._reader = reader
        self._nodes = nodes
        self._response = FetchResponse()
        self._topics: list[FetchableTopicResponse] = []
        self._answers: list[PartitionData] = []
        self.is_clean = True

    def respond(self, found: Iterable[Found], session: FetchSession | None) -> FetchResponse:
        """The response. In a session it leaves out what is as before, and partitions with records come last next time.

        An earlier response must not be used any more.
        """
        if not self.is_clean:
            self._response, self._topics, self._answers = FetchResponse(), [], []
            self.is_clean = True
        response, topics, answers, committed = self._response, self._topics, self._answers, self._reader.committed
        responses: list[FetchableTopicResponse] = []
        response.responses = responses
        partitions: list[PartitionData] = []
        last: Wanted | None = None
        used = 0
        for wanted, partition, records, unusual in found:
            if partition is None:
                assert unusual is not None
                self.is_clean = False
                answer = self._refused(wanted, unusual.error_code, response.node_endpoints)
                wanted.high_watermark = wanted.log_start_offset = -1
            else:
                high_watermark, log_start_offset = partition.high_watermark, partition.log.log_start_offset
                if session is not None:
                    if records is not None:
                        session.serve_last((wanted.topic_id if self._reader.by_id else wanted.topic, wanted.partition))
                    elif (
                        wanted.high_watermark == high_watermark
                        and wanted.log_start_offset == log_start_offset
                        and (unusual is None or unusual.diverging is None)
                    ):
                        continue
                wanted.high_watermark, wanted.log_start_offset = high_watermark, log_start_offset
                if used == len(answers):
                    answers.append(PartitionData())
                answer = answers[used]
                used += 1
                answer.partition_index = wanted.partition
                answer.high_watermark, answer.log_start_offset = high_watermark, log_start_offset
                answer.last_stable_offset = partition.last_stable_offset
                answer.aborted_transactions = _aborted(wanted, partition, records) if committed else None
                answer.records = b"" if records is None else records
                if unusual is not None:
                    self._tell(answer, unusual)
            if last is None or last.topic_id != wanted.topic_id or last.topic != wanted.topic:
                if len(responses) == len(topics):
                    topics.append(FetchableTopicResponse())
                topic = topics[len(responses)]
                topic.topic, topic.topic_id, topic.partitions = wanted.topic, wanted.topic_id, []
                responses.append(topic)
                last, partitions = wanted, topic.partitions
            partitions.append(answer)
        if session is not None:
            response.session_id = session.session_id
        return response

    def forget_records(self) -> None:
        """The response is encoded: keep no slices of files, and so no files that are deleted."""
        for answer in self._answers:
            answer.records = b""

    def _tell(self, answer: PartitionData, unusual: Unusual) -> None:
        """As in Kafka, there is no list where nothing was read although there is something."""
        self.is_clean = False
        answer.aborted_transactions = None
        if unusual.diverging is not None:
            epoch, end_offset = unusual.diverging
            answer.diverging_epoch = FetchResponseEpochEndOffset(epoch=epoch, end_offset=end_offset)

    def _refused(self, wanted: Wanted, code: int, endpoints: list[FetchResponseNodeEndpoint]) -> PartitionData:
        """The answer for a partition that cannot be read. From v16 on it names the leader."""
        answer = PartitionData(partition_index=wanted.partition, error_code=code, high_watermark=-1, records=b"")
        if code not in EMPTY_LIST:
            answer.aborted_transactions = None
        if code in (NOT_LEADER, FENCED) and self._ctx.api_version >= LEADER_SINCE:
            info = self._reader.topic(wanted).partitions[wanted.partition]
            answer.current_leader = FetchResponseLeaderIdAndEpoch(leader_id=info.leader, leader_epoch=info.leader_epoch)
            is_named = any(each.node_id == info.leader for each in endpoints)
            if not is_named and self._reader.replica_id < 0:  # a follower knows where the leader is
                host, port = self._nodes.endpoint(info.leader, self._ctx)
                if port >= 0:
                    endpoints.append(FetchResponseNodeEndpoint(node_id=info.leader, host=host, port=port))
        return answer


def _aborted(wanted: Wanted, partition: Partition, records: FileSlice | bytes | None) -> list[AbortedTransaction]:
    """The aborted transactions that overlap the records."""
    if records is None or isinstance(records, bytes):  # message sets: their clients know no transactions
        return []
    return [
        AbortedTransaction(producer_id=producer_id, first_offset=offset)
        for producer_id, offset in partition.aborted_transactions(wanted.fetch_offset, records.end_offset)
    ]
