"""What one Produce asks: the batch for each partition, the producer that they name, and what is answered to each."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final, TypeAlias

from broker.cluster.followers import NO_CEILING
from broker.coordinator.transactions.gate import PRODUCE_ADDS_SINCE
from broker.partitions.incoming_batch import Buffer, ClientBatch
from broker.partitions.record_rules import ZSTD_SINCE, RecordsRefusedError, is_transactional, next_batch, one_batch
from broker.requests.message_sets import PRODUCE_BATCHES_SINCE
from protocol.errors import ErrorCode, KafkaError
from protocol.messages.produce import (
    BatchIndexAndErrorMessage,
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    ProduceResponseLeaderIdAndEpoch,
    ProduceResponseNodeEndpoint,
    TopicProduceResponse,
)
from protocol.record_batch import HEADER, HEADER_BYTES

if TYPE_CHECKING:
    from broker.base.context import Context
    from broker.cluster.metadata import ClusterMetadata
    from broker.cluster.nodes import Nodes
    from broker.cluster.topics import Topic
    from broker.coordinator.transactions.transaction import Partitions as TransactionPartitions
    from broker.partitions.partition import Partition
    from broker.partitions.record_rules import WrittenBeforeError
    from broker.turn.decision import Writes
    from broker.turn.flush_state import FlushState

TOPIC_IDS_SINCE: Final = 13

# Kafka answers these without a log start offset, also when the partition was looked up
_NO_START_OFFSET: Final = frozenset(
    {
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.UNKNOWN_TOPIC_ID,
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.MESSAGE_TOO_LARGE,
        ErrorCode.RECORD_LIST_TOO_LARGE,
        ErrorCode.CORRUPT_MESSAGE,
        ErrorCode.KAFKA_STORAGE_ERROR,
        ErrorCode.INVALID_TOPIC_EXCEPTION,
        ErrorCode.INVALID_REQUIRED_ACKS,
    }
)

Label: TypeAlias = tuple[str, bytes]  # a topic as the request names it: name and id, one of which is empty


class Entry:
    """One partition of a request: its batch, if it has one, and the answer. Offsets are -1 where it is refused."""

    __slots__ = (
        "append_ms",
        "base_offset",
        "batch",
        "code",
        "index",
        "is_new",
        "label",
        "leader",
        "message",
        "partition",
        "record_errors",
        "start_offset",
    )

    def __init__(self, label: Label, index: int) -> None:
        self.label = label
        self.index = index
        self.batch = ClientBatch(b"")
        self.partition: Partition | None = None  # once it is known that this node leads it
        self.is_new = False  # and to be written; a batch that is not, and has no error, is a repetition
        self.code = 0
        self.message: str | None = None
        self.record_errors: Sequence[tuple[int, str]] = ()
        self.base_offset = self.append_ms = self.start_offset = -1
        self.leader: tuple[int, int] | None = None  # id and epoch, where another node leads

    def refuse(self, error: KafkaError) -> None:
        """Answer an error."""
        self.code, self.message = error.code, error.message
        self.base_offset = self.append_ms = self.start_offset = -1
        if isinstance(error, RecordsRefusedError):
            self.record_errors = error.errors

    def accept(self, log_start_offset: int) -> None:
        """Answer where the batch is in the log."""
        self.base_offset, self.append_ms = self.batch.base_offset, self.batch.append_ms
        self.start_offset = log_start_offset

    @property
    def end_offset(self) -> int:
        """The offset after the batch."""
        return self.base_offset + self.batch.last_delta + 1


class Ask:
    """What one Produce asks, and what has been decided on it.

    topics      what it sends: a topic, and each partition's index and records (None: null).
    rows        the answers: a topic, and the entry of each of its partitions, in the order of the request.
    judged      those whose batches were judged.
    gated       those whose batches wait at the transaction gate.
    appended    those whose batches are in the log, and the partitions.
    sought      those that are known to be written, until they are looked up: partition, entry, and the error else.
    seen        the logs that errors were made from: the answer waits until they are durable.
    failed      whether something was refused.
    endpoints   of the leaders that answers name.
    The rest is of a request that may be repeated: the batch and its partition.
    """

    batch: ClientBatch
    partition: Partition
    writes: Writes
    places: TransactionPartitions  # the partition, for the gate

    __slots__ = (
        "acks",
        "appended",
        "batch",
        "endpoints",
        "failed",
        "gated",
        "is_transactional",
        "judged",
        "partition",
        "places",
        "rows",
        "seen",
        "sought",
        "timeout_ms",
        "topics",
        "transactional_id",
        "writes",
    )

    def __init__(self, request: ProduceRequest) -> None:
        self.acks = request.acks
        self.timeout_ms = request.timeout_ms
        self.transactional_id = request.transactional_id
        self.topics: Sequence[tuple[Label, list[tuple[int, Buffer | None]]]] = [
            ((each.name, each.topic_id), [(part.index, part.records) for part in each.partition_data])
            for each in request.topic_data
        ]
        self.rows: dict[Label, dict[int, Entry]] = {}
        self.judged: list[Entry] = []
        self.gated: list[Entry] = []
        self.appended: list[tuple[Partition, Entry]] = []
        self.sought: list[tuple[Partition, Entry, WrittenBeforeError]] = []
        self.seen: list[FlushState] = []
        self.failed = False
        self.endpoints: dict[int, tuple[str, int]] = {}
        self.is_transactional = self.transactional_id is not None

    def check_first_batches(self) -> None:
        """Look at the first batch of each partition, up to the first transactional one.

        Errors:  CORRUPT_MESSAGE, TRANSACTIONAL_ID_AUTHORIZATION_FAILED.
        Source:  Kafka's RequestUtils.hasTransactionalRecords.
        """
        for _, parts in self.topics:
            for _, records in parts:
                if records is not None and next_batch(records) and is_transactional(records):
                    if self.transactional_id is None:
                        raise KafkaError(
                            ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
                            "Transactional records came without a transactional id",
                        )
                    return

    def refuse(self, entry: Entry, error: KafkaError) -> None:
        """Answer an error for a partition, and where its log begins if that had been looked up."""
        self.failed = True
        entry.refuse(error)
        if entry.partition is not None and error.code not in _NO_START_OFFSET:
            entry.start_offset = entry.partition.log.log_start_offset

    def reads(self) -> tuple[FlushState, ...]:
        """The logs that the answer depends on."""
        return tuple(dict.fromkeys([*self.seen, *(partition.flush_state for partition, _ in self.appended)]))

    def take_sought(self) -> list[tuple[Partition, Entry, WrittenBeforeError]]:
        """What is to be looked up; it is looked up once."""
        taken, self.sought = self.sought, []
        return taken

    def may_repeat(self) -> bool:
        """Whether other batches of the same partition may go the same way: one was appended, and nothing waits."""
        if self.failed or len(self.appended) != 1 or sum(map(len, self.rows.values())) != 1 or not self.acks:
            return False
        partition, entry = self.appended[0]
        is_plain = partition.ceiling == NO_CEILING and not partition.topic.internal
        return is_plain and entry.batch.transactional is self.is_transactional

    def keep(self) -> None:
        """Keep what the next batch needs, and no records."""
        self.partition, entry = self.appended[0]
        self.rows, self.judged, self.appended = {}, [], []
        self.batch = entry.batch
        self.batch.let_go()
        self.writes = ((self.partition, self.batch),)
        self.places = {self.partition.topic.name: (self.partition.index,)}

    def name_leader(self, entry: Entry, topic: Topic, nodes: Nodes, ctx: Context) -> None:
        """Say in the answer which node leads the partition, and where it is if its address is known."""
        leader = topic.partitions[entry.index]
        entry.leader = leader.leader, leader.leader_epoch
        host, port = nodes.endpoint(leader.leader, ctx)
        if port >= 0:
            self.endpoints.setdefault(leader.leader, (host, port))

    def take_batches(self, metadata: ClusterMetadata, api_version: int) -> list[Entry]:
        """The entries to append, one a partition. The others are refused; every partition has one answer."""
        found: dict[tuple[Label, int], Buffer] = {}
        broken: set[tuple[Label, int]] = set()
        zstd_allowed, begins_at_zero = api_version >= ZSTD_SINCE, api_version >= PRODUCE_ADDS_SINCE
        for label, parts in self.topics:
            row = self.rows.setdefault(label, {})
            topic = find_topic(metadata, api_version, label)
            for index, records in parts:
                entry = row.get(index)
                if entry is None:
                    entry = row[index] = Entry(label, index)
                try:
                    if isinstance(topic, KafkaError):
                        raise topic
                    if not 0 <= index < len(topic.partitions):
                        raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
                    if records is not None and api_version >= PRODUCE_BATCHES_SINCE:
                        records = one_batch(records, zstd_allowed)
                    found[label, index] = b"" if records is None else records
                except KafkaError as error:
                    self.refuse(entry, error)
                    broken.add((label, index))
        self.topics = ()
        entries = []
        for (label, index), records in found.items():
            # a partition that is named twice, once without a batch, is answered that, and gets the other one
            entry = Entry(label, index) if (label, index) in broken else self.rows[label][index]
            entry.batch = ClientBatch(records, zstd_allowed=zstd_allowed, begins_at_zero=begins_at_zero)
            entries.append(entry)
        return entries


def has_producer(records: Buffer) -> bool:
    """Whether a batch is transactional and has a producer id."""
    return len(records) >= HEADER_BYTES and is_transactional(records) and HEADER.unpack_from(records)[9] >= 0


def producer_of(entries: Sequence[Entry]) -> tuple[int, int] | None:
    """Producer id and epoch of the transactional records of a request."""
    all_records = [entry.batch.records for entry in entries]
    found = {HEADER.unpack_from(records)[9:11] for records in all_records if has_producer(records)}
    if len(found) > 1:
        raise KafkaError(
            ErrorCode.INVALID_PRODUCER_ID_MAPPING, "Transactional records contained more than one producer ID"
        )
    return found.pop() if found else None


def find_topic(metadata: ClusterMetadata, api_version: int, label: Label) -> Topic | KafkaError:
    """The topic by name, or by id where the version has ids, or the error to answer."""
    topic: Topic | None
    if api_version >= TOPIC_IDS_SINCE:
        topic = metadata.topics_by_id.get(label[1])
        return topic or KafkaError(ErrorCode.UNKNOWN_TOPIC_ID)
    topic = metadata.topics.get(label[0])
    return topic or KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)


def response_of(ask: Ask) -> ProduceResponse:
    """The answers, as a message."""
    responses = []
    for (name, topic_id), row in ask.rows.items():
        answers = []
        for entry in row.values():
            answer = PartitionProduceResponse(
                index=entry.index,
                error_code=entry.code,
                base_offset=entry.base_offset,
                log_append_time_ms=entry.append_ms,
                log_start_offset=entry.start_offset,
                error_message=entry.message,
            )
            if entry.record_errors:
                answer.record_errors = [
                    BatchIndexAndErrorMessage(batch_index=at, batch_index_error_message=message)
                    for at, message in entry.record_errors
                ]
            if entry.leader is not None:
                leader_id, epoch = entry.leader
                answer.current_leader = ProduceResponseLeaderIdAndEpoch(leader_id=leader_id, leader_epoch=epoch)
            answers.append(answer)
        responses.append(TopicProduceResponse(name=name, topic_id=topic_id, partition_responses=answers))
    endpoints = [
        ProduceResponseNodeEndpoint(node_id=node_id, host=host, port=port)
        for node_id, (host, port) in ask.endpoints.items()
    ]
    return ProduceResponse(responses=responses, node_endpoints=endpoints)
