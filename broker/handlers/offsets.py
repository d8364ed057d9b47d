"""OffsetCommit and OffsetFetch in every version; broker.commit_path is the shortcut of the usual case.

OffsetCommit  v0-v10. v0 (the original proposal: no generation, no member) and v1 (a commit time a partition) are
              served though Kafka 4 dropped them; v2-v4 carry a retention; v6 leader epochs; v7 static members;
              v9 member epochs (KIP-848); v10 topic ids.
OffsetFetch   v0-v10. v0 answers error 3 where nothing is committed, as its time did; v2 all topics; v7 stable reads
              (KIP-447); v8 several groups; v9 member epochs; v10 topic ids.
Any broker answers both (design 1) unless offsets.any.broker is false.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Protocol

from broker.coordinator.groups.classic.commit_checks import on_offset_commit_accepted
from broker.coordinator.offsets.commit_batch import offset_key_prefix
from broker.coordinator.offsets.provenance import provenance
from broker.coordinator.offsets.table import TopicOffsets
from broker.coordinator.result import Context, Record, Result
from broker.handlers.expected_offsets import refuse_conflicts
from protocol.errors import ErrorCode, KafkaError
from protocol.messages.coordinator_records import OffsetCommitValue, encode_record
from protocol.messages.offsets import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitResponse,
    OffsetCommitResponsePartition,
    OffsetCommitResponseTopic,
    OffsetFetchRequest,
    OffsetFetchResponse,
    OffsetFetchResponseGroup,
    OffsetFetchResponsePartition,
    OffsetFetchResponsePartitions,
    OffsetFetchResponseTopic,
    OffsetFetchResponseTopics,
)

if TYPE_CHECKING:
    from broker.cluster.metadata import ClusterMetadata, Topic
    from broker.config.settings import BrokerConfig
    from broker.coordinator.group_shards import GroupShards
    from broker.coordinator.groups.common.assignment_epoch_checks import CommittedPartitions
    from broker.coordinator.runtime import Shard

ZERO_ID = bytes(16)


class View(Protocol):
    """What these handlers use of the broker."""

    @property
    def metadata(self) -> ClusterMetadata: ...
    @property
    def config(self) -> BrokerConfig: ...
    @property
    def groups(self) -> GroupShards: ...


def offset_commit(broker: View, ctx: Context, request: OffsetCommitRequest) -> Result:
    """Accept or refuse the offsets one member commits.

    Shape:   one OffsetCommit record per accepted partition, in request order, one batch.
    Units:   offsets count records; ctx.now_ms is Unix milliseconds.
    Errors:  per partition UNKNOWN_TOPIC_OR_PARTITION, UNKNOWN_TOPIC_ID, OFFSET_METADATA_TOO_LARGE; for all of them
             whatever the group says (UNKNOWN_MEMBER_ID, ILLEGAL_GENERATION, ...).
    Source:  KafkaApis.handleOffsetCommitRequest, OffsetMetadataManager.commitOffset.
    """
    answers: list[OffsetCommitResponseTopic] = []
    wanted: list[tuple[Topic, OffsetCommitRequestPartition, OffsetCommitResponsePartition]] = []
    for asked in request.topics:
        topic = _find_topic(broker, ctx, asked)
        unknown = ErrorCode.UNKNOWN_TOPIC_ID if ctx.api_version >= 10 else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        row = OffsetCommitResponseTopic(name=asked.name, topic_id=asked.topic_id)
        answers.append(row)
        for partition in asked.partitions:
            answer = OffsetCommitResponsePartition(partition_index=partition.partition_index)
            row.partitions.append(answer)
            if topic is None:
                answer.error_code = unknown
            elif not 0 <= partition.partition_index < len(topic.partitions):
                answer.error_code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
            else:
                wanted.append((topic, partition, answer))
    response = OffsetCommitResponse(topics=answers)
    if not wanted:
        return Result(response)
    try:
        shard = broker.groups.require_for_offsets(request.group_id, ctx)
        limit = broker.config.offset_metadata_max_bytes
        _check_group(broker, shard, ctx, request, lambda: _checked(wanted, limit))
    except KafkaError as error:
        for _, _, answer in wanted:
            answer.error_code = error.code
        return Result(response)
    if refuse_conflicts(shard.machine.offsets, request.group_id, wanted):
        return Result(response)
    ctx.shard = shard
    records = _commit_records(ctx, request, wanted, limit)
    if records and broker.config.offsets_provenance:
        generation = request.generation_id_or_member_epoch if ctx.api_version >= 1 else -1
        headers = provenance(request.member_id, request.group_instance_id, generation, ctx.client_id)
        records[0] = (*records[0][:2], headers)
    return Result(response, appends=[(shard, records)] if records else ())


def _find_topic(broker: View, ctx: Context, asked: Any) -> Topic | None:
    metadata = broker.metadata
    if ctx.api_version >= 10:
        return metadata.topics_by_id.get(asked.topic_id)
    return metadata.topics.get(asked.name)


def _checked(wanted: Iterable[Any], metadata_limit: int) -> Iterator[tuple[str, bytes, int]]:
    """The partitions whose assignment epoch counts: one that is refused by itself does not stop the others."""
    for topic, partition, _ in wanted:
        if _fits(partition.committed_metadata or "", metadata_limit):
            yield topic.name, topic.topic_id, partition.partition_index


def _fits(metadata: str, limit: int) -> bool:
    return len(metadata) <= limit // 2 or utf16_length(metadata) <= limit


def _check_group(
    broker: View, shard: Shard, ctx: Context, request: OffsetCommitRequest, partitions: CommittedPartitions
) -> None:
    group = shard.machine.groups.get(request.group_id)
    generation = request.generation_id_or_member_epoch if ctx.api_version >= 1 else -1
    code = shard.machine.check_offset_commit(
        request.group_id, ctx.api_version, generation, request.member_id, request.group_instance_id, partitions
    )
    if code != ErrorCode.NONE:
        raise KafkaError(code)
    if group is not None:
        for name, deadline_ms in on_offset_commit_accepted(group, request.member_id, ctx.now_ms):
            shard.set_timer(name, deadline_ms)


def _commit_records(
    ctx: Context,
    request: OffsetCommitRequest,
    wanted: Iterable[tuple[Topic, OffsetCommitRequestPartition, OffsetCommitResponsePartition]],
    metadata_limit: int,
) -> list[Record]:
    expire_ms = ctx.now_ms + request.retention_time_ms if request.retention_time_ms >= 0 else -1
    records: list[Record] = []
    prefix, prefix_topic = b"", None
    for topic, partition, answer in wanted:
        metadata = partition.committed_metadata or ""
        if not _fits(metadata, metadata_limit):
            answer.error_code = ErrorCode.OFFSET_METADATA_TOO_LARGE
            continue
        if topic is not prefix_topic:
            prefix, prefix_topic = offset_key_prefix(request.group_id, topic.name), topic
        commit_ms = partition.commit_timestamp if ctx.api_version == 1 else -1
        value = OffsetCommitValue(
            offset=partition.committed_offset,
            leader_epoch=partition.committed_leader_epoch,
            metadata=metadata,
            commit_timestamp=ctx.now_ms if commit_ms < 0 else commit_ms,
            expire_timestamp=expire_ms,
            topic_id=topic.topic_id,
        )
        # only version 1 has room for an expiry, and none for leader epoch and topic id: Kafka chooses so too
        version = 4 if expire_ms < 0 else 1
        records.append((prefix + partition.partition_index.to_bytes(4, "big"), encode_record(value, version)))
    return records


def utf16_length(text: str) -> int:
    """The length Kafka counts: UTF-16 code units."""
    return len(text) + sum(ch > "\uffff" for ch in text)


def offset_fetch(broker: View, ctx: Context, request: OffsetFetchRequest) -> Result:
    """Answer the committed offsets of one group, or from v8 on of several.

    Errors:  of the group: NOT_COORDINATOR, COORDINATOR_LOAD_IN_PROGRESS, INVALID_GROUP_ID, UNKNOWN_MEMBER_ID,
             STALE_MEMBER_EPOCH; an unknown group has offset -1 everywhere and no error.
    Source:  KafkaApis.handleOffsetFetchRequest, OffsetMetadataManager.fetchOffsets.
    """
    if ctx.api_version >= 8:
        return Result(
            OffsetFetchResponse(groups=[_fetch_group(broker, ctx, group, request) for group in request.groups])
        )
    try:
        shard = broker.groups.require_for_offsets(request.group_id, ctx)
    except KafkaError as error:
        return Result(_old_refusal(ctx, request, error.code))
    rows = []
    for name, partitions in _asked(shard, request.group_id, request.topics, ctx):
        row = OffsetFetchResponseTopic(name=name)
        columns = shard.machine.offsets.topic(request.group_id, name)
        for index in partitions:
            found = columns.get(index) if columns else None
            answer = OffsetFetchResponsePartition(partition_index=index, committed_offset=-1, metadata="")
            if request.require_stable and columns and columns.pending and index in columns.pending:
                answer.error_code = ErrorCode.UNSTABLE_OFFSET_COMMIT
            elif found is not None:
                answer.committed_offset = found.offset
                answer.committed_leader_epoch = found.leader_epoch
                answer.metadata = found.metadata
            elif ctx.api_version == 0:
                answer.error_code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
            row.partitions.append(answer)
        rows.append(row)
    return Result(OffsetFetchResponse(topics=rows))


def _old_refusal(ctx: Context, request: OffsetFetchRequest, code: ErrorCode) -> OffsetFetchResponse:
    if ctx.api_version >= 2:
        return OffsetFetchResponse(error_code=code)
    return OffsetFetchResponse(
        topics=[
            OffsetFetchResponseTopic(
                name=topic.name,
                partitions=[
                    OffsetFetchResponsePartition(
                        partition_index=index, committed_offset=-1, metadata="", error_code=code
                    )
                    for index in topic.partition_indexes
                ],
            )
            for topic in request.topics or ()
        ]
    )


def _asked(shard: Shard, group_id: str, topics: Sequence[Any] | None, ctx: Context) -> list[tuple[str, list[int]]]:
    if topics is None:
        return [(name, partitions) for name, partitions in shard.machine.offsets.partitions(group_id).items()]
    return [(topic.name, topic.partition_indexes) for topic in topics]


def _fetch_group(broker: View, ctx: Context, asked: Any, request: OffsetFetchRequest) -> OffsetFetchResponseGroup:
    group_id: str = asked.group_id
    by_id = ctx.api_version >= 10
    answer = OffsetFetchResponseGroup(group_id=group_id)
    try:
        shard = broker.groups.require_for_offsets(group_id, ctx)
        code = shard.machine.check_offset_fetch(group_id, asked.member_id, asked.member_epoch)
        if code != ErrorCode.NONE:
            raise KafkaError(code)
    except KafkaError as error:
        answer.error_code = error.code
        return answer
    sources: list[TopicOffsets] = []
    table = shard.machine.offsets
    for name, topic_id, partitions in _topics_of(broker, shard, group_id, asked.topics, by_id):
        row = OffsetFetchResponseTopics(name=name or "", topic_id=topic_id)
        answer.topics.append(row)
        if name is None:
            row.partitions = [_nothing(index, ErrorCode.UNKNOWN_TOPIC_ID) for index in partitions]
            continue
        columns = table.topic(group_id, name)
        if columns is not None:
            sources.append(columns)
            unstable = columns.pending if request.require_stable and columns.pending else ()
            row.partitions = [
                _nothing(index, ErrorCode.UNSTABLE_OFFSET_COMMIT)
                if index in unstable
                else _committed(columns, index, topic_id if by_id else ZERO_ID)
                for index in partitions
            ]
        else:
            row.partitions = [_nothing(index) for index in partitions]
    if len(request.groups) == 1 and not by_id and asked.member_id is None:
        ctx.sources = (shard, sources)
    return answer


def _topics_of(
    broker: View, shard: Shard, group_id: str, topics: Sequence[Any] | None, by_id: bool
) -> Iterable[tuple[str | None, bytes, list[int]]]:
    """(name, topic id, partitions); a name of None is an id that nobody knows."""
    metadata = broker.metadata
    if topics is None:
        for name, partitions in shard.machine.offsets.partitions(group_id).items():
            topic = metadata.topics.get(name)
            if not by_id:
                yield name, ZERO_ID, partitions
            elif topic is not None:
                yield name, topic.topic_id, partitions
    else:
        for asked in topics:
            if not by_id:
                yield asked.name, ZERO_ID, asked.partition_indexes
            else:
                topic = metadata.topics_by_id.get(asked.topic_id)
                yield (topic.name if topic else None), asked.topic_id, asked.partition_indexes


def _committed(columns: TopicOffsets, index: int, topic_id: bytes) -> OffsetFetchResponsePartitions:
    found = columns.get(index)
    if found is None or ZERO_ID != topic_id != found.topic_id != ZERO_ID:  # of a topic that had the name before
        return _nothing(index)
    return OffsetFetchResponsePartitions(
        partition_index=index,
        committed_offset=found.offset,
        committed_leader_epoch=found.leader_epoch,
        metadata=found.metadata,
    )


def _nothing(index: int, code: ErrorCode = ErrorCode.NONE) -> OffsetFetchResponsePartitions:
    return OffsetFetchResponsePartitions(
        partition_index=index, committed_offset=-1, committed_leader_epoch=-1, metadata="", error_code=code
    )


__all__ = ["offset_commit", "offset_fetch"]
