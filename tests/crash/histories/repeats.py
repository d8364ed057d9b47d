"""A raw idempotent producer that sends batches again: those without an answer, and three of ten of the others."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from core_requests import produce_request

from histories.places import PARTITIONS, TOPIC
from protocol.errors import ErrorCode
from protocol.messages.transactions import InitProducerIdRequest

if TYPE_CHECKING:
    from wire_peer import Peer

    from histories.workers import Worker


class Repeating:
    """An idempotent producer of one batch at a time. `unanswered`: operation, partition and value of that batch."""

    def __init__(self, producer_id: int, epoch: int) -> None:
        self.id, self.epoch = producer_id, epoch
        self.sequences = [0] * PARTITIONS
        self.unanswered: tuple[int, int, str] | None = None

    def request(self, partition: int, value: str) -> Any:
        own = {"producer_id": self.id, "producer_epoch": self.epoch, "base_sequence": self.sequences[partition]}
        return produce_request(TOPIC, partition, value.encode(), **own)


def raw_repeats(worker: Worker, peer: Peer) -> None:
    """One batch, three times of ten sent again though it was answered; it has its first offset, or none is told."""
    held = vars(worker)
    producer: Repeating | None = held.get("repeating")
    if producer is None:
        made = peer.call(InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=60_000), 4)
        if made.error_code:
            time.sleep(0.02)
            return
        producer = held["repeating"] = Repeating(made.producer_id, made.producer_epoch)
    if producer.unanswered is None:
        partition = worker.rng.randrange(PARTITIONS)
        op, value = worker.send(f"{worker.name}-{producer.id}", partition)
        producer.unanswered = op, partition, value
    op, partition, value = producer.unanswered
    for _ in range(2 if worker.rng.random() < 0.3 else 1):
        answer = peer.call(producer.request(partition, value), 9).responses[0].partition_responses[0]
        if answer.error_code == ErrorCode.NONE:
            worker.journal.end(op, True, offset=answer.base_offset)
        elif answer.error_code != ErrorCode.DUPLICATE_SEQUENCE_NUMBER:
            time.sleep(0.02)  # a transaction's time-out ends no idempotent producer: it is asked again
            return
    producer.sequences[partition] += 1
    producer.unanswered = None
