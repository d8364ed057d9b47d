"""The committed offsets of one shard in columns: a group and topic is one object, a partition a few array cells."""

from __future__ import annotations

from array import array
from collections.abc import Iterator, Sequence
from typing import NamedTuple

ABSENT = -(2**63)  # marks a cell without a commit: a client may commit any offset, -1 included


class Committed(NamedTuple):
    """One committed offset. Timestamps are Unix milliseconds; expire_timestamp_ms is -1 when none was asked for."""

    offset: int
    leader_epoch: int = -1
    metadata: str = ""
    commit_timestamp_ms: int = -1
    expire_timestamp_ms: int = -1
    topic_id: bytes = bytes(16)


class Pending:
    """What a transaction will commit on one partition: None when a later commit has come meanwhile (see put).

    `record_offset` is where its record lies in the log.
    """

    __slots__ = ("committed", "record_offset")

    def __init__(self, committed: Committed, record_offset: int) -> None:
        self.committed: Committed | None = committed
        self.record_offset = record_offset


class TopicOffsets:
    """The offsets one group has committed on one topic; the cell number is the partition number.

    What is rare (metadata, an expiry of its own, another topic id than the last one seen) lies beside the columns, and
    so does what transactions have not committed yet: partition -> producer id -> its pending offset.
    `version` changes with every change, so that an answer made from the columns can be kept until then.
    """

    __slots__ = (
        "commit_ts",
        "expire",
        "leader_epochs",
        "live",
        "metadata",
        "offsets",
        "other_ids",
        "pending",
        "topic_id",
        "version",
    )

    def __init__(self) -> None:
        self.offsets = array("q")
        self.leader_epochs = array("i")
        self.commit_ts = array("q")
        self.metadata: dict[int, str] | None = None
        self.expire: dict[int, int] | None = None
        self.other_ids: dict[int, bytes] | None = None
        self.pending: dict[int, dict[int, Pending]] | None = None
        self.topic_id = bytes(16)
        self.live = 0
        self.version = 0

    def grow(self, size: int) -> None:
        """Make room for partitions below `size`."""
        more = size - len(self.offsets)
        if more > 0:
            self.offsets.extend(array("q", (ABSENT,)) * more)
            self.leader_epochs.extend(array("i", (-1,)) * more)
            self.commit_ts.extend(array("q", bytes(8 * more)))

    def put(self, partition: int, committed: Committed, record_offset: int | None = None) -> None:
        """Take over one commit. `record_offset`: of a transaction's, where a later commit may stand behind it.

        What is pending with a lower record offset has lost its chance, and a plain commit has the highest of all: so
        no committed offset needs to remember where its record lies.
        """
        if self.pending and partition in self.pending:
            for pending in self.pending[partition].values():
                if record_offset is None or pending.record_offset < record_offset:
                    pending.committed = None
        self.grow(partition + 1)
        if self.offsets[partition] == ABSENT:
            self.live += 1
        self.offsets[partition] = committed.offset
        self.leader_epochs[partition] = committed.leader_epoch
        self.commit_ts[partition] = committed.commit_timestamp_ms
        self._set_rare(partition, committed)
        self.version += 1

    def _set_rare(self, partition: int, committed: Committed) -> None:
        if committed.metadata:
            if self.metadata is None:
                self.metadata = {}
            self.metadata[partition] = committed.metadata
        elif self.metadata:
            self.metadata.pop(partition, None)
        if committed.expire_timestamp_ms >= 0:
            if self.expire is None:
                self.expire = {}
            self.expire[partition] = committed.expire_timestamp_ms
        elif self.expire:
            self.expire.pop(partition, None)
        self._set_topic_id(partition, committed.topic_id)

    def _set_topic_id(self, partition: int, topic_id: bytes) -> None:
        if topic_id == self.topic_id:
            if self.other_ids:
                self.other_ids.pop(partition, None)
        elif self.live <= 1:  # the only commit here: its id is the object's
            self.topic_id = topic_id
            self.other_ids = None
        else:
            if self.other_ids is None:
                self.other_ids = {}
            self.other_ids[partition] = topic_id

    def put_run(
        self,
        partitions: Sequence[int],
        offsets: Sequence[int],
        leader_epochs: Sequence[int],
        commit_ts: int,
        topic_id: bytes,
        *,
        dense: bool,
    ) -> None:
        """Take over a commit without metadata on many partitions; `dense` when they are 0, 1, 2 ... in order."""
        n = len(partitions)
        plain = not (self.metadata or self.expire or self.other_ids or self.pending)
        if plain and dense and self.topic_id == topic_id and self.live == n == len(self.offsets):
            self.offsets = array("q", offsets)
            self.leader_epochs = array("i", leader_epochs)
            self.commit_ts = array("q", (commit_ts,)) * n
        elif plain and n == 1 and self.topic_id == topic_id and partitions[0] < len(self.offsets):
            at = partitions[0]
            if self.offsets[at] == ABSENT:
                self.live += 1
            self.offsets[at] = offsets[0]
            self.leader_epochs[at] = leader_epochs[0]
            self.commit_ts[at] = commit_ts
        else:
            for partition, offset, epoch in zip(partitions, offsets, leader_epochs, strict=True):
                self.put(partition, Committed(offset, epoch, "", commit_ts, -1, topic_id))
        self.version += 1

    def get(self, partition: int) -> Committed | None:
        """The commit on one partition, if there is one."""
        if not 0 <= partition < len(self.offsets):
            return None
        offset = self.offsets[partition]
        if offset == ABSENT:
            return None
        return Committed(
            offset,
            self.leader_epochs[partition],
            self.metadata.get(partition, "") if self.metadata else "",
            self.commit_ts[partition],
            self.expire.get(partition, -1) if self.expire else -1,
            self.other_ids.get(partition, self.topic_id) if self.other_ids else self.topic_id,
        )

    def remove(self, partition: int) -> None:
        """Forget one commit and what is pending on it; nothing happens where there is none."""
        if self.pending and self.pending.pop(partition, None) is not None:
            self.version += 1
        if not 0 <= partition < len(self.offsets) or self.offsets[partition] == ABSENT:
            return
        self.offsets[partition] = ABSENT
        self.live -= 1
        for rare in (self.metadata, self.expire, self.other_ids):
            if rare:
                rare.pop(partition, None)
        self.version += 1

    def partitions(self) -> list[int]:
        """The partitions that have a commit, in order."""
        return [p for p, offset in enumerate(self.offsets) if offset != ABSENT]


class OffsetTable:
    """Group -> topic -> columns, for all groups of one shard."""

    __slots__ = ("_groups", "removals", "shape")

    def __init__(self) -> None:
        self._groups: dict[str, dict[str, TopicOffsets]] = {}
        self.shape = 0  # grows when a column object comes or goes
        self.removals = 0  # grows when a column object goes: whoever keeps a reference to one looks it up again

    def topic(self, group_id: str, topic: str) -> TopicOffsets | None:
        """The columns of one group and topic, if it has any."""
        topics = self._groups.get(group_id)
        return topics.get(topic) if topics else None

    def topic_or_new(self, group_id: str, topic: str) -> TopicOffsets:
        """The columns of one group and topic, made when missing."""
        topics = self._groups.get(group_id)
        if topics is None:
            topics = self._groups[group_id] = {}
        columns = topics.get(topic)
        if columns is None:
            columns = topics[topic] = TopicOffsets()
            self.shape += 1
        return columns

    def get(self, group_id: str, topic: str, partition: int) -> Committed | None:
        """One committed offset, if there is one."""
        columns = self.topic(group_id, topic)
        return columns.get(partition) if columns else None

    def put(self, group_id: str, topic: str, partition: int, committed: Committed) -> None:
        """Replay of an offset record with a value."""
        self.topic_or_new(group_id, topic).put(partition, committed)

    def remove(self, group_id: str, topic: str, partition: int) -> None:
        """Replay of an offset record without a value."""
        columns = self.topic(group_id, topic)
        if columns is None:
            return
        columns.remove(partition)
        self.drop_empty(group_id, topic, columns)

    def drop_empty(self, group_id: str, topic: str, columns: TopicOffsets) -> None:
        """Let go of columns that hold nothing any more."""
        if columns.live or columns.pending:
            return
        del self._groups[group_id][topic]
        if not self._groups[group_id]:
            del self._groups[group_id]
        self.removals += 1
        self.shape += 1

    def partitions(self, group_id: str) -> dict[str, list[int]]:
        """Topic -> the partitions with a commit, of one group."""
        return {t: columns.partitions() for t, columns in self._groups.get(group_id, {}).items() if columns.live}

    def all_partitions(self, group_id: str) -> dict[str, list[int]]:
        """Topic -> the partitions with a commit, or with a pending one."""
        return {
            topic: sorted({*columns.partitions(), *(columns.pending or ())})
            for topic, columns in self._groups.get(group_id, {}).items()
        }

    def has_pending(self, group_id: str) -> bool:
        """Whether a transaction has offsets pending in the group."""
        return any(columns.pending for columns in self._groups.get(group_id, {}).values())

    def has_group(self, group_id: str) -> bool:
        """Whether the group has any offset, committed or pending."""
        return group_id in self._groups

    def group_ids(self) -> Iterator[str]:
        """All groups with an offset, committed or pending."""
        return iter(self._groups)

    @property
    def size(self) -> int:
        """How many committed offsets there are."""
        return sum(c.live for topics in self._groups.values() for c in topics.values())

    def fingerprint(self) -> dict[tuple[str, str, int], Committed]:
        """Everything in it, to compare a replayed table with a live one."""
        return {
            (group, topic, partition): committed
            for group, topics in self._groups.items()
            for topic, columns in topics.items()
            for partition in columns.partitions()
            if (committed := columns.get(partition)) is not None
        }
