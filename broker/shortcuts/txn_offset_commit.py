"""The shortcut of TxnOffsetCommit v3 to v5: the same producer, group and partitions as before, and other offsets.

The general handler is handlers/txn_offsets.py. The key of what is learnt is the request's bytes up to the group; the
bytes between the producer's epoch and the first partition must be the same as before.
"""

from __future__ import annotations

from struct import Struct
from typing import TYPE_CHECKING, Final

from broker.cluster.topic_names import OFFSETS_TOPIC
from broker.coordinator.groups.classic.group import ClassicGroup
from broker.coordinator.offsets.commit_batch import CommitBatch
from broker.coordinator.offsets.provenance import provenance
from broker.coordinator.runtime import READY
from broker.coordinator.transactions.gate import ask
from broker.coordinator.transactions.transaction import Partitions
from broker.shortcuts.head import BODY, INT32, PRODUCER, REPLY_HEAD, HeadReader, keep, transactional_id_end
from broker.shortcuts.transactions import REFUSED, TransactionShortcuts, no_step_follows
from broker.turn.executor import append
from protocol.api import ApiKey
from protocol.codec_support import uvarint
from protocol.errors import ErrorCode
from protocol.record import encode_headers

if TYPE_CHECKING:
    from broker.config.settings import BrokerConfig
    from broker.coordinator.group_shards import GroupShards
    from broker.coordinator.groups.machine import GroupMachine
    from broker.coordinator.offsets.provenance import Headers
    from broker.coordinator.runtime import Shard
    from broker.wire.connection import Connection

TXN_OFFSET_COMMIT: Final = int(ApiKey.TXN_OFFSET_COMMIT)
OLDEST: Final = 3
NEWEST: Final = 5
ADDS_SINCE: Final = 5  # the group's partition joins the transaction by itself (KIP-890)
MOST_PARTITIONS: Final = 126


class Place:
    """The partitions that a transactional producer commits for one group."""

    __slots__ = (
        "batch",
        "generation_id",
        "group_id",
        "group_partition",
        "instance_id",
        "member_id",
        "middle",
        "partitions",
        "reply",
        "rest_size",
        "sender",
        "shard",
        "topic_name",
        "transactional_id",
        "unpack",
    )
    batch: CommitBatch  # set with the rest below, once the topic is known
    group_partition: Partitions  # of `__consumer_offsets`
    reply: bytes
    sender: Headers
    shard: Shard

    def __init__(self, head: bytes, data: bytes, start: int, stop: int) -> None:
        """Read a request: `head` up to the group, `data` from `start` on after the producer's epoch.

        Errors: ValueError: it has another shape.
        """
        reader = HeadReader(head, 0, len(head))
        reader.client_id()
        reader.expect_zero()
        self.transactional_id = reader.name()
        self.group_id = reader.name()
        if reader.at != len(head) or not self.transactional_id or not self.group_id:
            raise ValueError("no transactional id or group, or a long one")
        reader = HeadReader(data, start, stop)
        self.generation_id: int = reader.take(INT32)[0]
        self.member_id = reader.name()
        self.instance_id = reader.text()
        if reader.count(1) != 1:
            raise ValueError("not one topic")
        name = reader.name()
        n = reader.count(MOST_PARTITIONS)
        run = Struct(">" + "iqiBB" * n + "H")  # partition, offset, leader epoch, no metadata, no tags; tags
        if not n or reader.at + run.size != stop:
            raise ValueError("no partitions, or more than one topic")
        self.unpack = run.unpack_from
        self.middle = data[start : reader.at]
        self.rest_size = len(self.middle) + run.size
        self.partitions: tuple[int, ...] = self.unpack(data, reader.at)[0:-1:5]
        if min(self.partitions) < 0:
            raise ValueError("a negative partition")
        raw = name.encode()
        answers = b"".join(index.to_bytes(4, "big") + b"\0\0\0" for index in self.partitions)
        # header tags, throttle time, one topic, its partitions without errors, tags
        self.reply = b"\0\0\0\0\0\2" + uvarint(len(raw) + 1) + raw + uvarint(n + 1) + answers + b"\0\0"
        self.topic_name = name


class TxnOffsetCommitShortcut:
    """Serves requests that it has learnt."""

    def __init__(self, shared: TransactionShortcuts, config: BrokerConfig, groups: GroupShards) -> None:
        self._shared = shared
        self._transactions = shared.transactions
        self._turn = shared.turn
        self._config = config
        self._groups = groups

    def serve(self, connection: Connection, data: bytes, position: int, stop: int, correlation_id: int) -> bytes | None:
        """Add the offsets to the transaction; see service.Shortcut."""
        version = data[position + 7]
        if data[position + 6] or not OLDEST <= version <= NEWEST or not self._shared.is_open(stop - position):
            return None
        try:
            return self._serve(connection, data, position, stop, version, correlation_id)
        except REFUSED:
            return None

    def _serve(
        self, connection: Connection, data: bytes, position: int, stop: int, version: int, correlation_id: int
    ) -> bytes | None:
        at = transactional_id_end(data, position)
        at += max(data[at], 1)  # group
        head = data[position + BODY : at]
        places = connection.learned.setdefault(TXN_OFFSET_COMMIT, {})
        place: Place | None = places.get(head)
        start = at + PRODUCER.size
        if place is None or not data.startswith(place.middle, start) or stop != start + place.rest_size:
            place = self._learn(head, data, start, stop)
            if place is None:
                return None
            keep(places, head, place)
        producer = PRODUCER.unpack_from(data, at)
        run = place.unpack(data, start + len(place.middle))
        if run[-1] or any(run[4::5]) or max(run[3::5]) > 1 or run[0:-1:5] != place.partitions:
            return None
        if not self._may_commit(place, producer, adds=version >= ADDS_SINCE):
            return None
        shard = place.shard
        batch = place.batch
        batch.offsets, batch.leader_epochs, batch.producer, batch.sender = run[1::5], run[2::5], producer, place.sender
        append(shard, batch, self._turn.now_ms, None)
        turn = self._turn
        turn.durability.hold_write(shard.flush_state, (connection, connection.next_slot, data, position, stop))
        return REPLY_HEAD.pack(4 + len(place.reply), correlation_id) + place.reply

    def _may_commit(self, place: Place, producer: tuple[int, int], *, adds: bool) -> bool:
        """Whether the transaction and the group accept the offsets. Errors: KafkaError: the transaction does not."""
        if not adds and not self._config.transaction_partition_verification_enable:
            return False
        name, now_ms = place.transactional_id, self._turn.now_ms
        if ask(self._transactions, now_ms, name, *producer, place.group_partition, adds, no_step_follows):
            return False
        machine: GroupMachine = place.shard.machine
        code = machine.check_txn_offset_commit(
            place.group_id, place.generation_id, place.member_id, place.instance_id, None
        )
        group = machine.groups.get(place.group_id)
        return code == ErrorCode.NONE and (group is None or group.group_type == ClassicGroup.group_type)

    def _learn(self, head: bytes, data: bytes, start: int, stop: int) -> Place | None:
        place = Place(head, data, start, stop)
        topic = self._shared.settled_topic(place.topic_name)
        partitions = place.partitions
        if topic is None or max(partitions) >= len(topic.partitions):
            return None
        if len(set(partitions)) != len(partitions):
            return None
        place.shard = self._groups.of(place.group_id)
        if place.shard.state is not READY:
            return None
        place.group_partition = {OFFSETS_TOPIC: (self._groups.index_of(place.group_id),)}
        place.sender = ()
        if self._config.offsets_provenance:
            client_id = HeadReader(head, 0, len(head)).client_id()
            place.sender = provenance(place.member_id, place.instance_id, place.generation_id, client_id)
        headers = encode_headers(place.sender)
        place.batch = CommitBatch(place.group_id, topic.name, topic.topic_id, partitions, headers)
        return place
