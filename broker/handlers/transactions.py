"""InitProducerId, AddPartitionsToTxn, AddOffsetsToTxn and EndTxn: requests of producers to their coordinator.

InitProducerId      v3: resume with id and epoch (KIP-360). v4: PRODUCER_FENCED.
AddPartitionsToTxn  v0-3: from clients, all partitions or none. v4: several transactions, perhaps only to verify.
AddOffsetsToTxn     Adds the partition of `__consumer_offsets` that holds the offsets of a group.
EndTxn              v5: the epoch rises with every transaction, and the response holds it (KIP-890).

Behaviour: without a transactional id InitProducerId gives a producer id that was never given before. AddPartitionsToTxn
           from v4 on is for brokers, and answered to everybody.
Differs:   EndTxn is answered when the transaction is complete. Kafka answers when it is decided, and the
           producer's next transaction may have to wait (CONCURRENT_TRANSACTIONS).
Differs:   a transaction is aborted when its timeout is over, not at the next check
           (`transaction.abort.timed.out.transaction.cleanup.interval.ms` has no effect).
Absent:    two-phase commit (KIP-939, InitProducerId v6), which is not final in Kafka 4.3.
Absent:    KIP-447's draft client API (a group id in the producer, assignments in InitProducerId): it never got fields.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, Final, Protocol

from broker.base.context import Context
from broker.cluster.topic_names import INTERNAL_TOPICS, OFFSETS_TOPIC
from broker.coordinator.transactions.rules import (
    NeedsProducerIdError,
    add_partitions,
    end_transaction,
    end_transaction_v2,
    may_begin_again,
    verify_partitions,
)
from broker.coordinator.transactions.rules import (
    init_producer_id as decide_producer_id,
)
from broker.coordinator.transactions.transaction import ONGOING, Partitions, Transaction
from broker.coordinator.written import Records
from broker.turn.decision import LATER, Decision
from broker.wire.errors import error_response
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
    EndTxnRequest,
    EndTxnResponse,
    InitProducerIdRequest,
    InitProducerIdResponse,
)

if TYPE_CHECKING:
    from broker.config.settings import BrokerConfig
    from broker.coordinator.group_shards import GroupShards
    from broker.coordinator.runtime import Shard
    from broker.coordinator.transactions.coordinator import TransactionCoordinator
    from broker.turn.turn import Turn
    from broker.wire.parked import ParkedRequests

BATCHES_SINCE: Final = 4  # AddPartitionsToTxn
EPOCH_RISES_SINCE: Final = 5  # EndTxn


class View(Protocol):
    """What these handlers use of the broker."""

    @property
    def metadata_shard(self) -> Shard: ...
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


def init_producer_id(broker: View, ctx: Context, request: InitProducerIdRequest) -> Decision:
    """Answer a producer's id and epoch. This fences every older producer with the transactional id.

    Errors:  INVALID_REQUEST (the id is empty, or only one of producer id and epoch is given),
             INVALID_TRANSACTION_TIMEOUT, CONCURRENT_TRANSACTIONS (also when this call aborts a transaction),
             PRODUCER_FENCED, NOT_COORDINATOR, COORDINATOR_LOAD_IN_PROGRESS.
    Source:  Kafka's TransactionCoordinator.handleInitProducerId.
    """
    if (request.producer_id == -1) != (request.producer_epoch == -1):
        raise KafkaError(ErrorCode.INVALID_REQUEST)
    name = request.transactional_id
    if name is None:
        producer_id, records = broker.groups.metadata.next_producer_id()
        response = InitProducerIdResponse(producer_id=producer_id, producer_epoch=0)
        values = [(None, value) for value in records]
        return Decision(response, writes=((broker.metadata_shard, Records(values)),) if values else ())
    if not name:
        raise KafkaError(ErrorCode.INVALID_REQUEST)
    if not 0 < request.transaction_timeout_ms <= broker.config.transaction_max_timeout_ms:
        raise KafkaError(ErrorCode.INVALID_TRANSACTION_TIMEOUT)
    transactions = broker.transactions
    transactions.ensure_topic(ctx.rng)
    shard = transactions.shard(name, ctx)
    shard.before_write()
    given = None if request.producer_id == -1 else (request.producer_id, request.producer_epoch)

    def attempt(new_id: int | None) -> Any:
        transaction: Transaction | None = shard.machine.transactions.get(name)
        if transaction is not None and transaction.state is ONGOING and may_begin_again(transaction, given):
            transactions.fence(shard, transaction, broker.turn.now_ms)
            raise KafkaError(ErrorCode.CONCURRENT_TRANSACTIONS, f"the open transaction of {name!r} is aborted first")
        made = decide_producer_id(transaction, name, given, request.transaction_timeout_ms, broker.turn.now_ms, new_id)
        transactions.change(shard, made, broker.turn.now_ms)
        return InitProducerIdResponse(producer_id=made.producer_id, producer_epoch=made.producer_epoch)

    return Decision(_with_new_id(broker, ctx, shard, request, attempt))


def _with_new_id(broker: View, ctx: Context, shard: Shard, request: Any, attempt: Callable[[int | None], Any]) -> Any:
    """Call `attempt` without a new producer id, or again with one. Answers its response, or LATER until then."""
    try:
        return attempt(None)
    except NeedsProducerIdError:
        pass
    at_once: list[Any] = []
    parked = False

    def answer(response: Any) -> None:
        if response is LATER:
            return
        if not parked:
            at_once.append(response)
        else:
            shard.parked.discard(ctx.token)
            broker.parked.answer(ctx.token, response, shard.flush_state)

    def again(new_id: int) -> None:
        if parked and ctx.token not in shard.parked:
            return  # the shard was reloaded, and the client got an error
        try:
            response = attempt(new_id)
        except KafkaError as error:
            response = error_response(request, ctx.api_key, ctx.api_version, error.code, error.message)
        answer(response)

    def failed() -> None:
        answer(error_response(request, ctx.api_key, ctx.api_version, ErrorCode.COORDINATOR_NOT_AVAILABLE))

    broker.transactions.with_producer_id(again, failed)
    if at_once:
        return at_once[0]
    parked = True
    shard.parked.add(ctx.token)
    return LATER


def add_partitions_to_txn(broker: View, ctx: Context, request: AddPartitionsToTxnRequest) -> Decision:
    """Add partitions to transactions, or (from version 4 on) only verify that they were added.

    Errors:  a partition: TOPIC_AUTHORIZATION_FAILED (an internal topic, before version 4), UNKNOWN_TOPIC_OR_PARTITION,
             and then OPERATION_NOT_ATTEMPTED for the others; or for all of a transaction INVALID_REQUEST (no id),
             INVALID_PRODUCER_ID_MAPPING, PRODUCER_FENCED, CONCURRENT_TRANSACTIONS;
             only verified: TRANSACTION_ABORTABLE for those that are not in it.
    Source:  Kafka's KafkaApis.handleAddPartitionsToTxnRequest.
    """
    if ctx.api_version < BATCHES_SINCE:
        wanted = _grouped(request.v3_and_below_topics)
        codes = _add(
            broker,
            ctx,
            request.v3_and_below_transactional_id,
            request.v3_and_below_producer_id,
            request.v3_and_below_producer_epoch,
            wanted,
            verify_only=False,
        )
        response = AddPartitionsToTxnResponse(results_by_topic_v3_and_below=_topic_results(wanted, codes))
        name = request.v3_and_below_transactional_id
        return Decision(response, shard=None if codes else broker.transactions.shard(name))
    results = []
    for each in request.transactions:
        wanted = _grouped(each.topics)
        codes = _add(
            broker,
            ctx,
            each.transactional_id,
            each.producer_id,
            each.producer_epoch,
            wanted,
            verify_only=each.verify_only,
        )
        results.append(
            AddPartitionsToTxnResult(
                transactional_id=each.transactional_id, topic_results=_topic_results(wanted, codes)
            )
        )
    return Decision(AddPartitionsToTxnResponse(results_by_transaction=results))


def _grouped(topics: Iterable[AddPartitionsToTxnTopic]) -> Partitions:
    wanted: Partitions = {}
    for topic in topics:
        wanted[topic.name] = (*wanted.get(topic.name, ()), *topic.partitions)
    return wanted


Codes = dict[tuple[str, int], ErrorCode] | ErrorCode  # of single partitions (none for the others), or of all


def _add(
    broker: View,
    ctx: Context,
    transactional_id: str,
    producer_id: int,
    producer_epoch: int,
    wanted: Partitions,
    *,
    verify_only: bool,
) -> Codes:
    topics = broker.groups.metadata.topics
    codes: dict[tuple[str, int], ErrorCode] = {}
    for name, indexes in wanted.items():
        topic = topics.get(name)
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
    try:
        shard, transaction = _find(broker, ctx, transactional_id)
        if verify_only:
            missing = verify_partitions(transaction, producer_id, producer_epoch, wanted)
            return dict.fromkeys(missing, ErrorCode.TRANSACTION_ABORTABLE)
        client_version = 2 if ctx.api_version >= BATCHES_SINCE else 0
        made = add_partitions(transaction, producer_id, producer_epoch, wanted, ctx.now_ms, client_version)
    except KafkaError as error:
        if error.code == ErrorCode.PRODUCER_FENCED and ctx.api_version < 2:
            return ErrorCode.INVALID_PRODUCER_EPOCH
        return error.code
    if made is not None:
        broker.transactions.change(shard, made, ctx.now_ms)
    return ErrorCode.NONE


def _topic_results(wanted: Partitions, codes: Codes) -> list[AddPartitionsToTxnTopicResult]:
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
        for name, indexes in wanted.items()
    ]


def _find(broker: View, ctx: Context, transactional_id: str) -> tuple[Shard, Transaction | None]:
    if not transactional_id:
        raise KafkaError(ErrorCode.INVALID_REQUEST, "the transactional id is empty")
    shard = broker.transactions.shard(transactional_id, ctx)
    shard.before_write()
    return shard, shard.machine.transactions.get(transactional_id)


def add_offsets_to_txn(broker: View, ctx: Context, request: AddOffsetsToTxnRequest) -> Decision:
    """Add a group's offsets to the transaction. Errors: as AddPartitionsToTxn."""
    shard, transaction = _find(broker, ctx, request.transactional_id)
    place: Partitions = {OFFSETS_TOPIC: (broker.groups.index_of(request.group_id),)}
    made = add_partitions(transaction, request.producer_id, request.producer_epoch, place, ctx.now_ms, 0)
    if made is not None:
        broker.transactions.change(shard, made, ctx.now_ms)
    return Decision(AddOffsetsToTxnResponse(), shard=shard)


def end_txn(broker: View, ctx: Context, request: EndTxnRequest) -> Decision:
    """Commit or abort. The response comes when every partition has its marker.

    Errors:  INVALID_REQUEST (no id), INVALID_PRODUCER_ID_MAPPING, PRODUCER_FENCED, CONCURRENT_TRANSACTIONS (an equal
             request is still being carried out), INVALID_TXN_STATE.
    Source:  Kafka's TransactionCoordinator.endTransaction; transactions/rules.py has the tables.
    """
    shard, transaction = _find(broker, ctx, request.transactional_id)
    if ctx.api_version < EPOCH_RISES_SINCE:
        made = end_transaction(
            transaction, request.producer_id, request.producer_epoch, commit=request.committed, now_ms=ctx.now_ms
        )
        return Decision(_end(broker, ctx, shard, transaction, made))

    def attempt(new_id: int | None) -> Any:
        transaction: Transaction | None = shard.machine.transactions.get(request.transactional_id)
        made = end_transaction_v2(
            transaction,
            request.producer_id,
            request.producer_epoch,
            commit=request.committed,
            now_ms=broker.turn.now_ms,
            new_producer_id=new_id,
        )
        return _end(broker, ctx, shard, transaction, made)

    return Decision(_with_new_id(broker, ctx, shard, request, attempt))


def _end(broker: View, ctx: Context, shard: Shard, transaction: Transaction | None, made: Transaction | None) -> Any:
    if made is None:  # it has already ended like this
        assert transaction is not None
        return EndTxnResponse(producer_id=transaction.producer_id, producer_epoch=transaction.producer_epoch)
    done = broker.transactions.end(shard, made, broker.turn.now_ms, ctx.token)
    if done is None:
        return LATER
    return EndTxnResponse(producer_id=done.producer_id, producer_epoch=done.producer_epoch)
