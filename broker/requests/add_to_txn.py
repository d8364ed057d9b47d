"""AddPartitionsToTxn and AddOffsetsToTxn: what a producer is about to write to becomes part of its transaction.

AddPartitionsToTxn  v0-3: from clients, all partitions or none. v4: several transactions, perhaps only to verify.
AddOffsetsToTxn     Adds the partition of `__consumer_offsets` that holds the offsets of a group.

Behaviour: AddPartitionsToTxn from v4 on is for brokers, and answered to everybody.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, Final, Protocol

from broker.cluster.topic_names import INTERNAL_TOPICS, OFFSETS_TOPIC
from broker.coordinator.transactions.rules import add_partitions, verify_partitions
from broker.requests.repeated import HotRequest
from broker.turn.decision import AGAIN, Decision
from protocol.errors import ErrorCode, KafkaError
from protocol.messages.transactions import (
    AddOffsetsToTxnRequest,
    AddOffsetsToTxnResponse,
    AddPartitionsToTxnPartitionResult,
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
    AddPartitionsToTxnResult,
    AddPartitionsToTxnTopic,
    AddPartitionsToTxnTopicResult,
)
from protocol.shape import Shape

if TYPE_CHECKING:
    from broker.base.context import Context
    from broker.cluster.metadata import ClusterMetadata
    from broker.coordinator.group_shards import GroupShards
    from broker.coordinator.runtime import Shard
    from broker.coordinator.transactions.coordinator import TransactionCoordinator
    from broker.coordinator.transactions.transaction import Partitions, Transaction
    from broker.coordinator.transactions.written import NextState
    from broker.requests.kept import Kept
    from broker.turn.decision import Writes

BATCHES_SINCE: Final = 4  # AddPartitionsToTxn

Codes = dict[tuple[str, int], ErrorCode] | ErrorCode  # of single partitions (none for the others), or of all


class View(Protocol):
    """What the rule uses of the broker."""

    @property
    def metadata(self) -> ClusterMetadata: ...
    @property
    def groups(self) -> GroupShards: ...
    @property
    def transactions(self) -> TransactionCoordinator: ...


class Part:
    """What is added to one transaction, or verified, and what was found for it: a repeat finds it there."""

    __slots__ = (
        "codes",
        "is_group",
        "partitions",
        "producer_epoch",
        "producer_id",
        "shard",
        "step",
        "transactional_id",
        "verifies",
        "writes",
    )

    def __init__(
        self,
        transactional_id: str,
        producer_id: int,
        producer_epoch: int,
        partitions: Partitions,
        *,
        verifies: bool = False,
        is_group: bool = False,
    ) -> None:
        self.transactional_id = transactional_id
        self.producer_id = producer_id
        self.producer_epoch = producer_epoch
        self.partitions = partitions
        self.verifies = verifies
        self.is_group = is_group  # `partitions` is that of the offsets of a group
        self.codes: Codes = ErrorCode.NONE
        self.shard: Shard | None = None  # of the transaction
        self.step: NextState | None = None  # its record
        self.writes: Writes = ()  # the record, for the shard


class Ask:
    """What one request asks. client_version: of transactions, as the record has it. only: its part, if it is one."""

    __slots__ = ("accepted", "client_version", "only", "parts")

    def __init__(self, parts: list[Part], client_version: int) -> None:
        self.parts = parts
        self.only = parts[0] if len(parts) == 1 else None
        self.client_version = client_version
        self.accepted: Decision | None = None


class _Adding(HotRequest):
    """The rule of both APIs, and producers that add the same partitions to one transaction after the other."""

    MAY_WAIT = False

    def __init__(self, broker: Any) -> None:
        super().__init__(broker)
        self.view: View = broker

    def decide(self, ask: Ask, ctx: Context) -> Decision:
        """Add partitions to transactions, or only verify that they were added. The reply is in the parts' codes.

        Errors:  a partition: TOPIC_AUTHORIZATION_FAILED (an internal topic, before version 4),
                 UNKNOWN_TOPIC_OR_PARTITION, and then OPERATION_NOT_ATTEMPTED for the others; or for all of a
                 transaction INVALID_REQUEST (no id), INVALID_PRODUCER_ID_MAPPING, PRODUCER_FENCED,
                 CONCURRENT_TRANSACTIONS; only verified: TRANSACTION_ABORTABLE for those that are not in it.
        Source:  Kafka's KafkaApis.handleAddPartitionsToTxnRequest.
        """
        accepted, is_refused = ask.accepted, False
        writes: Writes = ()
        latest: dict[str, Transaction] = {}  # a request may name a transaction twice
        for part in ask.parts:
            name, shard = part.transactional_id, part.shard
            try:
                if shard is None:
                    codes = {} if part.is_group else _unknown(part.partitions, self.view.metadata, ctx)
                    if codes:
                        part.codes, is_refused = codes, True
                        continue
                    shard = part.shard = find_shard(self.view.transactions, ctx, name)
                transaction = shard.machine.transactions.get(name)
                if latest:
                    transaction = latest.get(name, transaction)
                if part.verifies:
                    missing = verify_partitions(transaction, part.producer_id, part.producer_epoch, part.partitions)
                    part.codes = dict.fromkeys(missing, ErrorCode.TRANSACTION_ABORTABLE)
                    is_refused = is_refused or bool(missing)
                    continue
                made = add_partitions(
                    transaction, part.producer_id, part.producer_epoch, part.partitions, ctx.now_ms, ask.client_version
                )
            except KafkaError as error:
                if part.is_group:
                    raise
                part.codes, is_refused = error.code, True
                continue
            if made is not None:
                latest[name] = made
                if part.step is None:
                    part.step = self.view.transactions.next_state(made)
                    part.writes = ((shard, part.step),)
                part.step.transaction = made
                writes += part.writes
        if accepted is None:
            return Decision(writes=writes, repeats=None if is_refused else ask)
        accepted.writes = writes
        accepted.repeats = None if is_refused else AGAIN
        return accepted

    def prepare(self, kept: Kept, decision: Decision) -> None:
        """All that a repeat needs is in the Ask."""
        kept.ask.accepted = decision

    def fill(self, ask: Ask, fields: tuple[Any, ...], width: int) -> None:
        """See HotRequest."""
        part = ask.only
        if part is not None:
            part.producer_id, part.producer_epoch = fields[0], fields[1]
            return
        for at, part in enumerate(ask.parts):
            part.producer_id, part.producer_epoch = fields[3 * at : 3 * at + 2]


class AddPartitionsToTxn(_Adding):
    """The general codec."""

    REQUEST = Shape(
        AddPartitionsToTxnRequest,
        "v3_and_below_producer_id",
        "v3_and_below_producer_epoch",
        "producer_id",
        "producer_epoch",
    )
    REPLY = Shape(AddPartitionsToTxnResponse)

    def message(self, ctx: Context, request: AddPartitionsToTxnRequest) -> Decision:
        """See HotRequest."""
        if ctx.api_version < BATCHES_SINCE:
            part = Part(
                request.v3_and_below_transactional_id,
                request.v3_and_below_producer_id,
                request.v3_and_below_producer_epoch,
                _grouped(request.v3_and_below_topics),
            )
            decision = self.decide(Ask([part], 0), ctx)
            decision.shard = None if part.codes else part.shard
            decision.reply = AddPartitionsToTxnResponse(results_by_topic_v3_and_below=_results(part))
            return decision
        parts = [
            Part(
                each.transactional_id,
                each.producer_id,
                each.producer_epoch,
                _grouped(each.topics),
                verifies=each.verify_only,
            )
            for each in request.transactions
        ]
        decision = self.decide(Ask(parts, 2), ctx)
        results = [
            AddPartitionsToTxnResult(transactional_id=part.transactional_id, topic_results=_results(part))
            for part in parts
        ]
        decision.reply = AddPartitionsToTxnResponse(results_by_transaction=results)
        return decision


class AddOffsetsToTxn(_Adding):
    """The general codec. Errors: as AddPartitionsToTxn, for the whole request."""

    REQUEST = Shape(AddOffsetsToTxnRequest, "producer_id", "producer_epoch")
    REPLY = Shape(AddOffsetsToTxnResponse)

    def message(self, ctx: Context, request: AddOffsetsToTxnRequest) -> Decision:
        """See HotRequest."""
        place: Partitions = {OFFSETS_TOPIC: (self.view.groups.index_of(request.group_id),)}
        part = Part(request.transactional_id, request.producer_id, request.producer_epoch, place, is_group=True)
        decision = self.decide(Ask([part], 0), ctx)
        decision.shard, decision.reply = part.shard, AddOffsetsToTxnResponse()
        return decision


def find_shard(transactions: TransactionCoordinator, ctx: Context, transactional_id: str) -> Shard:
    """The shard of a transactional id, for a request that is about to write.

    Errors: INVALID_REQUEST (no id), NOT_COORDINATOR, COORDINATOR_LOAD_IN_PROGRESS, COORDINATOR_NOT_AVAILABLE.
    """
    if not transactional_id:
        raise KafkaError(ErrorCode.INVALID_REQUEST, "the transactional id is empty")
    shard = transactions.shard(transactional_id, ctx)
    shard.before_write()
    return shard


def _grouped(topics: Iterable[AddPartitionsToTxnTopic]) -> Partitions:
    wanted: Partitions = {}
    for topic in topics:
        wanted[topic.name] = (*wanted.get(topic.name, ()), *topic.partitions)
    return wanted


def _unknown(wanted: Partitions, metadata: ClusterMetadata, ctx: Context) -> dict[tuple[str, int], ErrorCode]:
    """The codes of all partitions, if one of them cannot be added."""
    codes: dict[tuple[str, int], ErrorCode] = {}
    for name, indexes in wanted.items():
        topic = metadata.topics.get(name)
        for index in indexes:
            if name in INTERNAL_TOPICS and ctx.api_version < BATCHES_SINCE:
                codes[name, index] = ErrorCode.TOPIC_AUTHORIZATION_FAILED
            elif topic is None or not 0 <= index < len(topic.partitions):
                codes[name, index] = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    if codes:
        for name, indexes in wanted.items():
            for index in indexes:
                codes.setdefault((name, index), ErrorCode.OPERATION_NOT_ATTEMPTED)
    return codes


def _results(part: Part) -> list[AddPartitionsToTxnTopicResult]:
    codes = part.codes
    return [
        AddPartitionsToTxnTopicResult(
            name=name,
            results_by_partition=[
                AddPartitionsToTxnPartitionResult(
                    partition_index=index,
                    partition_error_code=codes.get((name, index), ErrorCode.NONE) if isinstance(codes, dict) else codes,
                )
                for index in indexes
            ],
        )
        for name, indexes in part.partitions.items()
    ]
