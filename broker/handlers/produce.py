"""Produce: append record batches to the partitions their leader is asked for.

Versions:  3-13 (0-2 are listed by ApiVersions for librdkafka's sake and refused).
Behaviour: one batch of magic 2 a partition; what a batch must satisfy stands in Partition.append. The reply waits for
           the journal of every partition it touched. acks: 0 gets no reply, and an error closes the connection; 1 and
           -1 mean the same here, where a log has one replica.
Notes:     5 answers LogStartOffset; 7 allows zstd; 8 RecordErrors and ErrorMessage (KIP-467); 10 CurrentLeader and
           NodeEndpoints (KIP-951); 13 topic ids instead of names (KIP-516).
Absent:    transactional batches: no transactional id exists yet, so they get what Kafka gives for an unknown one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from broker.record_rules import ZSTD_SINCE, NotOneBatchError, RecordsRefusedError, is_transactional
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
from storage.errors import StorageError

if TYPE_CHECKING:
    from broker.broker import Broker
    from broker.coordinator.result import Context
    from broker.metadata import Topic
    from broker.partition import Partition

LEADER_SINCE: Final = 10
TOPIC_IDS_SINCE: Final = 13
ADMIN_CLIENT: Final = "__admin_client"  # the one client id that may write to internal topics

# refused before the partition was looked at: Kafka answers these without a log start offset
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


def produce(broker: Broker, ctx: Context, request: ProduceRequest) -> ProduceResponse | None:
    """Append each batch or say why not, partition by partition; None when no reply is wanted.

    Errors:  TRANSACTIONAL_ID_AUTHORIZATION_FAILED: transactional records without a transactional id, the whole request.
             a partition: UNKNOWN_TOPIC_OR_PARTITION, UNKNOWN_TOPIC_ID, INVALID_REQUIRED_ACKS, INVALID_TOPIC_EXCEPTION
             (internal), NOT_LEADER_OR_FOLLOWER, INVALID_PRODUCER_ID_MAPPING (transactional), Partition.append's.
    Source:  Kafka's KafkaApis.handleProduceRequest, ReplicaManager.appendToLocalLog.
    """
    if request.transactional_id is None:
        _refuse_anonymous_transactions(ctx, request)
    journals: list[Any] = []
    endpoints: dict[int, ProduceResponseNodeEndpoint] = {}
    failed = False
    topics: list[TopicProduceResponse] = []
    for topic_data in request.topic_data:
        topic = find_topic(broker, ctx.api_version, topic_data.name, topic_data.topic_id)
        partitions: list[PartitionProduceResponse] = []
        for data in topic_data.partition_data:
            partition: Partition | None = None
            try:
                partition = _writable(broker, ctx, request.acks, topic, data.index)
                if data.records is None:
                    raise KafkaError(ErrorCode.INVALID_RECORD, "There are no records")
                if request.transactional_id is not None and is_transactional(data.records):
                    raise KafkaError(ErrorCode.INVALID_PRODUCER_ID_MAPPING)
                zstd_allowed = ctx.api_version >= ZSTD_SINCE
                offset, append_time = partition.append(data.records, ctx.now_ms, zstd_allowed=zstd_allowed)
            except (KafkaError, StorageError) as refused:
                error = refused if isinstance(refused, KafkaError) else KafkaError(ErrorCode.KAFKA_STORAGE_ERROR)
                failed = True
                answer = _refusal(data.index, error, partition)
                if error.code == ErrorCode.NOT_LEADER_OR_FOLLOWER and ctx.api_version >= LEADER_SINCE and topic:
                    _name_leader(broker, ctx, answer, topic, endpoints)
                partitions.append(answer)
                continue
            journal = partition.journal
            if not journal.queued:
                broker.touch(journal)
            journals.append(journal)
            partitions.append(
                PartitionProduceResponse(
                    index=data.index,
                    base_offset=offset,
                    log_append_time_ms=append_time,
                    log_start_offset=partition.log.log_start_offset,
                )
            )
        topics.append(
            TopicProduceResponse(name=topic_data.name, topic_id=topic_data.topic_id, partition_responses=partitions)
        )
    if request.acks == 0:
        ctx.close_connection = failed
        return None
    ctx.journals = journals
    return ProduceResponse(responses=topics, node_endpoints=list(endpoints.values()))


def find_topic(broker: Broker, api_version: int, name: str, topic_id: bytes) -> Topic | KafkaError:
    """The topic by name, or by id where the version has ids; the error to answer if there is none."""
    topic: Topic | None
    if api_version >= TOPIC_IDS_SINCE:
        topic = broker.metadata.topics_by_id.get(topic_id)
        return topic or KafkaError(ErrorCode.UNKNOWN_TOPIC_ID)
    topic = broker.metadata.topics.get(name)
    return topic or KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)


def _writable(broker: Broker, ctx: Context, acks: int, topic: Topic | KafkaError, index: int) -> Partition:
    """The partition, if this client may write to it here."""
    if isinstance(topic, KafkaError):
        raise topic
    if not 0 <= index < len(topic.partitions):
        raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    if not -1 <= acks <= 1:
        raise KafkaError(ErrorCode.INVALID_REQUIRED_ACKS)
    if topic.internal and ctx.client_id != ADMIN_CLIENT:
        raise KafkaError(ErrorCode.INVALID_TOPIC_EXCEPTION, f"Cannot append to internal topic {topic.name}")
    if topic.partitions[index].leader != ctx.node_id:
        raise KafkaError(ErrorCode.NOT_LEADER_OR_FOLLOWER)
    partition = broker.partition(topic, index)
    if partition.metadata_version != broker.metadata.version or partition.topic is not topic:
        partition.configure(topic, broker.metadata)
    return partition


def _refuse_anonymous_transactions(ctx: Context, request: ProduceRequest) -> None:
    for topic_data in request.topic_data:
        for data in topic_data.partition_data:
            if data.records is not None and is_transactional(data.records):
                if request.acks == 0:
                    ctx.close_connection = True
                raise KafkaError(
                    ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
                    "Transactional records came without a transactional id",
                )


def _refusal(index: int, error: KafkaError, partition: Partition | None) -> PartitionProduceResponse:
    record_errors: list[BatchIndexAndErrorMessage] = []
    if isinstance(error, RecordsRefusedError):
        record_errors = [
            BatchIndexAndErrorMessage(batch_index=at, batch_index_error_message=message) for at, message in error.errors
        ]
    start_offset = -1
    told = error.code not in _NO_START_OFFSET and not isinstance(error, NotOneBatchError)
    if partition is not None and told:
        start_offset = partition.log.log_start_offset
    return PartitionProduceResponse(
        index=index,
        error_code=error.code,
        base_offset=-1,
        log_start_offset=start_offset,
        record_errors=record_errors,
        error_message=error.message,
    )


def _name_leader(
    broker: Broker,
    ctx: Context,
    answer: PartitionProduceResponse,
    topic: Topic | KafkaError,
    endpoints: dict[int, ProduceResponseNodeEndpoint],
) -> None:
    """Tell a client that asked the wrong node whom to ask (KIP-951)."""
    assert not isinstance(topic, KafkaError)
    info = topic.partitions[answer.index]
    answer.current_leader = ProduceResponseLeaderIdAndEpoch(leader_id=info.leader, leader_epoch=info.leader_epoch)
    if info.leader not in endpoints:
        host, port = broker.endpoint(info.leader, ctx)
        if port >= 0:
            endpoints[info.leader] = ProduceResponseNodeEndpoint(node_id=info.leader, host=host, port=port)
