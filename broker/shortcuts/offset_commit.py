"""The fast way of OffsetCommit and OffsetFetch: clients repeat themselves, so what was learnt of a request is kept.

Both are shortcuts of the general handlers in handlers/offsets.py and answer None whenever a request is in any way out
of the ordinary: then the general handler decides. Nothing is left out on the way: topic, partition, coordinator and
group are checked for every request.
"""

from __future__ import annotations

from struct import Struct
from typing import TYPE_CHECKING, Any

from broker.coordinator.offsets.commit_batch import CommitBatch
from broker.coordinator.offsets.provenance import provenance
from broker.coordinator.runtime import READY
from broker.wire.request_bytes import REPLY_HEAD
from protocol.codec_support import uvarint
from protocol.errors import ErrorCode
from protocol.record import encode_headers
from storage.errors import StorageError

if TYPE_CHECKING:
    from broker.broker import Broker
    from broker.wire.connection import Connection

INT32 = Struct(">i")
HEADS_A_CONNECTION = 64
HEAD_BYTES = 2048
MOST_PARTITIONS = 2000
ANSWERS_A_CONNECTION = 16
ANSWER_BYTES = 8192


class Head:
    """What the first bytes of a commit say, up to its run of partitions, and what follows from it."""

    __slots__ = (
        "batch",
        "client_id",
        "columns",
        "dense",
        "generation",
        "group_id",
        "highest",
        "instance",
        "machine",
        "member_id",
        "n",
        "partitions",
        "removals",
        "reply",
        "reply_size",
        "shard",
        "size",
        "topic",
        "topic_id",
        "topic_name",
        "unpack",
        "version",
    )
    group_id: str
    member_id: str
    instance: str | None
    client_id: str
    generation: int
    topic_name: str | None
    topic_id: bytes | None

    def __init__(self, version: int, n: int) -> None:
        self.version = version
        self.n = n
        run = Struct(">" + "iqiBB" * n + "H")
        self.unpack = run.unpack_from
        self.size = run.size
        self.partitions: tuple[int, ...] = ()
        self.dense = False
        self.highest = -1
        self.shard: Any = None
        self.machine: Any = None
        self.columns: Any = None
        self.removals = -1
        self.topic: Any = None
        self.batch: CommitBatch | None = None
        self.reply = b""
        self.reply_size = 0


def _uvarint(data: bytes, at: int, stop: int) -> tuple[int, int]:
    """One unsigned varint of at most three bytes; -1 when it is longer or cut off."""
    value = shift = 0
    for i in range(at, min(at + 3, stop)):
        value |= (data[i] & 0x7F) << shift
        if data[i] < 0x80:
            return value, i + 1
        shift += 7
    return -1, stop


def _text(data: bytes, at: int, stop: int) -> tuple[str | None, int]:
    """A compact string; its end is -1 when it does not fit or is no UTF-8."""
    size, at = _uvarint(data, at, stop)
    if size == 0:
        return None, at
    end = at + size - 1
    if size < 0 or end > stop:
        return None, -1
    try:
        return data[at:end].decode(), end
    except UnicodeDecodeError:
        return None, -1


def parse_head(data: bytes, position: int, stop: int, version: int) -> tuple[Head, int] | None:
    """Read the head of a flexible OffsetCommit frame of one topic; None when it is of another shape."""
    at = position + 14
    client_end = at + max(int.from_bytes(data[at - 2 : at], "big", signed=True), 0)
    try:
        client_id = data[at:client_end].decode()
    except UnicodeDecodeError:
        return None
    at = client_end
    if at >= stop or data[at] != 0:  # tags in the header
        return None
    group_id, at = _text(data, at + 1, stop)
    if group_id is None or at < 0 or at + 4 > stop:
        return None
    generation = INT32.unpack_from(data, at)[0]
    member_id, at = _text(data, at + 4, stop)
    if member_id is None or at < 0:
        return None
    instance, at = _text(data, at, stop)
    if at < 0 or at >= stop or data[at] != 2:  # one topic
        return None
    topic_name: str | None = None
    topic_id: bytes | None = None
    if version >= 10:
        topic_id, at = data[at + 1 : at + 17], at + 17
    else:
        topic_name, at = _text(data, at + 1, stop)
        if topic_name is None or at < 0:
            return None
    n, at = _uvarint(data, at, stop)
    n -= 1
    if not 0 < n <= MOST_PARTITIONS or at + 18 * n + 2 != stop or at - position - 12 > HEAD_BYTES:
        return None
    head = Head(version, n)
    head.group_id, head.member_id, head.instance, head.generation = group_id, member_id, instance, generation
    head.topic_name, head.topic_id, head.client_id = topic_name, topic_id, client_id
    return head, at - position - 12


class CommitPath:
    """The shortcut of OffsetCommit v8 to v10."""

    def __init__(self, broker: Broker) -> None:
        self._broker = broker

    def commit(
        self, connection: Connection, data: bytes, position: int, stop: int, correlation_id: int
    ) -> bytes | None:
        """Carry out a commit and answer its reply, or None to leave it to the general handler."""
        heads = connection.commit_heads
        if heads is None:
            heads = connection.commit_heads = {}
        version = data[position + 7]
        start = position + 12
        length = connection.head_lengths.get(stop - start, 0)
        head: Head | None = heads.get(data[start : start + length])
        if head is None or head.version != version or head.size != stop - start - length or data[position + 6]:
            head = self._learn(connection, data, position, stop, version)
            if head is None:
                return None
            length = connection.head_lengths[stop - start]
        broker, n = self._broker, head.n
        run = head.unpack(data, start + length)
        if n == 1:
            partition, offset, epoch, metadata, tags, end = run
            if metadata > 1 or tags or end:
                return None
            partitions: tuple[int, ...] = (partition,)
            offsets: tuple[int, ...] = (offset,)
            epochs: tuple[int, ...] = (epoch,)
        else:
            partitions, offsets, epochs = run[0:-1:5], run[1::5], run[2::5]
            if run[-1] or any(run[4::5]) or max(run[3::5]) > 1:
                return None
        topics = broker.metadata.topics
        if (
            topics.get(head.topic_name) is not head.topic  # type: ignore[arg-type]  # unknown yet with topic ids
            or partitions != head.partitions
            or head.highest >= len(head.topic.partitions)  # type: ignore[union-attr]
        ) and not self._meet(head, partitions):
            return None
        shard = head.shard
        if shard.state is not READY or not broker.offsets_anywhere:
            return None
        machine = shard.machine
        if head.machine is not machine or head.removals != machine.offsets.removals:
            head.machine = machine
            head.columns = None
            head.removals = machine.offsets.removals
        group = machine.groups.get(head.group_id)
        if group is None:
            if head.generation >= 0:
                return None
        elif not self._fence(shard, group, head):
            return None
        now_ms = broker.now_ms
        log = shard.log
        base = log.end_offset
        batch = head.batch.build(base, log.leader_epoch, now_ms, offsets, epochs)  # type: ignore[union-attr]
        try:
            log.append((batch,), base_offset=base, last_offset=base + n - 1, max_timestamp_ms=now_ms, size=len(batch))
        except StorageError:  # the general handler has the words for it
            return None
        columns = head.columns
        if columns is None:
            columns = head.columns = machine.offsets.topic_or_new(head.group_id, head.topic_name)
        columns.put_run(partitions, offsets, epochs, now_ms, head.topic.topic_id, dense=head.dense)
        flush_state = shard.flush_state
        if not flush_state.queued:
            broker.durability.touch(flush_state)
        if broker.fsync:
            connection.barred = True
        flush_state.held.append((connection, connection.base + len(connection.out), data, position, stop))
        return REPLY_HEAD.pack(head.reply_size, correlation_id) + head.reply

    def _learn(self, connection: Connection, data: bytes, position: int, stop: int, version: int) -> Head | None:
        if not 8 <= version <= 10 or data[position + 6]:
            return None
        found = parse_head(data, position, stop, version)
        if found is None:
            return None
        head, length = found
        heads = connection.commit_heads
        assert heads is not None
        if len(heads) >= HEADS_A_CONNECTION:
            heads.clear()
            connection.head_lengths.clear()
        connection.head_lengths[stop - position - 12] = length  # commits of one size have heads of one size
        if not head.group_id or not self._broker.offsets_anywhere:
            return None
        head.shard = self._broker.shard_of_group(head.group_id)
        heads[data[position + 12 : position + 12 + length]] = head
        return head

    def _meet(self, head: Head, partitions: tuple[int, ...]) -> bool:
        """Check topic and partitions, and make what depends on them. False: something is not there."""
        metadata = self._broker.metadata
        topic = (
            metadata.topics.get(head.topic_name) if head.version < 10 else metadata.topics_by_id.get(head.topic_id)  # type: ignore[arg-type]
        )
        n = len(partitions)
        if not self._broker.durability.is_settled(self._broker.metadata_shard.flush_state):
            return False  # a topic that is not durable yet may never be: the reply waits for it too
        if topic is None or min(partitions) < 0 or max(partitions) >= len(topic.partitions):
            return False
        if len(set(partitions)) != n:
            return False
        headers = b"\x00"
        if self._broker.config.offsets_provenance:
            headers = encode_headers(provenance(head.member_id, head.instance, head.generation, head.client_id))
        batch = CommitBatch(head.group_id, topic.name, topic.topic_id, partitions, headers)
        if batch.size > self._broker.config.message_max_bytes:
            return False  # more than one batch
        # from here on the head is taken to have been met: nothing may be left undone
        head.topic, head.topic_name, head.partitions = topic, topic.name, partitions
        head.highest = max(partitions)
        head.dense = partitions == tuple(range(partitions[0], partitions[0] + n))
        head.batch, head.columns = batch, None
        name = topic.name.encode()
        label = topic.topic_id if head.version >= 10 else uvarint(len(name) + 1) + name
        answers = b"".join(p.to_bytes(4, "big") + b"\x00\x00\x00" for p in partitions)
        # header tags, throttle time, one topic, its partitions without errors, tags
        head.reply = b"\x00" + bytes(4) + b"\x02" + label + uvarint(n + 1) + answers + b"\x00\x00"
        head.reply_size = 4 + len(head.reply)
        return True

    def _fence(self, shard: Any, group: Any, head: Head) -> bool:
        """Ask the group whether this member may commit; its session is refreshed by it."""
        check, accepted = self._broker.check_offset_commit, self._broker.offset_commit_accepted
        if group.group_type != "classic":
            topic = head.topic
            code = shard.machine.check_offset_commit(
                head.group_id,
                head.version,
                head.generation,
                head.member_id,
                head.instance,
                lambda: [(topic.name, topic.topic_id, index) for index in head.partitions],
            )
            return bool(code == ErrorCode.NONE)
        if check(group, head.version, head.generation, head.member_id, head.instance) != ErrorCode.NONE:
            return False
        for name, deadline_ms in accepted(group, head.member_id, self._broker.now_ms):
            shard.set_timer(name, deadline_ms)
        return True


class Answer:
    """An OffsetFetch reply, and the columns it was made from: it holds until one of them changes."""

    __slots__ = ("machine", "reply", "reply_size", "shape", "shard", "sources", "version")

    def __init__(self, version: int, shard: Any, sources: list[tuple[Any, object]], reply: bytes) -> None:
        self.version = version
        self.shard = shard
        self.machine = shard.machine
        self.shape = self.machine.offsets.shape
        self.sources = sources
        self.reply = reply
        self.reply_size = 4 + len(reply)


class FetchPath:
    """The shortcut of OffsetFetch: a reply is kept per connection until an offset in it moves."""

    def __init__(self, broker: Broker) -> None:
        self._broker = broker

    def fetch(self, connection: Connection, data: bytes, position: int, stop: int, correlation_id: int) -> bytes | None:
        """The kept reply to the same question, or None to leave it to the general handler."""
        answers = connection.fetch_answers
        if answers is None or stop - position > ANSWER_BYTES:
            return None
        answer: Answer | None = answers.get(data[position + 12 : stop])
        if answer is None or answer.version != data[position + 7] or data[position + 6]:
            return None
        shard = answer.shard
        machine = answer.machine
        if shard.machine is not machine or shard.state is not READY or answer.shape != machine.offsets.shape:
            return None
        for columns, seen in answer.sources:
            if columns.seen is not seen:
                return None
        durability = self._broker.durability
        if not durability.is_settled(shard.flush_state):
            slot = connection.base + len(connection.out)
            durability.hold(shard.flush_state, (connection, slot, data, position, stop))
        return REPLY_HEAD.pack(answer.reply_size, correlation_id) + answer.reply

    def keep(self, connection: Connection, question: bytes, answer: Answer) -> None:
        """Keep a reply for the next time."""
        if len(question) > ANSWER_BYTES or len(answer.reply) > 2 * ANSWER_BYTES or len(answer.sources) > 64:
            return
        if connection.fetch_answers is None or len(connection.fetch_answers) >= ANSWERS_A_CONNECTION:
            connection.fetch_answers = {}
        connection.fetch_answers[question] = answer
