"""OffsetFetch: the committed offsets of one group, or of several, in every version.

OffsetFetch  v0: error 3 where nothing is committed. v2: all topics. v7: stable reads (KIP-447). v8: several groups.
             v9: member epochs. v10: topic ids.

What is beyond Kafka stands in offset_commit.py.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Sequence
from typing import TYPE_CHECKING, Any, Final, Protocol

from broker.coordinator.offsets.topic_ids import all_committed_on, committed_on, partitions_on
from broker.requests.repeated import HotRequest
from broker.turn.decision import Decision
from protocol.errors import ErrorCode, KafkaError
from protocol.messages.offsets import (
    OffsetFetchRequest,
    OffsetFetchResponse,
    OffsetFetchResponseGroup,
    OffsetFetchResponsePartition,
    OffsetFetchResponsePartitions,
    OffsetFetchResponseTopic,
    OffsetFetchResponseTopics,
)
from protocol.shape import Shape

if TYPE_CHECKING:
    from broker.base.context import Context
    from broker.cluster.metadata import ClusterMetadata
    from broker.coordinator.group_shards import GroupShards
    from broker.coordinator.offsets.columns import Label, Mark, TopicOffsets
    from broker.coordinator.offsets.table import OffsetTable
    from broker.coordinator.runtime import Shard
    from broker.requests.kept import Kept

GROUPS_SINCE: Final = 8
TOPIC_IDS_SINCE: Final = 10
MOST_SOURCES: Final = 64  # groups with more topics are not kept
ZERO_ID: Final = bytes(16)
NOTHING: Final = (-1, -1, "")  # offset, leader epoch and metadata where nothing is committed


class View(Protocol):
    """What the rule uses of the broker."""

    @property
    def metadata(self) -> ClusterMetadata: ...
    @property
    def groups(self) -> GroupShards: ...


class Ask:
    """A request for the offsets of one group that may be repeated, and what its reply was made from.

    sources     the columns. The reply is valid until one of them changes, is added or removed.
    partitions  of its only topic.
    label       of its columns, if all offsets of the reply are of these partitions: it is packed again when they move.
    """

    __slots__ = ("accepted", "label", "last", "marks", "partitions", "shape", "shard", "sources", "table")

    def __init__(self, shard: Shard, sources: Sequence[TopicOffsets], partitions: Sequence[int]) -> None:
        self.shard = shard
        self.sources = sources
        self.partitions = partitions
        self.table: OffsetTable = shard.machine.offsets
        self.shape = self.table.shape
        self.marks: list[Mark] = []
        self.label: Label | None = None
        self.last: object = None  # the offsets and epochs of the reply before
        self.accepted: Decision | None = None


class OffsetFetch(HotRequest):
    """The general codec, and the same question again: then only what has moved since the reply before is read."""

    REQUEST = Shape(OffsetFetchRequest)
    REPLY = Shape(OffsetFetchResponse, "committed_offset", "committed_leader_epoch")
    MAY_WAIT = False

    def __init__(self, broker: Any) -> None:
        super().__init__(broker)
        self._view: View = broker

    def message(self, ctx: Context, request: OffsetFetchRequest) -> Decision:
        """Find the committed offsets of one group, or, from v8 on, of several.

        Errors:  of the group: NOT_COORDINATOR, COORDINATOR_LOAD_IN_PROGRESS, INVALID_GROUP_ID, UNKNOWN_MEMBER_ID,
                 STALE_MEMBER_EPOCH; an unknown group has offset -1 everywhere and no error.
        Source:  KafkaApis.handleOffsetFetchRequest, OffsetMetadataManager.fetchOffsets.
        """
        view = self._view
        if ctx.api_version >= GROUPS_SINCE:
            asks: list[Ask] = []
            groups = [_fetch_group(view, ctx, group, request, asks) for group in request.groups]
            decision = Decision(OffsetFetchResponse(groups=groups))
            if len(groups) == 1 and asks:
                decision.shard, ask = asks[0].shard, asks[0]
                if len(ask.sources) <= MOST_SOURCES and request.groups[0].member_id is None:
                    decision.repeats = ask
            return decision
        try:
            shard = view.groups.require_for_offsets(request.group_id, ctx)
        except KafkaError as error:
            return Decision(_old_refusal(ctx, request, error.code))
        rows = []
        for name, partitions in _asked(view, shard, request.group_id, request.topics):
            row = OffsetFetchResponseTopic(name=name)
            columns = shard.machine.offsets.topic(request.group_id, name)
            for index in partitions:
                found = committed_on(columns, index, _id_of(view, name)) if columns else None
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
        return Decision(OffsetFetchResponse(topics=rows))

    def prepare(self, kept: Kept, decision: Decision) -> None:
        """Mark the sources, and see whether the reply can be packed again: every offset in it is of the partitions."""
        ask: Ask = kept.ask
        ask.accepted = decision
        ask.marks = [each.mark() for each in ask.sources]
        wanted = ask.partitions
        if not wanted:
            return
        dense = range(wanted[0], wanted[0] + len(wanted))
        ask.partitions = dense if list(dense) == wanted else wanted
        ask.label = ask.sources[0].label
        moved = ask.sources[0].plain(ask.label, ask.partitions)
        if moved is None or not kept.values or not _is_same(kept.values, *moved):
            ask.label = None  # more topics, or an offset of an earlier topic of the name

    def decide(self, ask: Ask, ctx: Context) -> Decision:
        """The rule of a repeat. When the group becomes one of another kind, which may refuse, `shape` grows too."""
        accepted = ask.accepted
        assert accepted is not None
        accepted.reply = None
        if ask.shape != ask.table.shape:
            return OTHERWISE
        for mark in ask.marks:
            if not mark.is_valid:
                moved = None if ask.label is None else ask.sources[0].plain(ask.label, ask.partitions)
                if moved is None:
                    return OTHERWISE
                accepted.reply = moved
        return accepted

    def values(self, kept: Kept, decision: Decision, reply: Any) -> bool:
        """See HotRequest."""
        ask: Ask = kept.ask
        if reply == ask.last:  # the offsets have come to rest
            ask.marks = [each.mark() for each in ask.sources]
            return False
        ask.last = reply
        values = kept.values
        values[0::3], values[1::3] = reply
        return True


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


def _id_of(view: View, name: str) -> bytes:
    """The id of the topic that has this name now. An offset of an earlier one is not told."""
    topic = view.metadata.topics.get(name)
    return ZERO_ID if topic is None else topic.topic_id


def _all_committed(view: View, shard: Shard, group_id: str) -> Iterable[tuple[str, list[int]]]:
    for columns in shard.machine.offsets.topics(group_id):
        name = columns.label.name
        partitions = partitions_on(columns, _id_of(view, name))
        if partitions:
            yield name, partitions


def _asked(view: View, shard: Shard, group_id: str, topics: Sequence[Any] | None) -> Iterable[tuple[str, list[int]]]:
    if topics is None:
        return _all_committed(view, shard, group_id)
    return [(topic.name, topic.partition_indexes) for topic in topics]


def _fetch_group(
    view: View, ctx: Context, asked: Any, request: OffsetFetchRequest, asks: list[Ask]
) -> OffsetFetchResponseGroup:
    """The answer for one group. An Ask is added to `asks`, unless the group has an error."""
    group_id: str = asked.group_id
    by_id = ctx.api_version >= TOPIC_IDS_SINCE
    answer = OffsetFetchResponseGroup(group_id=group_id)
    try:
        shard = view.groups.require_for_offsets(group_id, ctx)
        code = shard.machine.check_offset_fetch(group_id, asked.member_id, asked.member_epoch)
        if code != ErrorCode.NONE:
            raise KafkaError(code)
    except KafkaError as error:
        answer.error_code = error.code
        return answer
    sources: list[TopicOffsets] = []
    table, named = shard.machine.offsets, asked.topics
    for name, topic_id, partitions in _topics_of(view, shard, group_id, named, by_id):
        row = OffsetFetchResponseTopics(name=name or "", topic_id=topic_id)
        answer.topics.append(row)
        if name is None:
            row.partitions = [_nothing(index, ErrorCode.UNKNOWN_TOPIC_ID) for index in partitions]
            continue
        columns = table.topic(group_id, name)
        if columns is not None:
            sources.append(columns)
            unstable = columns.pending if request.require_stable and columns.pending else ()
            row.partitions = _told(columns, partitions, topic_id if by_id else _id_of(view, name), unstable)
        else:
            row.partitions = [_nothing(index) for index in partitions]
    # all topics: one with only pending offsets is not in the reply, but a commit adds it
    only = named[0].partition_indexes if named is not None and len(named) == len(sources) == 1 else ()
    asks.append(Ask(shard, sources if named is not None else list(table.topics(group_id)), only))
    return answer


def _topics_of(
    view: View, shard: Shard, group_id: str, topics: Sequence[Any] | None, by_id: bool
) -> Iterable[tuple[str | None, bytes, list[int]]]:
    """(name, topic id, partitions). A name of None: the id is unknown."""
    metadata = view.metadata
    if topics is None:
        for name, partitions in _all_committed(view, shard, group_id):
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


def _is_same(values: Sequence[Any], offsets: Sequence[int], epochs: Sequence[int]) -> bool:
    return values[0::3] == list(offsets) and values[1::3] == list(epochs)


OTHERWISE: Final = Decision()  # the general handler decides
