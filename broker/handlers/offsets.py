"""OffsetCommit and OffsetFetch in every version; shortcuts/offset_commit.py and offset_fetch.py serve the usual case.

OffsetCommit  v0: no generation, no member. v1: a commit time for each partition. v2-4: retention time. v6: leader
              epochs. v7: static members. v9: member epochs (KIP-848). v10: topic ids.
OffsetFetch   v0: error 3 where nothing is committed. v2: all topics. v7: stable reads (KIP-447). v8: several groups.
              v9: member epochs. v10: topic ids.

Beyond Kafka: OffsetCommit v0 and v1 and OffsetFetch v0, the original offset management proposal, are answered. Kafka 4
              starts at v2 and v1. ApiVersions can name only one range for each API, so it says 0.
Beyond Kafka: any broker answers OffsetCommit and OffsetFetch with `--brokers N`; one that is not the coordinator
              forwards within the process. `offsets.any.broker=false` gives Kafka's NOT_COORDINATOR.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Sequence
from itertools import compress
from operator import attrgetter
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Protocol

from broker.base.result import Context, Headers, Result
from broker.coordinator.groups.classic.commit_checks import on_offset_commit_accepted
from broker.coordinator.offsets.columns import Committed, TopicOffsets
from broker.coordinator.offsets.commit_run import Commit, Run
from broker.coordinator.offsets.provenance import provenance
from broker.coordinator.offsets.topic_ids import all_committed_on, committed_on, partitions_on
from broker.handlers.expected_offsets import refuse_conflicts
from protocol.errors import ErrorCode, KafkaError
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
_INDEX, _OFFSET = attrgetter("partition_index"), attrgetter("committed_offset")
_EPOCH, _METADATA = attrgetter("committed_leader_epoch"), attrgetter("committed_metadata")
MOST_MS: Final = 2**63 - 1  # what a record has room for
NOTHING: Final = (-1, -1, "")  # offset, leader epoch and metadata where nothing is committed
_TAGS = attrgetter("unknown_tags")


class View(Protocol):
    """What these handlers use of the broker."""

    @property
    def metadata(self) -> ClusterMetadata: ...
    @property
    def config(self) -> BrokerConfig: ...
    @property
    def groups(self) -> GroupShards: ...


def offset_commit(broker: View, ctx: Context, request: OffsetCommitRequest) -> Result:
    """Accept or refuse the offsets that a member commits.

    Shape:   one OffsetCommit record per accepted partition, in request order, one batch.
    Units:   offsets count records; ctx.now_ms is Unix milliseconds.
    Errors:  per partition UNKNOWN_TOPIC_OR_PARTITION, UNKNOWN_TOPIC_ID, OFFSET_METADATA_TOO_LARGE; for all of them
             those of the group (UNKNOWN_MEMBER_ID, ILLEGAL_GENERATION, ...).
    Source:  KafkaApis.handleOffsetCommitRequest, OffsetMetadataManager.commitOffset.
    """
    response = OffsetCommitResponse(topics=[])
    wanted: list[Wanted] = []
    for asked in request.topics:
        topic = _find_topic(broker, ctx, asked)
        indexes = list(map(_INDEX, asked.partitions))
        answers = OffsetCommitResponsePartition.many("partition_index", indexes)
        response.topics.append(OffsetCommitResponseTopic(name=asked.name, topic_id=asked.topic_id, partitions=answers))
        if topic is None:
            unknown = ErrorCode.UNKNOWN_TOPIC_ID if ctx.api_version >= 10 else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
            for answer in answers:
                answer.error_code = unknown
        elif asked.partitions:
            wanted.append(_known(topic, asked.partitions, indexes, answers))
    if not any(each.partitions for each in wanted):
        return Result(response)
    try:
        shard = broker.groups.require_for_offsets(request.group_id, ctx)
        limit = broker.config.offset_metadata_max_bytes
        _check_group(broker, shard, ctx, request, lambda: _checked(wanted, limit))
    except KafkaError as error:
        for each in wanted:
            for answer in each.answers:
                answer.error_code = error.code
        return Result(response)
    expects = any(any(map(_TAGS, each.partitions)) for each in wanted)
    if expects and refuse_conflicts(shard.machine.offsets, request.group_id, list(_one_by_one(wanted))):
        return Result(response)
    ctx.shard = shard
    commit = _commit(broker, ctx, request, wanted)
    if commit.is_empty:
        shard.machine.simple_group_for(request.group_id, shard.log.end_offset)
        return Result(response)
    return Result(response, commits=((shard, commit),))


class Wanted(NamedTuple):
    """The partitions of one topic that a request commits on, and their answers."""

    topic: Topic
    partitions: Sequence[OffsetCommitRequestPartition]
    indexes: list[int]  # those of `partitions`
    answers: Sequence[OffsetCommitResponsePartition]


def _known(
    topic: Topic,
    partitions: Sequence[OffsetCommitRequestPartition],
    indexes: list[int],
    answers: Sequence[OffsetCommitResponsePartition],
) -> Wanted:
    """The partitions that the topic has; the others are answered with an error."""
    count = len(topic.partitions)
    if min(indexes) >= 0 and max(indexes) < count:
        return Wanted(topic, partitions, indexes, answers)
    there = [0 <= index < count for index in indexes]
    for answer, is_there in zip(answers, there, strict=True):
        if not is_there:
            answer.error_code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    return Wanted(
        topic, list(compress(partitions, there)), list(compress(indexes, there)), list(compress(answers, there))
    )


def _one_by_one(
    wanted: Iterable[Wanted],
) -> Iterator[tuple[Topic, OffsetCommitRequestPartition, OffsetCommitResponsePartition]]:
    for topic, partitions, _, answers in wanted:
        for partition, answer in zip(partitions, answers, strict=True):
            yield topic, partition, answer


def _find_topic(broker: View, ctx: Context, asked: Any) -> Topic | None:
    metadata = broker.metadata
    if ctx.api_version >= 10:
        return metadata.topics_by_id.get(asked.topic_id)
    return metadata.topics.get(asked.name)


def _checked(wanted: Iterable[Wanted], metadata_limit: int) -> Iterator[tuple[str, bytes, int]]:
    """The partitions whose assignment epoch is checked: those that are not refused for their metadata."""
    for topic, partition, _ in _one_by_one(wanted):
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
            shard.deadlines.set(name, deadline_ms)


def _commit(broker: View, ctx: Context, request: OffsetCommitRequest, wanted: Iterable[Wanted]) -> Commit:
    """The offsets to commit; one with too much metadata is refused alone."""
    headers: Headers = ()
    if broker.config.offsets_provenance:
        generation = request.generation_id_or_member_epoch if ctx.api_version >= 1 else -1
        headers = provenance(request.member_id, request.group_instance_id, generation, ctx.client_id)
    commit = Commit(request.group_id, headers)
    expire_ms = min(ctx.now_ms + request.retention_time_ms, MOST_MS) if request.retention_time_ms >= 0 else -1
    has_times = ctx.api_version == 1 or expire_ms >= 0
    for topic, partitions, indexes, answers in wanted:
        run = commit.run(topic.name, topic.topic_id)
        if has_times or any(map(_METADATA, partitions)):
            metadata_limit = broker.config.offset_metadata_max_bytes
            for partition, answer in zip(partitions, answers, strict=True):
                metadata = partition.committed_metadata or ""
                if not _fits(metadata, metadata_limit):
                    answer.error_code = ErrorCode.OFFSET_METADATA_TOO_LARGE
                    continue
                _add(run, ctx, partition, metadata, expire_ms)
        else:
            run.partitions = indexes
            run.offsets = list(map(_OFFSET, partitions))
            run.leader_epochs = list(map(_EPOCH, partitions))
    return commit


def _add(run: Run, ctx: Context, partition: OffsetCommitRequestPartition, metadata: str, expire_ms: int) -> None:
    """One offset with metadata or times of its own."""
    commit_ms = partition.commit_timestamp if ctx.api_version == 1 else -1
    committed = Committed(
        partition.committed_offset,
        partition.committed_leader_epoch,
        metadata,
        ctx.now_ms if commit_ms < 0 else commit_ms,
        expire_ms,
        run.topic_id,
    )
    run.add_other(partition.partition_index, committed)


def utf16_length(text: str) -> int:
    """The length as Kafka counts it: UTF-16 code units."""
    return len(text) + sum(ch > "\uffff" for ch in text)


def offset_fetch(broker: View, ctx: Context, request: OffsetFetchRequest) -> Result:
    """Answer the committed offsets of one group, or, from v8 on, of several.

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
    for name, partitions in _asked(broker, shard, request.group_id, request.topics):
        row = OffsetFetchResponseTopic(name=name)
        columns = shard.machine.offsets.topic(request.group_id, name)
        for index in partitions:
            found = committed_on(columns, index, _id_of(broker, name)) if columns else None
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


def _id_of(broker: View, name: str) -> bytes:
    """The id of the topic that has this name now. An offset of an earlier one is not told."""
    topic = broker.metadata.topics.get(name)
    return ZERO_ID if topic is None else topic.topic_id


def _all_committed(broker: View, shard: Shard, group_id: str) -> Iterable[tuple[str, list[int]]]:
    for columns in shard.machine.offsets.topics(group_id):
        name = columns.label.name
        partitions = partitions_on(columns, _id_of(broker, name))
        if partitions:
            yield name, partitions


def _asked(broker: View, shard: Shard, group_id: str, topics: Sequence[Any] | None) -> Iterable[tuple[str, list[int]]]:
    if topics is None:
        return _all_committed(broker, shard, group_id)
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
            row.partitions = _told(columns, partitions, topic_id if by_id else _id_of(broker, name), unstable)
        else:
            row.partitions = [_nothing(index) for index in partitions]
    if len(request.groups) == 1:
        ctx.shard = shard  # the reply depends on this shard only
        if not by_id and asked.member_id is None:
            # all topics: one with only pending offsets is not in the reply, but a commit adds it
            named = asked.topics
            first = named[0].partition_indexes if named else ()
            ctx.sources = (shard, sources if named is not None else list(table.topics(group_id)), first)
    return answer


def _topics_of(
    broker: View, shard: Shard, group_id: str, topics: Sequence[Any] | None, by_id: bool
) -> Iterable[tuple[str | None, bytes, list[int]]]:
    """(name, topic id, partitions). A name of None: the id is unknown."""
    metadata = broker.metadata
    if topics is None:
        for name, partitions in _all_committed(broker, shard, group_id):
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


def _told(
    columns: TopicOffsets, partitions: Sequence[int], topic_id: bytes, unstable: Container[int]
) -> list[OffsetFetchResponsePartitions]:
    """What is committed on these partitions; `unstable`: those where a transaction has not ended."""
    answers = OffsetFetchResponsePartitions.many("partition_index", partitions)
    for answer, found in zip(answers, all_committed_on(columns, partitions, topic_id), strict=True):
        if answer.partition_index in unstable:
            answer.error_code = ErrorCode.UNSTABLE_OFFSET_COMMIT
            found = None
        answer.committed_offset, answer.committed_leader_epoch, answer.metadata = found or NOTHING
    return answers


def _nothing(index: int, code: ErrorCode = ErrorCode.NONE) -> OffsetFetchResponsePartitions:
    offset, epoch, metadata = NOTHING
    return OffsetFetchResponsePartitions(
        partition_index=index,
        committed_offset=offset,
        committed_leader_epoch=epoch,
        metadata=metadata,
        error_code=code,
    )


__all__ = ["offset_commit", "offset_fetch"]
