"""One transactional id: its states, how they follow each other, and its record in `__transaction_state`.

    Empty ----> Ongoing ----> PrepareCommit --> CompleteCommit
      ^  \\         \\                                |
      |   \\         `-----> PrepareAbort --> CompleteAbort
      |    `-----------------^                      |
      `--------- InitProducerId, or Ongoing again --'

Ongoing names its partitions before anything is written to them. Prepare* is the decision: from then on the coordinator
sends markers until every partition has one, across crashes. Complete* records that all have one. Aborting a transaction
that never began (transactions v2) goes from Empty or Complete* to PrepareAbort. A Transaction never changes: a step
makes the next one, which replaces the old one at replay.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import IntEnum
from struct import Struct
from typing import ClassVar, Final

from fastcrc.crc32 import iscsi as crc32c

from broker.base.facts import facts
from broker.coordinator.transactions.record_layout import (
    HEAD,
    MOST_KEPT,
    NO_PARTITIONS_WIRE,
    TIMES,
    group_head,
    layouts,
    new_layout,
    wire_partitions,
)
from broker.coordinator.transactions.record_layout import Partitions as Partitions
from protocol.codegen import codec
from protocol.messages.coordinator_records import PartitionsSchema, TransactionLogKey, TransactionLogValue
from protocol.record import varint


class State(IntEnum):
    """As the record holds it."""

    EMPTY = 0
    ONGOING = 1
    PREPARE_COMMIT = 2
    PREPARE_ABORT = 3
    COMPLETE_COMMIT = 4
    COMPLETE_ABORT = 5
    DEAD = 6
    PREPARE_EPOCH_FENCE = 7


EMPTY: Final = State.EMPTY
ONGOING: Final = State.ONGOING
PREPARE_COMMIT: Final = State.PREPARE_COMMIT
PREPARE_ABORT: Final = State.PREPARE_ABORT
COMPLETE_COMMIT: Final = State.COMPLETE_COMMIT
COMPLETE_ABORT: Final = State.COMPLETE_ABORT
PREPARED: Final = frozenset({PREPARE_COMMIT, PREPARE_ABORT})
AT_REST: Final = frozenset({EMPTY, COMPLETE_COMMIT, COMPLETE_ABORT})  # may expire, may begin anew

STATE_NAMES: Final = {
    State.EMPTY: "Empty",
    State.ONGOING: "Ongoing",
    State.PREPARE_COMMIT: "PrepareCommit",
    State.PREPARE_ABORT: "PrepareAbort",
    State.COMPLETE_COMMIT: "CompleteCommit",
    State.COMPLETE_ABORT: "CompleteAbort",
    State.DEAD: "Dead",
    State.PREPARE_EPOCH_FENCE: "PrepareEpochFence",
}

NO_PRODUCER: Final = -1
NO_EPOCH: Final = -1
MAX_EPOCH: Final = 2**15 - 1
LAST_EPOCH: Final = MAX_EPOCH - 1  # the highest that a client gets: one more must be left to fence it
NEVER_MS: Final = 2**31 - 1  # a timeout that means there is none (two-phase commit)

_SHORT: Final = Struct(">h")
# a batch with one record: the part up to the CRC, and the part that the CRC covers
_BATCH_HEAD: Final = Struct(">qiibI")
_BATCH_BODY: Final = Struct(">hiqqqhii")
_MAGIC: Final = 2
_UNCOUNTED_BYTES: Final = 9  # of the length: leader epoch, magic and CRC
# two or three tags behind the times: previous and next producer id, the client's transaction version
_PREVIOUS: Final = Struct(">BBBq")
_PREVIOUS_CLIENT: Final = Struct(">BBBqBBh")

TopicIndex = tuple[str, int]
NO_PARTITIONS: Final[Partitions] = {}

# by the ids of a transaction's partitions and of those added: both, their sum, and the sum's wire form
_sums: dict[tuple[int, int], tuple[Partitions, Partitions, Partitions, bytes]] = {}


class Transaction:
    """The state of one transactional id. Times are Unix milliseconds."""

    __slots__ = (
        "_named",
        "_wire",
        "client_version",
        "key",
        "last_producer_epoch",
        "next_producer_id",
        "partitions",
        "previous_producer_id",
        "producer_epoch",
        "producer_id",
        "start_ms",
        "state",
        "timeout_ms",
        "transactional_id",
        "updated_ms",
    )

    VOLATILE: ClassVar[Mapping[str, str]] = {
        "_wire": "a cache; facts() compares what it holds, or would hold",
        "last_producer_epoch": "in no record: Kafka loses it with the process, and a reloaded shard does too",
    }

    def __init__(
        self,
        transactional_id: str,
        producer_id: int,
        timeout_ms: int,
        key: bytes = b"",
        named: bytes = b"",
        previous_producer_id: int = NO_PRODUCER,
        next_producer_id: int = NO_PRODUCER,
        producer_epoch: int = NO_EPOCH,
        last_producer_epoch: int = NO_EPOCH,
        state: State = EMPTY,
        partitions: Partitions = NO_PARTITIONS,
        start_ms: int = -1,
        updated_ms: int = -1,
        client_version: int = 0,
        wire: bytes | None = None,
    ) -> None:
        self.transactional_id = transactional_id
        self.key = key or transaction_key(transactional_id)
        self._named = named or b"\0\0\0" + varint(len(self.key)) + self.key  # a record up to its value
        self.producer_id = producer_id
        self.previous_producer_id = previous_producer_id  # the one in the state before
        self.next_producer_id = next_producer_id  # takes over when the one that exhausted its epochs has completed
        self.producer_epoch = producer_epoch
        self.last_producer_epoch = last_producer_epoch
        self.timeout_ms = timeout_ms
        self.state = state
        self.partitions = partitions
        self.start_ms = start_ms
        self.updated_ms = updated_ms
        self.client_version = client_version  # 2: the client takes a new epoch with every transaction
        self._wire = wire  # the partitions as encoded in version 1 of the record

    def next(self, state: State, now_ms: int) -> Transaction:
        """This transaction in its next state, otherwise the same; the caller fills it in."""
        return Transaction(
            self.transactional_id,
            self.producer_id,
            self.timeout_ms,
            self.key,
            self._named,
            self.producer_id,
            self.next_producer_id,
            self.producer_epoch,
            self.last_producer_epoch,
            state,
            self.partitions,
            self.start_ms,
            now_ms,
            self.client_version,
            self._wire,
        )

    def has(self, partitions: Partitions) -> bool:
        """Whether all these are part of the transaction."""
        mine = self.partitions
        for topic, indexes in partitions.items():
            known = mine.get(topic)
            if known is None:
                return False
            for index in indexes:
                if index not in known:
                    return False
        return True

    def add(self, partitions: Partitions) -> None:
        """Add partitions. Only for a transaction that `next` has just made."""
        before = self.partitions
        found = _sums.get((id(before), id(partitions)))
        if found is None:
            mine = dict(before)
            for topic, indexes in partitions.items():
                known = mine.get(topic, ())
                mine[topic] = known + tuple(dict.fromkeys([index for index in indexes if index not in known]))
            if len(_sums) >= MOST_KEPT:
                _sums.clear()
            found = _sums[id(before), id(partitions)] = before, partitions, mine, wire_partitions(mine)
        self.partitions, self._wire = found[2], found[3]

    def clear(self) -> None:
        """Remove all partitions. Only for a transaction that `next` has just made."""
        self.partitions = NO_PARTITIONS
        self._wire = b"\x00" if self.state is EMPTY else NO_PARTITIONS_WIRE

    @property
    def deadline_ms(self) -> int | None:
        """When it has timed out, once it has begun. None: never."""
        return self.start_ms + self.timeout_ms + 1 if self.timeout_ms != NEVER_MS else None

    @property
    def is_exhausted(self) -> bool:
        """Whether the producer id has no epoch left for a client."""
        return self.producer_epoch >= LAST_EPOCH

    @property
    def wire(self) -> bytes:
        """The partitions as encoded in version 1 of the record."""
        wire = self._wire
        if wire is None:
            self._wire = wire = self._encode_partitions()
        return wire

    def _encode_partitions(self) -> bytes:
        if self.state is EMPTY:
            return b"\x00"
        return wire_partitions(self.partitions) if self.partitions else NO_PARTITIONS_WIRE

    def encode(self, version: int) -> bytes:
        """The value of its record in version 0, or 1 (flexible, with the fields of transactions v2).

        Source: Kafka's TransactionLog.valueToBytes; partitions are null in Empty.
        """
        if version == 0:
            return _SHORT.pack(0) + codec(TransactionLogValue, 0).encode(self._message())
        head = HEAD.pack(1, self.producer_id, self.producer_epoch, self.timeout_ms, self.state)
        wire = self.wire
        times = TIMES.pack(self.updated_ms, self.start_ms)
        previous, client = self.previous_producer_id, self.client_version
        if previous != NO_PRODUCER and self.next_producer_id == NO_PRODUCER:
            if client:
                return head + wire + times + _PREVIOUS_CLIENT.pack(2, 0, 8, previous, 2, 2, client)
            return head + wire + times + _PREVIOUS.pack(1, 0, 8, previous)
        return _SHORT.pack(1) + codec(TransactionLogValue, 1).encode(self._message())

    def batch(
        self,
        version: int,
        base_offset: int,
        leader_epoch: int,
        now_ms: int,
        groups: Sequence[tuple[str, bytes, bytes]] = (),
    ) -> bytes:
        """The batch of its record and those of groups (id, key, value), as protocol.record_batch would build it."""
        count = 1 + len(groups) if groups else 1
        if version and self.previous_producer_id != NO_PRODUCER and self.next_producer_id == NO_PRODUCER:
            # the usual record, with a layout that is made once
            named, wire, client = self._named, self._wire, self.client_version
            if wire is None:
                wire = self.wire
            layout = layouts.get((len(named), len(wire), client)) or new_layout(len(named), len(wire), client)
            pack, record_size, value_size, tags_head, tags_end = layout
            body = pack(
                0,
                count - 1,
                now_ms,
                now_ms,
                -1,
                -1,
                -1,
                count,
                record_size,
                named,
                value_size,
                1,
                self.producer_id,
                self.producer_epoch,
                self.timeout_ms,
                self.state,
                wire,
                self.updated_ms,
                self.start_ms,
                tags_head,
                self.previous_producer_id,
                tags_end,
            )
        else:
            value = self.encode(version)
            record = self._named + varint(len(value)) + value + b"\0"
            body = _BATCH_BODY.pack(0, count - 1, now_ms, now_ms, -1, -1, -1, count) + varint(len(record)) + record
        if groups:
            for delta, (_, key, value) in enumerate(groups, 1):
                body += group_head(delta, key, len(value)) + value + b"\0"
        head = _BATCH_HEAD.pack(base_offset, len(body) + _UNCOUNTED_BYTES, leader_epoch, _MAGIC, crc32c(body))
        return head + body

    def _message(self) -> TransactionLogValue:
        return TransactionLogValue(
            producer_id=self.producer_id,
            previous_producer_id=self.previous_producer_id,
            next_producer_id=self.next_producer_id,
            producer_epoch=self.producer_epoch,
            transaction_timeout_ms=self.timeout_ms,
            transaction_status=self.state,
            transaction_partitions=None
            if self.state is EMPTY
            else [PartitionsSchema(topic=t, partition_ids=list(p)) for t, p in self.partitions.items()],
            transaction_last_update_timestamp_ms=self.updated_ms,
            transaction_start_timestamp_ms=self.start_ms,
            client_transaction_version=self.client_version,
        )

    def facts(self) -> dict[str, object]:
        """What replaying its record must reproduce: all but what is VOLATILE, and the encoded partitions."""
        return {**facts(self), "wire": self._encode_partitions() if self._wire is None else self._wire}


def transaction_key(transactional_id: str) -> bytes:
    """The key of its record: type 0."""
    return b"\x00\x00" + codec(TransactionLogKey, 0).encode(TransactionLogKey(transactional_id=transactional_id))


def decode_transaction(key: bytes, value: bytes) -> Transaction:
    """The transaction of a record of `__transaction_state`."""
    name = codec(TransactionLogKey, 0).decode(key, 2)[0].transactional_id
    record, _ = codec(TransactionLogValue, _SHORT.unpack_from(value)[0]).decode(value, 2)
    made = Transaction(name, record.producer_id, record.transaction_timeout_ms, key)
    made.previous_producer_id = record.previous_producer_id
    made.next_producer_id = record.next_producer_id
    made.producer_epoch = record.producer_epoch
    made.state = State(record.transaction_status)
    if record.transaction_partitions:
        made.partitions = {each.topic: tuple(each.partition_ids) for each in record.transaction_partitions}
    made.start_ms = record.transaction_start_timestamp_ms
    made.updated_ms = record.transaction_last_update_timestamp_ms
    made.client_version = record.client_transaction_version
    return made
