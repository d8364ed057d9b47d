"""TxnOffsetCommit: offsets that become a group's when a producer's transaction commits.

TxnOffsetCommit  v2: leader epochs. v3: member, generation and instance (KIP-447). v4: TRANSACTION_ABORTABLE. v5: adds
                 the group's offsets to the transaction by itself (KIP-890). No version has topic ids.

Behaviour: the checks in order: the topic exists, the offsets' partition is part of the transaction, the group accepts
           the member. So a fenced producer gets INVALID_PRODUCER_EPOCH, even with a wrong generation. The offsets are
           one batch of the producer, pending until its marker (coordinator/offsets/pending.py).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Final, Protocol

from broker.base.context import Context
from broker.cluster.topic_names import OFFSETS_TOPIC
from broker.coordinator.offsets.columns import Committed
from broker.coordinator.offsets.commit_run import Commit, Run, commit_of
from broker.coordinator.offsets.provenance import provenance
from broker.coordinator.transactions.gate import before_offsets
from broker.requests.offset_commit import utf16_length
from broker.turn.decision import LATER, Decision
from protocol.errors import ErrorCode, KafkaError
from protocol.messages.transactions import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitResponse,
    TxnOffsetCommitResponsePartition,
    TxnOffsetCommitResponseTopic,
)
from protocol.record import encode_headers
from storage.files.errors import StorageError

if TYPE_CHECKING:
    from broker.cluster.metadata import ClusterMetadata
    from broker.config.settings import BrokerConfig
    from broker.coordinator.group_shards import GroupShards
    from broker.coordinator.runtime import Shard
    from broker.coordinator.transactions.coordinator import TransactionCoordinator
    from broker.turn.turn import Turn
    from broker.wire.parked import ParkedRequests

LOADING_SINCE: Final = 2  # older producers may crash on COORDINATOR_LOAD_IN_PROGRESS

Wanted = list[tuple[str, TxnOffsetCommitRequestPartition, TxnOffsetCommitResponsePartition]]


class View(Protocol):
    """What these handlers use of the broker."""

    @property
    def metadata(self) -> ClusterMetadata: ...
    @property
    def config(self) -> BrokerConfig: ...
    @property
    def groups(self) -> GroupShards: ...
    @property
    def transactions(self) -> TransactionCoordinator: ...
    @property
    def parked(self) -> ParkedRequests: ...
    @property
    def turn(self) -> Turn: ...


def txn_offset_commit(broker: View, ctx: Context, request: TxnOffsetCommitRequest) -> Decision:
    """Add offsets to the transaction, or refuse them.

    Errors:  of a partition: UNKNOWN_TOPIC_OR_PARTITION, OFFSET_METADATA_TOO_LARGE; of all others: INVALID_GROUP_ID,
             NOT_COORDINATOR, COORDINATOR_LOAD_IN_PROGRESS, those of transactions/gate.py, UNKNOWN_MEMBER_ID,
             FENCED_INSTANCE_ID, ILLEGAL_GENERATION.
    Source:  KafkaApis.handleTxnOffsetCommitRequest, OffsetMetadataManager.commitTransactionalOffset.
    """
    topics = broker.metadata.topics
    response = TxnOffsetCommitResponse(topics=[])
    wanted: Wanted = []
    for asked in request.topics:
        topic = topics.get(asked.name)
        count = len(topic.partitions) if topic is not None else 0
        row = TxnOffsetCommitResponseTopic(name=asked.name, partitions=[])
        response.topics.append(row)
        for partition in asked.partitions:
            index = partition.partition_index
            answer = TxnOffsetCommitResponsePartition(partition_index=index)
            row.partitions.append(answer)
            if 0 <= index < count:
                wanted.append((asked.name, partition, answer))
            else:
                answer.error_code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    if not wanted:
        return Decision(response)
    try:
        if not request.group_id:
            raise KafkaError(ErrorCode.INVALID_GROUP_ID, "the group id is empty")
        shard = broker.groups.require_for_offsets(request.group_id, ctx)
    except KafkaError as error:
        return Decision(_refused(ctx, response, wanted, error.code))

    def admitted(code: ErrorCode) -> TxnOffsetCommitResponse:
        if code == ErrorCode.NONE:
            code = _append(broker, shard, ctx, request, wanted)
        return response if code == ErrorCode.NONE else _refused(ctx, response, wanted, code)

    def later(code: ErrorCode) -> None:
        response = admitted(code)
        shard.parked.discard(ctx.token)
        broker.parked.answer(ctx.token, response, shard.flush_state)

    code = before_offsets(
        broker.transactions,
        ctx,
        request.transactional_id,
        request.producer_id,
        request.producer_epoch,
        (OFFSETS_TOPIC, broker.groups.index_of(request.group_id)),
        later,
    )
    if code is None:
        return Decision(LATER)
    return Decision(admitted(code))


def _refused(ctx: Context, response: TxnOffsetCommitResponse, wanted: Wanted, code: ErrorCode) -> Any:
    if code == ErrorCode.COORDINATOR_LOAD_IN_PROGRESS and ctx.api_version < LOADING_SINCE:
        code = ErrorCode.COORDINATOR_NOT_AVAILABLE
    for _, _, answer in wanted:
        answer.error_code = code
    return response


def _checked(broker: View, wanted: Wanted) -> Iterator[tuple[str, bytes, int]]:
    """The partitions whose assignment epoch is checked: those that are not refused for their metadata."""
    limit, topics = broker.config.offset_metadata_max_bytes, broker.metadata.topics
    for name, partition, _ in wanted:
        if utf16_length(partition.committed_metadata or "") <= limit:
            topic = topics.get(name)
            yield name, topic.topic_id if topic is not None else b"", partition.partition_index


def _append(broker: View, shard: Shard, ctx: Context, request: TxnOffsetCommitRequest, wanted: Wanted) -> ErrorCode:
    """Check the group and append the offsets; one with too much metadata is refused alone."""
    try:
        shard.require()  # it may have been reloaded while the transaction's record was written
    except KafkaError as error:
        return error.code
    except (OSError, StorageError):
        return ErrorCode.COORDINATOR_NOT_AVAILABLE
    group_id = request.group_id
    code: ErrorCode = shard.machine.check_txn_offset_commit(
        group_id,
        request.generation_id,
        request.member_id,
        request.group_instance_id,
        lambda: _checked(broker, wanted),
    )
    if code != ErrorCode.NONE:
        return code
    commit = Commit(group_id, producer=(request.producer_id, request.producer_epoch))
    if broker.config.offsets_provenance:
        commit.headers = provenance(request.member_id, request.group_instance_id, request.generation_id, ctx.client_id)
    limit = broker.config.offset_metadata_max_bytes
    now_ms = broker.turn.now_ms
    run: Run | None = None
    for name, partition, answer in wanted:
        topic = broker.metadata.topics.get(name)
        if topic is None:  # deleted while the transaction's record was written
            answer.error_code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
            continue
        metadata = partition.committed_metadata or ""
        if len(metadata) > limit // 2 and utf16_length(metadata) > limit:
            answer.error_code = ErrorCode.OFFSET_METADATA_TOO_LARGE
            continue
        if run is None or run.topic != name:
            run = Run(name, topic.topic_id)
            commit.runs.append(run)
        index, offset, epoch = partition.partition_index, partition.committed_offset, partition.committed_leader_epoch
        if metadata:
            run.add_other(index, Committed(offset, epoch, metadata, now_ms, -1, topic.topic_id))
        else:
            run.add(index, offset, epoch)
    if commit.is_empty:
        shard.machine.simple_group_for(group_id, shard.log.end_offset)
    elif shard.is_short():
        return ErrorCode.COORDINATOR_NOT_AVAILABLE
    else:
        try:
            most_bytes = shard.log.config.max_message_bytes
            shard.write(commit_of(commit, encode_headers(commit.headers), most_bytes), now_ms)
        except StorageError:  # raised in a step that waited for the transaction's record, it would reach no client
            return ErrorCode.NOT_COORDINATOR
    return ErrorCode.NONE
