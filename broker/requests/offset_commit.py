"""OffsetCommit: accept or refuse the offsets that a client commits for a group, in every version.

OffsetCommit  v0: no generation, no member. v1: a commit time for each partition. v2-4: retention time. v6: leader
              epochs. v7: static members. v9: member epochs (KIP-848). v10: topic ids.

Beyond Kafka: OffsetCommit v0 and v1 and OffsetFetch v0, the original offset management proposal, are answered. Kafka 4
              starts at v2 and v1. ApiVersions can name only one range for each API, so it says 0.
Beyond Kafka: any broker answers OffsetCommit and OffsetFetch with `--brokers N`; one that is not the coordinator
              forwards within the process. `offsets.any.broker=false` gives Kafka's NOT_COORDINATOR.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Final, Protocol

from broker.coordinator.groups.classic.commit_checks import NONE, check_offset_commit, on_offset_commit_accepted
from broker.coordinator.groups.kinds import CLASSIC
from broker.coordinator.offsets.commit_batch import CommitBatch, PlainCommit
from broker.coordinator.offsets.commit_run import Commit, commit_of
from broker.coordinator.offsets.provenance import provenance
from broker.requests.expected_offsets import TAG, conflicts
from broker.requests.offset_rows import Codes, Found, Row, add_runs, checked, find_topics, refuse
from broker.requests.repeated import HotRequest
from broker.turn.decision import Decision
from protocol.errors import ErrorCode, KafkaError
from protocol.messages.offsets import (
    OffsetCommitRequest,
    OffsetCommitResponse,
    OffsetCommitResponsePartition,
    OffsetCommitResponseTopic,
)
from protocol.record import encode_headers
from protocol.shape import Shape

if TYPE_CHECKING:
    from broker.base.context import Context
    from broker.cluster.metadata import ClusterMetadata
    from broker.config.settings import BrokerConfig
    from broker.coordinator.group_shards import GroupShards
    from broker.coordinator.groups.machine import GroupMachine
    from broker.coordinator.runtime import Shard
    from broker.requests.kept import Kept
    from broker.turn.decision import Headers

TIMES_IN: Final = 1  # the only version with a commit time for each partition
TOPIC_IDS_SINCE: Final = 10
MOST_MS: Final = 2**63 - 1  # what a record has room for
_FIRST: Final = slice(0, None, 3)
_SECOND: Final = slice(1, None, 3)
NO_TIMERS: Final[Sequence[tuple[Hashable, int | None]]] = ()


class View(Protocol):
    """What the rule uses of the broker."""

    @property
    def metadata(self) -> ClusterMetadata: ...
    @property
    def config(self) -> BrokerConfig: ...
    @property
    def groups(self) -> GroupShards: ...


class Ask:
    """What one OffsetCommit asks. The last three are of a request that may be repeated: what was found and written."""

    __slots__ = (
        "accepted",
        "commit",
        "found",
        "generation",
        "group_id",
        "instance_id",
        "member_id",
        "retention_ms",
        "rows",
    )

    def __init__(self, request: OffsetCommitRequest, version: int) -> None:
        self.group_id = request.group_id
        self.generation = request.generation_id_or_member_epoch if version >= 1 else -1
        self.member_id = request.member_id
        self.instance_id = request.group_instance_id
        self.retention_ms = request.retention_time_ms
        has_times = version == TIMES_IN
        self.rows = [Row(each.name, each.partitions, each.topic_id, has_times=has_times) for each in request.topics]
        self.accepted: Decision | None = None
        self.commit: PlainCommit | None = None
        self.found: Found = []


class OffsetCommit(HotRequest):
    """The rule, the general codec, and commits of other offsets on the same partitions of one topic."""

    REQUEST = Shape(OffsetCommitRequest, "committed_offset", "committed_leader_epoch")
    REPLY = Shape(OffsetCommitResponse)
    MAY_WAIT = False

    def __init__(self, broker: Any) -> None:
        super().__init__(broker)
        self._view: View = broker

    def decide(self, ask: Ask, ctx: Context) -> Decision:
        """Accept or refuse the offsets that a member commits. The reply is Codes.

        Shape:   one OffsetCommit record per accepted partition, in request order, one batch.
        Units:   offsets count records; ctx.now_ms is Unix milliseconds.
        Errors:  per partition UNKNOWN_TOPIC_OR_PARTITION, UNKNOWN_TOPIC_ID, OFFSET_METADATA_TOO_LARGE; for all of them
                 those of the group (UNKNOWN_MEMBER_ID, ILLEGAL_GENERATION, ...).
        Source:  KafkaApis.handleOffsetCommitRequest, OffsetMetadataManager.commitOffset.
        """
        accepted = ask.accepted
        codes: Codes = []
        if accepted is not None:
            shard: Shard = accepted.shard
        else:
            codes = [[0] * len(row.partitions) for row in ask.rows]
            by_id = ctx.api_version >= TOPIC_IDS_SINCE
            ask.found = find_topics(self._view.metadata, ask.rows, codes, by_id=by_id)
            if not ask.found:
                return Decision(codes)
            try:
                shard = self._view.groups.require_for_offsets(ask.group_id, ctx)
            except KafkaError as error:
                return _refused(ask.found, codes, error.code)
        machine: GroupMachine = shard.machine
        group, timers = machine.groups.get(ask.group_id), NO_TIMERS
        if group is not None and group.group_type == CLASSIC:
            code = check_offset_commit(group, ctx.api_version, ask.generation, ask.member_id, ask.instance_id)
            if code is NONE:
                timers = on_offset_commit_accepted(group, ask.member_id, ctx.now_ms)
        else:
            code = machine.check_offset_commit(
                ask.group_id,
                ctx.api_version,
                ask.generation,
                ask.member_id,
                ask.instance_id,
                partial(checked, ask.found, self._view.config.offset_metadata_max_bytes) if group is not None else None,
            )
        if code is not NONE:
            return _refused(ask.found, codes, code)
        if accepted is not None:
            accepted.timers = timers
            return accepted
        found, config = ask.found, self._view.config
        if _conflicts(shard, ask.group_id, found):
            return Decision(codes, shard=shard, timers=timers)
        commit = _commit(config, ask, ctx, found)
        if commit.is_empty:
            end_offset = shard.log.end_offset
            make = partial(machine.simple_group_for, ask.group_id, end_offset)
            return Decision(codes, shard=shard, timers=timers, then=make)
        written = commit_of(commit, encode_headers(commit.headers), shard.log.config.max_message_bytes)
        decision = Decision(codes, shard=shard, writes=((shard, written),), timers=timers)
        if isinstance(written, PlainCommit) and not any(map(any, codes)):
            ask.commit, decision.repeats = written, ask
        return decision

    def message(self, ctx: Context, request: OffsetCommitRequest) -> Decision:
        """See HotRequest."""
        ask = Ask(request, ctx.api_version)
        decision = self.decide(ask, ctx)
        decision.reply = _response(ask, decision.reply)
        return decision

    def prepare(self, kept: Kept, decision: Decision) -> None:
        """Build the constant parts of the batch once."""
        ask: Ask = kept.ask
        plain, (_, topic, _, _) = ask.commit, ask.found[0]
        assert plain is not None
        batch = CommitBatch(ask.group_id, topic.name, topic.topic_id, plain.partitions, encode_headers(plain.sender))
        batch.sender, batch.leader_epochs = plain.sender, plain.leader_epochs
        decision.writes = ((decision.shard, batch),)
        ask.accepted, ask.commit = decision, batch

    def fill(self, ask: Ask, fields: tuple[Any, ...], width: int) -> None:
        """See HotRequest. Before v6 there is no leader epoch."""
        commit = ask.commit
        assert commit is not None
        if width > 1:
            commit.offsets, commit.leader_epochs = fields[_FIRST], fields[_SECOND]
        else:
            commit.offsets = fields[::2]


def _refused(found: Found, codes: Codes, code: int) -> Decision:
    refuse(found, code)
    return Decision(codes)


def _conflicts(shard: Shard, group_id: str, found: Found) -> bool:
    """Whether another offset is committed somewhere than the client expects; then all codes are set."""
    table, refused = shard.machine.offsets, False
    for row, topic, places, _ in found:
        if row.expected is not None:
            row.conflicts = conflicts(table, group_id, topic, row.partitions, row.expected, places)
            refused = refused or bool(row.conflicts)
    if refused:
        for row, _, places, row_codes in found:
            for at in places:
                is_here = at in row.conflicts
                row_codes[at] = ErrorCode.INVALID_REQUEST if is_here else ErrorCode.OPERATION_NOT_ATTEMPTED
    return refused


def _commit(config: BrokerConfig, ask: Ask, ctx: Context, found: Found) -> Commit:
    """The offsets to commit; one with too much metadata is refused alone."""
    headers: Headers = ()
    if config.offsets_provenance:
        headers = provenance(ask.member_id, ask.instance_id, ask.generation, ctx.client_id)
    commit = Commit(ask.group_id, headers)
    expire_ms = min(ctx.now_ms + ask.retention_ms, MOST_MS) if ask.retention_ms >= 0 else -1
    add_runs(commit, found, config.offset_metadata_max_bytes, ctx.now_ms, expire_ms)
    return commit


def _response(ask: Ask, codes: Codes) -> OffsetCommitResponse:
    topics = []
    for row, row_codes in zip(ask.rows, codes, strict=True):
        answers = OffsetCommitResponsePartition.many("partition_index", row.partitions)
        if any(row_codes):
            for at, (answer, code) in enumerate(zip(answers, row_codes, strict=True)):
                answer.error_code = code
                if at in row.conflicts:
                    answer.unknown_tags = {TAG: row.conflicts[at]}
        topics.append(OffsetCommitResponseTopic(name=row.name, topic_id=row.topic_id, partitions=answers))
    return OffsetCommitResponse(topics=topics)
