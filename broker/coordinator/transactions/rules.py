"""What a request may do to a transaction: decisions only. Each answers the transaction's next state, or refuses.

    None          nothing has to be written: it is as requested already
    Transaction   the next state, to be recorded
    KafkaError    the refusal, with the code of the newest version of the API (wire/errors.py has those of older ones)

`NeedsProducerIdError` is neither: the decision needs a new producer id, and the caller calls again with one.
"""

from __future__ import annotations

from broker.coordinator.transactions.transaction import (
    AT_REST,
    COMPLETE_ABORT,
    COMPLETE_COMMIT,
    EMPTY,
    LAST_EPOCH,
    MAX_EPOCH,
    NO_EPOCH,
    NO_PRODUCER,
    ONGOING,
    PREPARE_ABORT,
    PREPARE_COMMIT,
    PREPARED,
    STATE_NAMES,
    Partitions,
    State,
    Transaction,
)
from protocol.errors import ErrorCode, KafkaError


class NeedsProducerIdError(Exception):
    """Call again with a new producer id."""


def init_producer_id(
    transaction: Transaction | None,
    transactional_id: str,
    given: tuple[int, int] | None,
    timeout_ms: int,
    now_ms: int,
    new_producer_id: int | None,
) -> Transaction:
    """The producer begins, or begins again. Answers the state Empty, with the id and epoch for the producer.

    `given` are the id and epoch that a producer sends when it continues after an error (KIP-360). An Ongoing
    transaction must first be ended by `fence`.

    | state    | given                                        | result                                       |
    |----------|----------------------------------------------|----------------------------------------------|
    | unknown  | any                                          | new id, epoch 0                              |
    | any      | another id (but the previous one, exhausted) | PRODUCER_FENCED                              |
    | Prepare* | any                                          | CONCURRENT_TRANSACTIONS                      |
    | at rest  | none, or the epoch; no epoch left            | new id, epoch 0                              |
    | at rest  | none                                         | epoch + 1, no retry is accepted              |
    | at rest  | the epoch                                    | epoch + 1, a retry of this is accepted       |
    | at rest  | the last epoch                               | the same again                               |
    | at rest  | another epoch                                | PRODUCER_FENCED                              |

    Source: Kafka's TransactionCoordinator.prepareInitProducerIdTransit, TransactionMetadata.
    """
    if transaction is None:
        if new_producer_id is None:
            raise NeedsProducerIdError
        transaction = Transaction(transactional_id, new_producer_id, timeout_ms)
    epoch = transaction.producer_epoch
    if given is not None and not may_begin_again(transaction, given):
        raise _fenced(transaction, given)
    if transaction.state not in AT_REST:
        raise _busy(transaction)
    made = transaction.next(EMPTY, now_ms)
    made.clear()
    made.start_ms = -1
    made.timeout_ms = timeout_ms
    if transaction.is_exhausted and (given is None or given[1] == epoch):
        if new_producer_id is None:
            raise NeedsProducerIdError
        made.producer_id = new_producer_id
        made.producer_epoch = 0
        made.last_producer_epoch = NO_EPOCH if given is None else epoch
    elif given is None:
        made.producer_epoch = epoch + 1
        made.last_producer_epoch = NO_EPOCH
    elif epoch in (NO_EPOCH, given[1]):
        made.producer_epoch = epoch + 1
        made.last_producer_epoch = epoch
    elif given[1] != transaction.last_producer_epoch:
        raise _fenced(transaction, given)
    return made


def may_begin_again(transaction: Transaction, given: tuple[int, int] | None) -> bool:
    """Whether a producer with this id and epoch (None: neither given) has not been replaced."""
    return (
        given is None
        or transaction.producer_epoch == NO_EPOCH
        or given[0] == transaction.producer_id
        or (given[0] == transaction.previous_producer_id and given[1] >= LAST_EPOCH)
    )


def add_partitions(
    transaction: Transaction | None,
    producer_id: int,
    producer_epoch: int,
    partitions: Partitions,
    now_ms: int,
    client_version: int,
) -> Transaction | None:
    """Add partitions to the transaction, which begins with the first of them.

    | condition                  | result                      |
    |----------------------------|-----------------------------|
    | unknown, or another id     | INVALID_PRODUCER_ID_MAPPING |
    | another epoch              | PRODUCER_FENCED             |
    | Prepare*                   | CONCURRENT_TRANSACTIONS     |
    | Ongoing with all of them   | None                        |
    | else                       | Ongoing                     |
    """
    transaction = _of_producer(transaction, producer_id, producer_epoch)
    state = transaction.state
    if state in PREPARED:
        raise _busy(transaction)
    if state is ONGOING and transaction.has(partitions):
        return None
    made = transaction.next(ONGOING, now_ms)
    if state is not ONGOING:
        made.start_ms = now_ms
    made.add(partitions)
    made.client_version = client_version
    return made


def verify_partitions(
    transaction: Transaction | None, producer_id: int, producer_epoch: int, partitions: Partitions
) -> list[tuple[str, int]]:
    """The partitions that are not part of the transaction. Errors: as add_partitions."""
    transaction = _of_producer(transaction, producer_id, producer_epoch)
    if transaction.state in PREPARED:
        raise _busy(transaction)
    mine = transaction.partitions
    return [
        (topic, index) for topic, indexes in partitions.items() for index in indexes if index not in mine.get(topic, ())
    ]


def end_transaction(
    transaction: Transaction | None,
    producer_id: int,
    producer_epoch: int,
    *,
    commit: bool,
    now_ms: int,
    new_producer_id: int | None = None,
) -> Transaction | None:
    """EndTxn of versions 0 to 4: the epoch stays, and no new producer id is needed.

    | state          | commit                   | abort                    |
    |----------------|--------------------------|--------------------------|
    | Ongoing        | PrepareCommit            | PrepareAbort             |
    | CompleteCommit | None                     | INVALID_TXN_STATE        |
    | CompleteAbort  | INVALID_TXN_STATE        | None                     |
    | PrepareCommit  | CONCURRENT_TRANSACTIONS  | INVALID_TXN_STATE        |
    | PrepareAbort   | INVALID_TXN_STATE        | CONCURRENT_TRANSACTIONS  |
    | Empty          | INVALID_TXN_STATE        | INVALID_TXN_STATE        |

    Unknown or of another id: INVALID_PRODUCER_ID_MAPPING; another epoch: PRODUCER_FENCED.
    """
    transaction = _of_producer(transaction, producer_id, producer_epoch)
    state = transaction.state
    if state is ONGOING:
        made = transaction.next(PREPARE_COMMIT if commit else PREPARE_ABORT, now_ms)
        made.next_producer_id = NO_PRODUCER
        made.client_version = 0
        return made
    if state is (COMPLETE_COMMIT if commit else COMPLETE_ABORT):
        return None
    if state is (PREPARE_COMMIT if commit else PREPARE_ABORT):
        raise _busy(transaction)
    raise _illegal(transaction, commit=commit)


def end_transaction_v2(
    transaction: Transaction | None,
    producer_id: int,
    producer_epoch: int,
    *,
    commit: bool,
    now_ms: int,
    new_producer_id: int | None = None,
) -> Transaction | None:
    """EndTxn of version 5 (KIP-890): every transaction ends with a higher epoch, so late records of it are fenced.

    A retry is recognised by its epoch: one below the current one, or the last one of the previous producer id.

    | state          | commit        | its retry | abort        | its retry |
    |----------------|---------------|-----------|--------------|-----------|
    | Ongoing        | PrepareCommit | fenced    | PrepareAbort | fenced    |
    | Empty          | illegal       | fenced    | PrepareAbort | fenced    |
    | CompleteCommit | illegal       | None      | PrepareAbort | illegal   |
    | CompleteAbort  | illegal       | illegal   | PrepareAbort | None      |
    | PrepareCommit  | fenced        | busy      | fenced       | illegal   |
    | PrepareAbort   | fenced        | illegal   | fenced       | busy      |

    fenced: PRODUCER_FENCED, illegal: INVALID_TXN_STATE, busy: CONCURRENT_TRANSACTIONS; another producer id:
    INVALID_PRODUCER_ID_MAPPING. A commit that meets the coordinator's own abort is a retry in CompleteAbort: illegal in
    Kafka 4.3.1 and 4.4.0. A later Kafka answers PRODUCER_FENCED (KAFKA-20785).
    Source: the table in Kafka's TransactionCoordinator.
    """
    if transaction is None:
        raise _unmapped(producer_id)
    state, epoch = transaction.state, transaction.producer_epoch
    after_overflow = producer_id == transaction.previous_producer_id and producer_epoch == LAST_EPOCH and epoch == 0
    if producer_id != transaction.producer_id and not after_overflow:
        raise _unmapped(producer_id)
    is_retry = after_overflow or producer_epoch == epoch - 1
    if state is ONGOING or state is EMPTY:
        valid = producer_epoch == epoch
    elif state in PREPARED:
        valid = producer_epoch == epoch - 1
    else:
        valid = is_retry or producer_epoch == epoch
    if not valid:
        raise _fenced(transaction, (producer_id, producer_epoch))
    if state is ONGOING:
        return _prepare_v2(transaction, PREPARE_COMMIT if commit else PREPARE_ABORT, now_ms, new_producer_id)
    if state in PREPARED:
        if state is (PREPARE_COMMIT if commit else PREPARE_ABORT):
            raise _busy(transaction)
    elif is_retry:
        if state is (COMPLETE_COMMIT if commit else COMPLETE_ABORT):
            return None
    elif not commit:  # a transaction that never got a partition
        made = _prepare_v2(transaction, PREPARE_ABORT, now_ms, new_producer_id)
        made.start_ms = now_ms
        return made
    raise _illegal(transaction, commit=commit)


def fence(
    transaction: Transaction, now_ms: int, *, transaction_version: int, new_producer_id: int | None = None
) -> Transaction:
    """Abort an Ongoing transaction whose producer timed out or was replaced, with a higher epoch."""
    if transaction_version >= 2:
        return _prepare_v2(transaction, PREPARE_ABORT, now_ms, new_producer_id)
    made = transaction.next(PREPARE_ABORT, now_ms)
    made.producer_epoch = min(transaction.producer_epoch + 1, MAX_EPOCH)
    made.last_producer_epoch = NO_EPOCH
    made.next_producer_id = NO_PRODUCER
    made.client_version = 0
    return made


def complete(transaction: Transaction, now_ms: int) -> Transaction:
    """Every partition has its marker. When the epochs are used up, the next producer id takes over."""
    made = transaction.next(COMPLETE_COMMIT if transaction.state is PREPARE_COMMIT else COMPLETE_ABORT, now_ms)
    if transaction.client_version >= 2 and transaction.next_producer_id != NO_PRODUCER:
        made.producer_id = transaction.next_producer_id
        made.producer_epoch = 0
    made.next_producer_id = NO_PRODUCER
    made.clear()
    return made


def _prepare_v2(transaction: Transaction, state: State, now_ms: int, new_producer_id: int | None) -> Transaction:
    made = transaction.next(state, now_ms)
    if transaction.producer_epoch >= LAST_EPOCH:  # is_exhausted
        if new_producer_id is None:
            raise NeedsProducerIdError
        made.next_producer_id = new_producer_id
    else:
        made.next_producer_id = NO_PRODUCER
    made.last_producer_epoch = transaction.producer_epoch
    made.producer_epoch = min(transaction.producer_epoch + 1, MAX_EPOCH)
    made.client_version = 2
    return made


def _of_producer(transaction: Transaction | None, producer_id: int, producer_epoch: int) -> Transaction:
    if transaction is None or transaction.producer_id != producer_id:
        raise _unmapped(producer_id)
    if transaction.producer_epoch != producer_epoch:
        raise _fenced(transaction, (producer_id, producer_epoch))
    return transaction


def _unmapped(producer_id: int) -> KafkaError:
    return KafkaError(
        ErrorCode.INVALID_PRODUCER_ID_MAPPING, f"Producer id {producer_id} is not that of the transactional id"
    )


def _fenced(transaction: Transaction, given: tuple[int, int]) -> KafkaError:
    return KafkaError(
        ErrorCode.PRODUCER_FENCED,
        f"Producer {given[0]} with epoch {given[1]} was fenced: {transaction.transactional_id!r} has producer id "
        f"{transaction.producer_id} and epoch {transaction.producer_epoch}",
    )


def _busy(transaction: Transaction) -> KafkaError:
    return KafkaError(
        ErrorCode.CONCURRENT_TRANSACTIONS, f"{transaction.transactional_id!r} is in {STATE_NAMES[transaction.state]}"
    )


def _illegal(transaction: Transaction, *, commit: bool) -> KafkaError:
    return KafkaError(
        ErrorCode.INVALID_TXN_STATE,
        f"{transaction.transactional_id!r} is in {STATE_NAMES[transaction.state]} and cannot "
        f"{'commit' if commit else 'abort'}",
    )
