"""Ends one transaction, from Prepare* to Complete*: writes a marker to each partition, until all are durable."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Final, Protocol

from broker.coordinator.transactions.transaction import PREPARE_COMMIT, TopicIndex, Transaction
from protocol.errors import ErrorCode, KafkaError
from storage.files.errors import StorageError

if TYPE_CHECKING:
    from broker.coordinator.runtime import Shard
    from broker.turn.decision import Token
    from broker.turn.flush_state import FlushState
    from broker.turn.turn import Turn

logger: Final = logging.getLogger("momus.transactions")

RETRY_MS: Final = 50  # until a marker that could not be written is tried again


class Coordinator(Protocol):
    """The transaction coordinator that an ending belongs to."""

    turn: Turn

    def write_marker(
        self,
        topic: str,
        index: int,
        producer_id: int,
        producer_epoch: int,
        coordinator_epoch: int,
        *,
        commit: bool,
        transaction_version: int,
    ) -> FlushState | None:
        """Append a marker to a partition; None: there is no such partition."""

    def is_current(self, ending: Ending) -> bool:
        """Whether no later ending of the transaction has begun."""

    def ended(self, ending: Ending) -> None:
        """Every partition has its marker."""


class Ending:
    """The markers of one transaction that are not durable yet."""

    __slots__ = ("coordinator", "left", "lost", "result", "shard", "token", "transaction")

    def __init__(self, coordinator: Coordinator, shard: Shard, transaction: Transaction) -> None:
        self.coordinator = coordinator
        self.shard = shard
        self.transaction = transaction
        self.token: Token = None  # the parked EndTxn
        self.result: Transaction | None = None  # Complete*, when it was durable at once
        self.lost = False  # Prepare* or Complete* could not be written
        self.left: set[TopicIndex] = set()  # partitions without a durable marker

    def wait(self, token: Token) -> None:
        """A parked EndTxn is answered when the transaction is complete. None: there is none."""
        if token is not None:
            self.token = token
            self.shard.parked.add(token)

    def send(self, durable: bool) -> None:
        """Prepare* is durable: write the markers. Or it was thrown away: then the client was told to try again."""
        if not durable:
            self.lost = True
            return
        left = self.left
        for topic, indexes in self.transaction.partitions.items():
            for index in indexes:
                if not self._mark(topic, index):
                    left.add((topic, index))
        if not left:
            self.coordinator.ended(self)

    def _mark(self, topic: str, index: int) -> bool:
        """Append the marker of one partition. True: it is durable, or not needed.

        When the disk is full or the shard not loaded, it is tried again later.
        """
        coordinator, transaction = self.coordinator, self.transaction
        turn = coordinator.turn
        try:
            flush_state = coordinator.write_marker(
                topic,
                index,
                transaction.producer_id,
                transaction.producer_epoch,
                self.shard.log.epochs.latest,
                commit=transaction.state is PREPARE_COMMIT,
                transaction_version=transaction.client_version,
            )
        except KafkaError as error:
            if error.code in (ErrorCode.INVALID_PRODUCER_EPOCH, ErrorCode.TRANSACTION_COORDINATOR_FENCED):
                # the partition has a newer epoch: the transaction has already ended there
                logger.warning("%s-%d refused the marker of %r: %s", topic, index, transaction.key, error.message)
                return True
            self._later(topic, index)
            return False
        except (OSError, StorageError) as error:
            logger.error(
                "%s-%d: cannot append the marker of %r, will try again: %s", topic, index, transaction.key, error
            )
            self._later(topic, index)
            return False
        if flush_state is None:
            return True
        if turn.fsync:
            turn.touch(flush_state)
            flush_state.then(lambda durable: self.marked(topic, index, durable=durable))
            return False
        if turn.durability.write_now(flush_state):
            return True
        self._later(topic, index)
        return False

    def _later(self, topic: str, index: int) -> None:
        """Try again after a while."""
        turn = self.coordinator.turn
        turn.timers.at(turn.steady_ms + RETRY_MS, lambda due_ms, now_ms: self._again(topic, index))

    def _again(self, topic: str, index: int) -> None:
        if self.coordinator.is_current(self) and self._mark(topic, index):
            self.marked(topic, index, durable=True)

    def marked(self, topic: str, index: int, *, durable: bool) -> None:
        """The marker of one partition is durable, or was thrown away."""
        if not durable:
            self._later(topic, index)
            return
        self.left.discard((topic, index))
        if not self.left:
            self.coordinator.ended(self)
