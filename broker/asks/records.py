"""Asks that read and append records, and the one rule for which records of a log a consumer sees.

The Fetch handler and share groups decide what is sent; this is the reader's side of it, as clients have it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Final

from broker.asks.ask import Ask, Leader, Node, Question, check
from protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from protocol.record_batch import ABORT, control_type, iter_batches, iter_records

if TYPE_CHECKING:
    from protocol.messages.fetch import AbortedTransaction, FetchResponse, PartitionData
    from protocol.messages.produce import PartitionProduceResponse, ProduceResponse
    from protocol.record import Buffer, Record
    from protocol.record_batch import BatchHeader

FETCH_BY_NAME, FETCH_BY_ID, PRODUCE_VERSION = 12, 17, 9  # of Produce: by the topic's name
PIECE_BYTES: Final = 1 << 20
NO_ID: Final = bytes(16)
TIMEOUT_MS: Final = 10_000
NONE, OPEN, COMMITTED, ABORTED, MARKER = "", "open", "committed", "aborted", "marker"
NO_OFFSET: Final = 1 << 62
NOTHING_OPEN: Final[Mapping[int, int]] = {}


class Outcomes:
    """Tells the outcome of each batch of one partition; batches are asked about in the order of their offsets.

    ahead    (first offset, producer id) of aborted transactions, as a Fetch reply names them.
    opened   producer id -> first offset of its open transaction.
    stable   from this offset on, what is in a transaction is open.
    """

    def __init__(
        self,
        ahead: Iterable[tuple[int, int]] = (),
        opened: Mapping[int, int] = NOTHING_OPEN,
        stable: int = NO_OFFSET,
    ) -> None:
        self.expect(ahead)
        self._aborting: set[int] = set()
        self._opened = opened
        self._stable = stable

    def expect(self, ahead: Iterable[tuple[int, int]]) -> None:
        """Take the aborted transactions of the next reply in place of those of the one before."""
        self._ahead = sorted(ahead)

    def of(self, header: BatchHeader, batch: Buffer) -> str:
        """NONE outside transactions, MARKER of a control batch, else OPEN, COMMITTED or ABORTED.

        An aborted transaction goes from the first offset that is named for its producer to the producer's abort marker.

        Source:  KIP-98; the consumer's fetcher.
        """
        ahead, producer = self._ahead, header.producer_id
        while ahead and ahead[0][0] <= header.last_offset:
            self._aborting.add(ahead.pop(0)[1])
        if header.is_control:
            marker = next(iter_records(batch), None)
            if marker is not None and marker.key is not None and control_type(marker.key) == ABORT:
                self._aborting.discard(producer)
            return MARKER
        if not header.is_transactional:
            return NONE
        if header.base_offset >= self._stable:
            return OPEN
        if producer in self._aborting:
            return ABORTED
        return OPEN if header.base_offset >= self._opened.get(producer, NO_OFFSET) else COMMITTED


def named(aborted: Iterable[AbortedTransaction] | None) -> list[tuple[int, int]]:
    """(first offset, producer id) of the aborted transactions that a Fetch reply names."""
    return [(each.first_offset, each.producer_id) for each in aborted or ()]


def committed_records(data: bytes, ahead: Iterable[tuple[int, int]]) -> Iterator[tuple[int, Record | None]]:
    """(offset, record) of all records of some batches; None: a marker, or a record of an aborted transaction.

    ahead   the aborted transactions that touch them, as of Outcomes.
    """
    outcomes, view = Outcomes(ahead), memoryview(data)
    for place, header in iter_batches(data):
        batch = view[place : place + header.size]
        is_seen = outcomes.of(header, batch) not in (MARKER, ABORTED)
        for record in iter_records(batch):
            yield record.offset, record if is_seen else None
        yield header.last_offset, None  # the cleaner may have removed the last records of a batch


def fetch(
    topic: str,
    partition: int,
    offset: int,
    *,
    committed: bool = False,
    most_bytes: int = PIECE_BYTES,
    topic_id: bytes = NO_ID,
) -> Ask[PartitionData]:
    """What a partition has from an offset on, without waiting; committed: up to its last stable offset, with the
    aborted transactions. The row may have an error. topic_id: it is asked for by its id, not by its name.
    """
    request = _request({partition: offset}, topic, topic_id, committed, most_bytes, most_bytes, 0)
    version = FETCH_BY_NAME if topic_id == NO_ID else FETCH_BY_ID
    answer: FetchResponse = yield Question(request, version, Leader(topic, partition))
    check(f"topic {topic}", answer.error_code)
    return answer.responses[0].partitions[0]


def fetch_led(
    topic: str, positions: Mapping[int, int], leader: int, *, committed: bool, wait_ms: int, most_bytes: int
) -> Ask[list[PartitionData]]:
    """What partitions of one leader have from their positions on; it waits for the first byte so long."""
    request = _request(positions, topic, NO_ID, committed, most_bytes, most_bytes * 4, wait_ms)
    answer: FetchResponse = yield Question(request, FETCH_BY_NAME, Node(leader))
    check(f"topic {topic}", answer.error_code)
    return [each for answered in answer.responses for each in answered.partitions]


def _request(
    positions: Mapping[int, int],
    topic: str,
    topic_id: bytes,
    committed: bool,
    partition_bytes: int,
    most_bytes: int,
    wait_ms: int,
) -> FetchRequest:
    """A Fetch outside of sessions."""
    wanted = [
        FetchPartition(partition=partition, fetch_offset=offset, partition_max_bytes=partition_bytes)
        for partition, offset in positions.items()
    ]
    return FetchRequest(
        max_wait_ms=wait_ms,
        min_bytes=1 if wait_ms else 0,
        max_bytes=most_bytes,
        isolation_level=int(committed),
        session_epoch=-1,
        topics=[FetchTopic(topic=topic, topic_id=topic_id, partitions=wanted)],
    )


def produce(topic: str, partition: int, batch: bytes, *, acks: int = -1, timeout_ms: int = TIMEOUT_MS) -> Ask[int]:
    """Append a batch. Returns the offset of its first record. Errors: AnswerError."""
    data = [PartitionProduceData(index=partition, records=batch)]
    topics = [TopicProduceData(name=topic, partition_data=data)]
    request = ProduceRequest(acks=acks, timeout_ms=timeout_ms, topic_data=topics)
    answer: ProduceResponse = yield Question(request, PRODUCE_VERSION, Leader(topic, partition))
    row: PartitionProduceResponse = answer.responses[0].partition_responses[0]
    check(f"{topic}-{partition}", row.error_code, row.error_message)
    return row.base_offset
