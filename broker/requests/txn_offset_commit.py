"""TxnOffsetCommit: offsets that become a group's when a producer's transaction commits.

TxnOffsetCommit  v2: leader epochs. v3: member, generation and instance (KIP-447). v4: TRANSACTION_ABORTABLE. v5: adds
                 the group's offsets to the transaction by itself (KIP-890). v6: topic ids, and new codes (KIP-1319).

Behaviour: the checks in order: the topic exists, the offsets' partition is part of the transaction, the group accepts
           the member. So a fenced producer gets INVALID_PRODUCER_EPOCH, even with a wrong generation. The offsets are
           one batch of the producer, pending until its marker (coordinator/offsets/pending.py).
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, Final, Protocol

from broker.cluster.topic_names import OFFSETS_TOPIC
from broker.coordinator.groups.classic.commit_checks import NONE
from broker.coordinator.offsets.commit_batch import CommitBatch, PlainCommit
from broker.coordinator.offsets.commit_run import Commit, commit_of
from broker.coordinator.offsets.provenance import provenance
from broker.coordinator.transactions.gate import OFFSETS_ADD_SINCE, unverified
from broker.coordinator.transactions.rules import add_partitions, verify_partitions
from broker.coordinator.transactions.written import NextState
from broker.requests.offset_rows import Codes, Found, Row, add_runs, checked, find_topics, refuse
from broker.requests.repeated import HotRequest
from broker.turn.decision import AGAIN, Decision
from protocol.errors import ErrorCode, KafkaError
from protocol.messages.transactions import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitResponse,
    TxnOffsetCommitResponsePartition,
    TxnOffsetCommitResponseTopic,
)
from protocol.record import encode_headers
from protocol.shape import Shape
from storage.files.errors import StorageError

if TYPE_CHECKING:
    from broker.base.context import Context
    from broker.cluster.metadata import ClusterMetadata
    from broker.config.settings import BrokerConfig
    from broker.coordinator.group_shards import GroupShards
    from broker.coordinator.groups.common.assignment_epoch_checks import CommittedPartitions
    from broker.coordinator.runtime import Shard
    from broker.coordinator.transactions.coordinator import TransactionCoordinator
    from broker.coordinator.transactions.transaction import Partitions, Transaction
    from broker.requests.kept import Kept
    from broker.turn.decision import Headers

TOPIC_IDS_SINCE: Final = 6
NO_PLACE: Final[Partitions] = {}
NOTHING: Final[tuple[tuple[Shard, NextState], ...]] = ()


class View(Protocol):
    """What the rule uses of the broker."""

    @property
    def metadata(self) -> ClusterMetadata: ...
    @property
    def config(self) -> BrokerConfig: ...
    @property
    def groups(self) -> GroupShards: ...
    @property
    def transactions(self) -> TransactionCoordinator: ...


class Ask:
    """What one TxnOffsetCommit asks, and what was found for it: a repeat finds it there.

    shard, place    of the group, and its partition as part of a transaction.
    coordinator     the shard of the transaction.
    begun, step     the decision that writes the transaction's record, and that record, used again for repeats;
    accepted        the decision that follows it, the same.
    """

    __slots__ = (
        "accepted",
        "begun",
        "codes",
        "commit",
        "coordinator",
        "found",
        "generation",
        "group_id",
        "instance_id",
        "member_id",
        "partitions",
        "place",
        "producer_epoch",
        "producer_id",
        "rows",
        "shard",
        "step",
        "transactional_id",
    )
    shard: Shard  # set when it is known

    def __init__(self, request: TxnOffsetCommitRequest) -> None:
        self.transactional_id = request.transactional_id
        self.producer_id = request.producer_id
        self.producer_epoch = request.producer_epoch
        self.group_id = request.group_id
        self.generation = request.generation_id_or_member_epoch
        self.member_id = request.member_id
        self.instance_id = request.group_instance_id
        self.rows = [Row(each.name, each.partitions, each.topic_id) for each in request.topics]
        self.codes: Codes = []
        self.found: Found = []
        self.place = NO_PLACE
        self.coordinator: Shard | None = None
        self.step: NextState | None = None
        self.begun: Decision | None = None
        self.accepted: Decision | None = None
        self.commit: PlainCommit | None = None
        self.partitions: CommittedPartitions | None = None  # of a repeat: those that are committed

    def look_up(self, metadata: ClusterMetadata, version: int) -> Found:
        """The rows of topics that exist; the codes of all other partitions are set."""
        self.codes = [[0] * len(row.partitions) for row in self.rows]
        by_id = version >= TOPIC_IDS_SINCE
        self.found = find_topics(metadata, self.rows, self.codes, by_id=by_id)
        return self.found


class TxnOffsetCommit(HotRequest):
    """The rule, the general codec, and commits of other offsets on the same partitions of one topic."""

    REQUEST = Shape(
        TxnOffsetCommitRequest, "producer_id", "producer_epoch", "committed_offset", "committed_leader_epoch"
    )
    REPLY = Shape(TxnOffsetCommitResponse)
    MAY_WAIT = False

    def __init__(self, broker: Any) -> None:
        super().__init__(broker)
        self._view: View = broker

    def decide(self, ask: Ask, ctx: Context) -> Decision:
        """Add offsets to the transaction, or refuse them. The reply is Codes.

        Shape:   one OffsetCommit record per accepted partition, in request order, one batch of the producer.
        Errors:  of a partition: UNKNOWN_TOPIC_OR_PARTITION, UNKNOWN_TOPIC_ID, OFFSET_METADATA_TOO_LARGE; of all others:
                 INVALID_GROUP_ID, NOT_COORDINATOR, COORDINATOR_LOAD_IN_PROGRESS, those of transactions/gate.py,
                 UNKNOWN_MEMBER_ID, FENCED_INSTANCE_ID, ILLEGAL_GENERATION, STALE_MEMBER_EPOCH, GROUP_ID_NOT_FOUND.
        Source:  KafkaApis.handleTxnOffsetCommitRequest, OffsetMetadataManager.commitTransactionalOffset.
        """
        accepted, view, version = ask.accepted, self._view, ctx.api_version
        if accepted is None:
            if not ask.look_up(view.metadata, version):
                return Decision(ask.codes)
            try:
                if not ask.group_id:
                    raise KafkaError(ErrorCode.INVALID_GROUP_ID, "the group id is empty")
                ask.shard = view.groups.require_for_offsets(ask.group_id, ctx)
                ask.place = {OFFSETS_TOPIC: (view.groups.index_of(ask.group_id),)}
                if version < OFFSETS_ADD_SINCE and not view.config.transaction_partition_verification_enable:
                    code = unverified(view.transactions, ask.transactional_id, ask.producer_id, ask.producer_epoch)
                    return _refused(ask, code) if code is not NONE else self._commit(ask, ctx)
                if not ask.transactional_id:
                    raise KafkaError(ErrorCode.INVALID_REQUEST, "the transactional id is empty")
                ask.coordinator = view.transactions.shard(ask.transactional_id)
            except KafkaError as error:
                return _refused(ask, error.code)
        coordinator = ask.coordinator
        assert coordinator is not None
        transaction: Transaction | None = coordinator.machine.transactions.get(ask.transactional_id)
        made: Transaction | None = None
        try:
            if version >= OFFSETS_ADD_SINCE:
                made = add_partitions(transaction, ask.producer_id, ask.producer_epoch, ask.place, ctx.now_ms, 2)
            elif verify_partitions(transaction, ask.producer_id, ask.producer_epoch, ask.place):
                return _refused(ask, ErrorCode.TRANSACTION_ABORTABLE)
        except KafkaError as error:
            return _refused(ask, error.code)
        until, writes = coordinator.flush_state, NOTHING
        if made is not None:
            if ask.step is None:
                ask.step = view.transactions.next_state(made)
            ask.step.transaction = made
            writes = ((coordinator, ask.step),)
        elif until.durable_offset >= until.log.end_offset:
            return self._commit(ask, ctx)
        begun = ask.begun
        if begun is None:
            return Decision(writes=writes, until=until, follow=partial(self._added, ask, ctx))
        begun.writes = writes
        is_certain = not self.turn.fsync and self._check(ask, ctx) is NONE  # that nothing that follows can be refused
        begun.repeats = AGAIN if is_certain else None
        return begun

    def _added(self, ask: Ask, ctx: Context, durable: bool) -> Decision:
        """The transaction's record is durable, or lost.

        Errors:  COORDINATOR_NOT_AVAILABLE, COORDINATOR_LOAD_IN_PROGRESS.
        """
        _require_durable(durable)
        try:
            ask.shard.require()  # it may have been reloaded meanwhile
        except (OSError, StorageError) as error:
            raise KafkaError(ErrorCode.COORDINATOR_NOT_AVAILABLE, str(error)) from error
        ctx.now_ms = self.turn.now_ms
        ask.look_up(self._view.metadata, ctx.api_version)
        return self._commit(ask, ctx)

    def _check(self, ask: Ask, ctx: Context) -> ErrorCode:
        """Whether the group accepts them."""
        code: ErrorCode = ask.shard.machine.check_txn_offset_commit(
            ask.group_id,
            ctx.api_version,
            ask.generation,
            ask.member_id,
            ask.instance_id,
            ask.partitions or partial(checked, ask.found, self._view.config.offset_metadata_max_bytes),
        )
        return code

    def _commit(self, ask: Ask, ctx: Context) -> Decision:
        """The offsets' partition is part of the transaction, which is durable."""
        code = self._check(ask, ctx)
        if code is not NONE:
            return _refused(ask, code)
        if ask.accepted is not None:
            return ask.accepted
        config, shard = self._view.config, ask.shard
        headers: Headers = ()
        if config.offsets_provenance:
            headers = provenance(ask.member_id, ask.instance_id, ask.generation, ctx.client_id)
        commit = Commit(ask.group_id, headers, (ask.producer_id, ask.producer_epoch))
        add_runs(commit, ask.found, config.offset_metadata_max_bytes, ctx.now_ms)
        if commit.is_empty:
            end_offset = shard.log.end_offset
            return Decision(
                ask.codes, shard=shard, then=partial(shard.machine.simple_group_for, ask.group_id, end_offset)
            )
        written = commit_of(commit, encode_headers(commit.headers), shard.log.config.max_message_bytes)
        decision = Decision(ask.codes, shard=shard, writes=((shard, written),))
        if isinstance(written, PlainCommit) and not any(map(any, ask.codes)) and ask.coordinator is not None:
            ask.commit, decision.repeats = written, ask
        return decision

    def message(self, ctx: Context, request: TxnOffsetCommitRequest) -> Decision:
        """See HotRequest."""
        ask = Ask(request)
        return self.answered(self.decide(ask, ctx), partial(_response, ask))

    def prepare(self, kept: Kept, decision: Decision) -> None:
        """Build the constant parts of the batch once."""
        ask: Ask = kept.ask
        plain, (_, topic, _, _) = ask.commit, ask.found[0]
        assert plain is not None
        batch = CommitBatch(ask.group_id, topic.name, topic.topic_id, plain.partitions, encode_headers(plain.sender))
        batch.sender, batch.leader_epochs = plain.sender, plain.leader_epochs
        ask.commit = batch
        ask.accepted = accepted = Decision(shard=ask.shard, writes=((ask.shard, batch),), repeats=AGAIN)

        def follow(durable: bool) -> Decision:
            _require_durable(durable)
            return accepted

        ask.partitions = partial(checked, ask.found, self._view.config.offset_metadata_max_bytes)
        assert ask.coordinator is not None
        ask.begun = Decision(until=ask.coordinator.flush_state, follow=follow)

    def fill(self, ask: Ask, fields: tuple[Any, ...], width: int) -> None:
        """See HotRequest. Before v2 there is no leader epoch, and each field stands alone."""
        commit = ask.commit
        assert commit is not None
        ask.producer_id = fields[0]
        if width > 1:
            ask.producer_epoch = fields[1]
            commit.offsets, commit.leader_epochs = fields[3::3], fields[4::3]
        else:
            ask.producer_epoch = fields[2]
            commit.offsets = fields[4::2]
        commit.producer = ask.producer_id, ask.producer_epoch


def _require_durable(durable: bool) -> None:
    if not durable:
        raise KafkaError(ErrorCode.COORDINATOR_NOT_AVAILABLE, "the transaction could not be written")


def _refused(ask: Ask, code: ErrorCode) -> Decision:
    """All partitions that exist get the same code."""
    if code == ErrorCode.PRODUCER_FENCED:
        code = ErrorCode.INVALID_PRODUCER_EPOCH
    refuse(ask.found, code)
    return Decision(ask.codes)


def _response(ask: Ask, codes: Codes) -> TxnOffsetCommitResponse:
    topics = []
    for row, row_codes in zip(ask.rows, codes, strict=True):
        answers = TxnOffsetCommitResponsePartition.many("partition_index", row.partitions)
        if any(row_codes):
            for answer, code in zip(answers, row_codes, strict=True):
                answer.error_code = code
        topics.append(TxnOffsetCommitResponseTopic(name=row.name, topic_id=row.topic_id, partitions=answers))
    return TxnOffsetCommitResponse(topics=topics)
