"""The shortcut of OffsetCommit v8 to v10: one topic, no metadata, from a client that commits the same partitions again.

The general handler is handlers/offsets.py. The head of a commit (client, group, generation, member, topic, partition
count) is the same each time, so its consequences are learnt: topic, shard, the constant bytes of the record batch and
of the reply. Coordinator, group and fencing are checked for every request.
"""

from __future__ import annotations

from struct import Struct
from typing import TYPE_CHECKING, Any, Final

from broker.coordinator.groups.classic.commit_checks import check_offset_commit, on_offset_commit_accepted
from broker.coordinator.groups.classic.group import ClassicGroup
from broker.coordinator.offsets.commit_batch import CommitBatch
from broker.coordinator.offsets.commit_run import commit_run
from broker.coordinator.offsets.provenance import provenance
from broker.coordinator.runtime import READY
from broker.shortcuts.head import BODY, INT32, REPLY_HEAD, HeadReader
from protocol.api import ApiKey
from protocol.codec_support import uvarint
from protocol.errors import ErrorCode
from protocol.record import encode_headers
from storage.files.errors import StorageError

if TYPE_CHECKING:
    from broker.cluster.metadata import Topic
    from broker.config.settings import BrokerConfig
    from broker.coordinator.group_shards import GroupShards
    from broker.coordinator.runtime import Shard
    from broker.turn.turn import Turn
    from broker.wire.connection import Connection

OFFSET_COMMIT: Final = int(ApiKey.OFFSET_COMMIT)
OLDEST: Final = 8
NEWEST: Final = 10
TOPIC_IDS_SINCE: Final = 10
HEADS_A_CONNECTION: Final = 64
HEAD_BYTES: Final = 2048
MOST_PARTITIONS: Final = 2000


class Head:
    """The fields of a commit up to its run of partitions, and what is derived from them."""

    __slots__ = (
        "api_version",
        "batch",
        "client_id",
        "generation",
        "group_id",
        "instance_id",
        "member_id",
        "n",
        "partitions",
        "reply",
        "reply_size",
        "run_size",
        "shard",
        "topic",
        "topic_id",
        "topic_name",
        "unpack",
    )
    batch: CommitBatch
    shard: Shard
    topic: Topic

    def __init__(self, reader: HeadReader, api_version: int) -> None:
        """Read a head. Errors: ValueError: it has another shape."""
        self.api_version = api_version
        self.client_id = reader.client_id()
        reader.expect_zero()
        self.group_id = reader.name()
        self.generation: int = reader.take(INT32)[0]
        self.member_id = reader.name()
        self.instance_id = reader.text()
        if reader.count(1) != 1:
            raise ValueError("not one topic")
        self.topic_id = reader.piece(16) if api_version >= TOPIC_IDS_SINCE else None
        self.topic_name = reader.name() if self.topic_id is None else None
        self.n = n = reader.count(MOST_PARTITIONS)
        if not n or not self.group_id:
            raise ValueError("nothing to commit, or no group")
        run = Struct(">" + "iqiBB" * n + "H")  # partition, offset, leader epoch, no metadata, no tags; tags
        self.unpack = run.unpack_from
        self.run_size = run.size
        self.partitions: tuple[int, ...] = ()
        self.reply = b""
        self.reply_size = 0


class OffsetCommitShortcut:
    """Serves commits whose head it has learnt."""

    def __init__(self, turn: Turn, config: BrokerConfig, groups: GroupShards, metadata_shard: Shard) -> None:
        self._turn = turn
        self._config = config
        self._groups = groups
        self._metadata_shard = metadata_shard

    def serve(self, connection: Connection, data: bytes, position: int, stop: int, correlation_id: int) -> bytes | None:
        """Carry out a commit; see service.Shortcut."""
        start = position + BODY
        heads = connection.learned.get(OFFSET_COMMIT)
        head: Head | None = None
        if heads is not None:
            length = connection.head_lengths.get(stop - start, 0)
            head = heads.get(data[start : start + length])
        if head is None or head.api_version != data[position + 7] or data[position + 6]:
            head = self._learn(connection, data, position, stop)
            if head is None:
                return None
            length = connection.head_lengths[stop - start]
        run = head.unpack(data, start + length)
        partitions: tuple[int, ...]
        offsets: tuple[int, ...]
        epochs: tuple[int, ...]
        if head.n == 1:
            partition, offset, epoch, metadata, tags, end = run
            if metadata > 1 or tags or end:
                return None
            partitions, offsets, epochs = (partition,), (offset,), (epoch,)
        else:
            partitions, offsets, epochs = run[0:-1:5], run[1::5], run[2::5]
            if run[-1] or any(run[4::5]) or max(run[3::5]) > 1:
                return None
        if partitions != head.partitions and not self._follow(head, partitions):
            return None
        shard = head.shard
        if shard.is_short():
            return None
        group = shard.machine.groups.get(head.group_id)
        if group is None:
            if head.generation >= 0:
                return None
        elif not self._may_commit(shard, group, head):
            return None
        try:
            commit_run(shard, head.batch, offsets, epochs, self._turn.now_ms)
        except StorageError:  # the general handler answers with the error
            return None
        flush_state = shard.flush_state
        if not flush_state.queued:
            self._turn.durability.touch(flush_state)
        if self._turn.fsync:
            connection.barred = True
        flush_state.held.append((connection, connection.base + len(connection.out), data, position, stop))
        return REPLY_HEAD.pack(head.reply_size, correlation_id) + head.reply

    def _learn(self, connection: Connection, data: bytes, position: int, stop: int) -> Head | None:
        api_version = data[position + 7]
        if data[position + 6] or not OLDEST <= api_version <= NEWEST:
            return None
        start = position + BODY
        reader = HeadReader(data, start, min(stop, start + HEAD_BYTES))
        try:
            head = Head(reader, api_version)
        except ValueError:
            return None
        if reader.at + head.run_size != stop:
            return None
        heads = connection.learned.setdefault(OFFSET_COMMIT, {})
        if len(heads) >= HEADS_A_CONNECTION:
            heads.clear()
            connection.head_lengths.clear()
        metadata = self._metadata_shard.machine
        topic = (
            metadata.topics.get(head.topic_name) if head.topic_id is None else metadata.topics_by_id.get(head.topic_id)
        )
        # a topic that is not durable may still be lost: the general handler holds its replies until it is
        is_settled = self._turn.durability.is_settled(self._metadata_shard.flush_state)
        if topic is None or not is_settled or not self._groups.any_broker:
            return None
        head.topic, head.shard = topic, self._groups.of(head.group_id)
        if head.shard.state is not READY:
            return None
        connection.head_lengths[stop - start] = reader.at - start  # commits of one size have heads of one size
        heads[data[start : reader.at]] = head
        return head

    def _follow(self, head: Head, partitions: tuple[int, ...]) -> bool:
        """Derive what depends on the partitions. False: one does not exist or is named twice, or they do not fit into
        one batch."""
        topic, n = head.topic, len(partitions)
        if min(partitions) < 0 or max(partitions) >= len(topic.partitions) or len(set(partitions)) != n:
            return False
        headers = b"\x00"
        if self._config.offsets_provenance:
            headers = encode_headers(provenance(head.member_id, head.instance_id, head.generation, head.client_id))
        batch = CommitBatch(head.group_id, topic.name, topic.topic_id, partitions, headers)
        if batch.size > head.shard.log.config.max_message_bytes:
            return False
        head.partitions, head.batch = partitions, batch
        name = topic.name.encode()
        label = uvarint(len(name) + 1) + name if head.topic_id is None else topic.topic_id
        answers = b"".join(p.to_bytes(4, "big") + b"\x00\x00\x00" for p in partitions)
        # header tags, throttle time, one topic, its partitions without errors, tags
        head.reply = b"\x00" + bytes(4) + b"\x02" + label + uvarint(n + 1) + answers + b"\x00\x00"
        head.reply_size = 4 + len(head.reply)
        return True

    def _may_commit(self, shard: Shard, group: Any, head: Head) -> bool:
        """Whether the group accepts the commit. If so, the session of the member is extended."""
        now_ms = self._turn.now_ms
        if group.group_type == ClassicGroup.group_type:
            code = check_offset_commit(group, head.api_version, head.generation, head.member_id, head.instance_id)
            if code != ErrorCode.NONE:
                return False
            for name, deadline_ms in on_offset_commit_accepted(group, head.member_id, now_ms):
                shard.deadlines.set(name, deadline_ms)
            return True
        topic = head.topic
        code = shard.machine.check_offset_commit(
            head.group_id,
            head.api_version,
            head.generation,
            head.member_id,
            head.instance_id,
            lambda: [(topic.name, topic.topic_id, index) for index in head.partitions],
        )
        return bool(code == ErrorCode.NONE)
