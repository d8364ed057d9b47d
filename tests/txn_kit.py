"""A transactional producer over a simulated broker: each request by hand, in whichever version a test wants."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from core_broker import Client, World

from protocol.messages.cluster import FindCoordinatorRequest
from protocol.messages.coordinator_records import TransactionLogValue, decode_transaction_record
from protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from protocol.messages.offsets import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
)
from protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from protocol.messages.transaction_admin import DescribeTransactionsRequest
from protocol.messages.transactions import (
    AddOffsetsToTxnRequest,
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnTopic,
    EndTxnRequest,
    InitProducerIdRequest,
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
)
from protocol.record import Record
from protocol.record_batch import TRANSACTIONAL, build_batch, control_type, iter_batches, iter_records

ABORT, COMMIT = 0, 1


def topic_id(world: World | None, name: str) -> bytes:
    """Of a topic, which newer versions name it by; zeros: there is none, or the broker is another process."""
    topic = None if world is None else world.broker.metadata.topics.get(name)
    return bytes(16) if topic is None else topic.topic_id


class Producer:
    """One transactional producer; v2: with the requests of transactions v2 (KIP-890)."""

    def __init__(self, client: Client, name: str = "tx", *, v2: bool = True) -> None:
        self.client = client
        self.name = name
        self.v2 = v2
        self.id, self.epoch = -1, -1
        self.sequences: dict[tuple[str, int], int] = {}

    def init(self, version: int = 5, *, timeout_ms: int = 60_000, resume: bool = False) -> int:
        """InitProducerId; its error code."""
        request = InitProducerIdRequest(transactional_id=self.name, transaction_timeout_ms=timeout_ms)
        if resume:
            request.producer_id, request.producer_epoch = self.id, self.epoch
        answer = self.client.call(request, version)
        if not answer.error_code:
            self._is_now(answer.producer_id, answer.producer_epoch)
        return int(answer.error_code)

    def _is_now(self, producer_id: int, epoch: int) -> None:
        if (producer_id, epoch) != (self.id, self.epoch):
            self.sequences.clear()
        self.id, self.epoch = producer_id, epoch

    def add(self, partitions: Mapping[str, list[int]], version: int = 3) -> dict[tuple[str, int], int]:
        """AddPartitionsToTxn; the error code of each partition."""
        request = AddPartitionsToTxnRequest(
            v3_and_below_transactional_id=self.name,
            v3_and_below_producer_id=self.id,
            v3_and_below_producer_epoch=self.epoch,
            v3_and_below_topics=[AddPartitionsToTxnTopic(name=t, partitions=p) for t, p in partitions.items()],
        )
        answer = self.client.call(request, version)
        return {
            (topic.name, each.partition_index): each.partition_error_code
            for topic in answer.results_by_topic_v3_and_below
            for each in topic.results_by_partition
        }

    def add_offsets(self, group_id: str = "g", version: int = 3) -> int:
        """AddOffsetsToTxn; its error code."""
        request = AddOffsetsToTxnRequest(
            transactional_id=self.name, producer_id=self.id, producer_epoch=self.epoch, group_id=group_id
        )
        return int(self.client.call(request, version).error_code)

    def produce_request(self, *values: bytes, topic: str = "t", index: int = 0) -> ProduceRequest:
        """One transactional batch, with the next sequence."""
        sequence = self.sequences.get((topic, index), 0)
        self.sequences[topic, index] = sequence + len(values)
        records = build_batch(
            [(None, value) for value in values],
            leader_epoch=-1,
            timestamp_ms=self.client.world.clock.now_ms(),
            producer_id=self.id,
            producer_epoch=self.epoch,
            base_sequence=sequence,
            attributes=TRANSACTIONAL,
        )
        data = TopicProduceData(name=topic, partition_data=[PartitionProduceData(index=index, records=records)])
        return ProduceRequest(transactional_id=self.name, acks=-1, timeout_ms=1000, topic_data=[data])

    def produce(self, *values: bytes, topic: str = "t", index: int = 0, version: int | None = None) -> int:
        """Append a batch; its error code."""
        request = self.produce_request(*values, topic=topic, index=index)
        version = (12 if self.v2 else 11) if version is None else version
        answer = self.client.call(request, version)
        return int(answer.responses[0].partition_responses[0].error_code)

    def offsets_request(
        self, offsets: Mapping[int, int], group_id: str = "g", topic: str = "t", **member: Any
    ) -> TxnOffsetCommitRequest:
        """Offsets by partition for a group."""
        return TxnOffsetCommitRequest(
            transactional_id=self.name,
            group_id=group_id,
            producer_id=self.id,
            producer_epoch=self.epoch,
            topics=[
                TxnOffsetCommitRequestTopic(
                    name=topic,
                    topic_id=topic_id(self.client.world, topic),
                    partitions=[
                        TxnOffsetCommitRequestPartition(
                            partition_index=index, committed_offset=offset, committed_metadata=""
                        )
                        for index, offset in offsets.items()
                    ],
                )
            ],
            **member,
        )

    def send_offsets(
        self,
        offsets: Mapping[int, int],
        group_id: str = "g",
        topic: str = "t",
        version: int | None = None,
        **member: Any,
    ) -> dict[int, int]:
        """TxnOffsetCommit; the error code of each partition."""
        request = self.offsets_request(offsets, group_id, topic, **member)
        if version is None:
            by_id = self.client.world is not None  # else the topic's id is not known here
            version = 3 if not self.v2 else 6 if by_id else 5
        answer = self.client.call(request, version)
        return {each.partition_index: each.error_code for row in answer.topics for each in row.partitions}

    def end_request(self, *, commit: bool = True) -> EndTxnRequest:
        """The request that ends the transaction."""
        return EndTxnRequest(
            transactional_id=self.name, producer_id=self.id, producer_epoch=self.epoch, committed=commit
        )

    def end(self, *, commit: bool = True, version: int | None = None) -> int:
        """EndTxn; its error code. The producer takes over the epoch it is told."""
        version = (5 if self.v2 else 4) if version is None else version
        answer = self.client.call(self.end_request(commit=commit), version)
        if not answer.error_code and version >= 5:
            self._is_now(answer.producer_id, answer.producer_epoch)
        return int(answer.error_code)


def state_of(client: Client, name: str = "tx") -> Any:
    """What DescribeTransactions says."""
    return client.call(DescribeTransactionsRequest(transactional_ids=[name]), 0).transaction_states[0]


def find_coordinator(client: Client, key: str = "tx", key_type: int = 1) -> Any:
    """The coordinator of a transactional id."""
    return client.call(FindCoordinatorRequest(key_type=key_type, coordinator_keys=[key]), 4).coordinators[0]


def committed(
    client: Client, group_id: str = "g", topic: str = "t", partitions: tuple[int, ...] = (0,), *, stable: bool = False
) -> dict[int, tuple[int, int]]:
    """Partition -> (offset, error code)."""
    wanted = OffsetFetchRequestGroup(
        group_id=group_id, topics=[OffsetFetchRequestTopics(name=topic, partition_indexes=list(partitions))]
    )
    answer = client.call(OffsetFetchRequest(groups=[wanted], require_stable=stable), 8).groups[0]
    return {
        each.partition_index: (each.committed_offset, each.error_code)
        for row in answer.topics
        for each in row.partitions
    }


def fetched(client: Client, topic: str = "t", index: int = 0, *, read_committed: bool = True) -> Any:
    """All of a partition in one Fetch: the partition's answer, records as bytes."""
    part = FetchPartition(partition=index, fetch_offset=0, partition_max_bytes=1 << 24)
    request = FetchRequest(
        session_epoch=-1,
        isolation_level=int(read_committed),
        max_wait_ms=0,
        min_bytes=0,
        max_bytes=1 << 24,
        topics=[FetchTopic(topic=topic, partitions=[part])],
    )
    return client.call(request, 12).responses[0].partitions[0]


def visible(client: Client, topic: str = "t", index: int = 0) -> list[bytes]:
    """What a read_committed consumer is given."""
    answer = fetched(client, topic, index)
    return [record.value for record in not_aborted(bytes(answer.records), answer.aborted_transactions)]


def not_aborted(data: bytes, aborted: Iterable[Any] | None) -> Iterator[Record]:
    """The records of a reply to a read_committed Fetch, without aborted ones, as clients drop them."""
    left = sorted((each.first_offset, each.producer_id) for each in aborted or ())
    aborting: set[int] = set()
    for position, header in iter_batches(data):
        while left and left[0][0] <= header.last_offset:
            aborting.add(left.pop(0)[1])
        for record in iter_records(data[position : position + header.size]):
            if header.is_control:
                if control_type(record.key) == ABORT:
                    aborting.discard(header.producer_id)
            elif not (header.is_transactional and header.producer_id in aborting):
                yield record


def end_of(data: bytes) -> int:
    """The offset behind some batches."""
    *_, (_, last) = iter_batches(data)
    return last.next_offset


def markers_of(world: World, topic: str = "t", index: int = 0) -> list[tuple[int, int, int]]:
    """(producer id, epoch, ABORT or COMMIT) of each marker in a partition's log, in order."""
    broker = world.broker
    found = broker.metadata.topics[topic]
    log = broker.partitions.get(found, index).log
    return [
        (header.producer_id, header.producer_epoch, control_type(record.key))
        for header, batch in log.batches(log.log_start_offset)
        if header.is_control
        for record in iter_records(batch)
    ]


def transaction_values(records: Iterable[Any]) -> Iterator[tuple[str, TransactionLogValue | None]]:
    """Transactional id and value of the records that hold a transaction's state; there are others."""
    for record in records:
        if record.key[:2] == b"\0\0":
            key, value = decode_transaction_record(record.key, record.value)
            yield key.transactional_id, value


def states_in_log(world: World, name: str = "tx") -> list[int]:
    """The state in each record of a transactional id, in order."""
    log = world.broker.transactions.shard(name).log
    return [
        value.transaction_status
        for _, batch in log.batches(log.log_start_offset)
        for key, value in transaction_values(iter_records(batch))
        if key == name and value is not None
    ]
