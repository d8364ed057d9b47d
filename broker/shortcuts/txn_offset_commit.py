"""The fast way of TxnOffsetCommit: the same producer, group and partitions as before, and other offsets.

What is learnt of a request is kept by its bytes up to the group; what lies between the producer's epoch and the first
partition has to be as it was. See txn_path.
"""

from __future__ import annotations

from struct import Struct
from typing import TYPE_CHECKING

from broker.cluster.topic_names import OFFSETS_TOPIC
from broker.coordinator.groups.classic.group import ClassicGroup
from broker.coordinator.offsets.commit_batch import CommitBatch
from broker.coordinator.offsets.provenance import provenance
from broker.coordinator.runtime import READY
from broker.coordinator.transactions.gate import ask
from broker.coordinator.transactions.transaction import Partitions
from broker.wire.request_bytes import (
    PRODUCER,
    REPLY_HEAD,
    SHORT_TEXT,
    header_end,
    keep,
    short_text,
    transactional_id_end,
)
from protocol.errors import ErrorCode
from protocol.record import encode_headers

if TYPE_CHECKING:
    from broker.broker import Broker
    from broker.cluster.metadata import Topic
    from broker.coordinator.groups.machine import GroupMachine
    from broker.coordinator.offsets.provenance import Headers
    from broker.coordinator.runtime import Shard
    from broker.coordinator.transactions.coordinator import TransactionCoordinator
    from broker.wire.connection import Connection


def settled_topic(broker: Broker, name: str) -> Topic | None:
    """A topic that is durable: the first replies of one that is not have to wait for it."""
    flush_state = broker.metadata_shard.flush_state
    if flush_state.durable_offset < flush_state.log.end_offset:
        return None
    return broker.metadata.topics.get(name)


def nobody_waits(durable: bool) -> None:
    """The step behind what is durable at once."""
    raise AssertionError("nobody waits here")


class OffsetsPlace:
    """The partitions that a transactional producer commits for one group."""

    __slots__ = (
        "batch",
        "generation_id",
        "group_id",
        "instance_id",
        "member_id",
        "middle",
        "n",
        "partitions",
        "place",
        "reply",
        "sender",
        "shard",
        "size",
        "topic",
        "transactional_id",
        "unpack",
    )
    batch: CommitBatch
    generation_id: int
    group_id: str
    instance_id: str | None
    member_id: str
    middle: bytes  # between the epoch and the first partition
    partitions: tuple[int, ...]
    place: Partitions
    reply: bytes
    sender: Headers
    shard: Shard
    topic: Topic
    transactional_id: str

    def __init__(self, n: int) -> None:
        self.n = n
        run = Struct(">" + "iqiBB" * n + "H")
        self.unpack = run.unpack_from
        self.size = run.size


class OffsetsPath:
    """Serves what it can."""

    def __init__(self, transactions: TransactionCoordinator) -> None:
        self._transactions = transactions
        self._broker = transactions.broker
        self._offsets: dict[bytes, OffsetsPlace] = {}

    def commit(
        self, connection: Connection, data: bytes, position: int, stop: int, version: int, correlation_id: int
    ) -> bool:
        """Serve one frame, if it is what it usually is."""
        at = transactional_id_end(data, position)
        at += max(data[at], 1)  # group
        head = data[position + 12 : at]
        known = self._offsets.get(head)
        run_at = at + 10
        if known is not None:
            run_at += len(known.middle)
        if known is None or stop != run_at + known.size or data[at + 10 : run_at] != known.middle:
            known = self._learn(head, data, at + 10, stop, connection)
            if known is None:
                return False
            run_at = at + 10 + len(known.middle)
        producer_id, epoch = PRODUCER.unpack_from(data, at)
        run = known.unpack(data, run_at)
        if run[-1] or any(run[4::5]) or max(run[3::5]) > 1 or run[0:-1:5] != known.partitions:
            return False
        broker, shard = self._broker, known.shard
        topic = known.topic
        if broker.metadata.topics.get(topic.name) is not topic or shard.state is not READY:
            return False
        adds = version >= 5
        if not adds and not broker.config.transaction_partition_verification_enable:
            return False
        now_ms = broker.now_ms
        if ask(self._transactions, now_ms, known.transactional_id, producer_id, epoch, known.place, adds, nobody_waits):
            return False
        machine: GroupMachine = shard.machine
        code = machine.check_txn_offset_commit(
            known.group_id, known.generation_id, known.member_id, known.instance_id, None
        )
        group = machine.groups.get(known.group_id)
        if code != ErrorCode.NONE or (group is not None and group.group_type != ClassicGroup.group_type):
            return False
        offsets, epochs = run[1::5], run[2::5]
        log = shard.log
        base = log.end_offset
        batch = known.batch.build_transactional(base, log.leader_epoch, now_ms, offsets, epochs, producer_id, epoch)
        log.append((batch,), base_offset=base, last_offset=base + known.n - 1, max_timestamp_ms=now_ms, size=len(batch))
        pending = machine.pending
        pending.put_run(producer_id, known.group_id, topic.name, known.partitions, offsets, epochs, now_ms, base)
        if known.sender:
            pending.sent_by(producer_id, known.group_id, known.sender)
        slot = connection.add(REPLY_HEAD.pack(4 + len(known.reply), correlation_id) + known.reply)
        flush_state = shard.flush_state
        if not flush_state.queued:
            broker.touch(flush_state)
        broker.durability.hold(flush_state, (connection, slot, data, position, stop))
        return True

    def _learn(self, head: bytes, data: bytes, start: int, stop: int, connection: Connection) -> OffsetsPlace | None:
        broker = self._broker
        client_id = head[2 : 2 + max(0, int.from_bytes(head[:2], "big", signed=True))].decode()
        transactional_id, at = short_text(head, header_end(head, 0))
        group_id, at = short_text(head, at)
        if not transactional_id or not group_id or at != len(head):
            return None
        generation_id = int.from_bytes(data[start : start + 4], "big", signed=True)
        member_id, at = short_text(data, start + 4)
        if member_id is None or at >= stop:
            return None
        has_instance = data[at] != 0
        instance_id, at = short_text(data, at)
        if (has_instance and instance_id is None) or at >= stop or data[at] != 2:
            return None
        name, at = short_text(data, at + 1)
        n = data[at] - 1
        if name is None or not 0 < n < SHORT_TEXT - 1:
            return None
        known = OffsetsPlace(n)
        topic = settled_topic(broker, name)
        if topic is None or at + 1 + known.size != stop:
            return None
        partitions = known.unpack(data, at + 1)[0:-1:5]
        if min(partitions) < 0 or max(partitions) >= len(topic.partitions) or len(set(partitions)) != n:
            return None
        known.transactional_id, known.group_id = transactional_id, group_id
        known.generation_id, known.member_id, known.instance_id = generation_id, member_id, instance_id
        known.topic, known.partitions = topic, partitions
        known.middle = data[start : at + 1]
        known.shard = broker.shard_of_group(group_id)
        known.place = {OFFSETS_TOPIC: (known.shard.machine.index,)}
        known.sender = ()
        if broker.config.offsets_provenance:
            known.sender = provenance(member_id, instance_id, generation_id, client_id)
        known.batch = CommitBatch(group_id, name, bytes(16), partitions, encode_headers(known.sender))
        raw = name.encode()
        answers = b"".join(index.to_bytes(4, "big") + b"\0\0\0" for index in partitions)
        # header tags, throttle time, one topic, its partitions without errors, tags
        known.reply = b"\0\0\0\0\0\2" + bytes((len(raw) + 1,)) + raw + bytes((n + 1,)) + answers + b"\0\0"
        keep(self._offsets, head, known)
        return known
