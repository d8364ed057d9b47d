"""The offsets that one group has committed on one topic: rows.py packs them; here is what else belongs to them.

Memory, all included, at 100, 10 and 1 partitions a group: 10, 34 and 191 bytes a partition where epochs and
times are equal, 27, 50 and 191 where they differ (`python -m benchmarks.offsets mixed`).
"""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from typing import Final, NamedTuple, TypeVar

from broker.coordinator.offsets import rows
from broker.coordinator.offsets.rows import Cells, Rows, put

T = TypeVar("T")
_new: Final = tuple.__new__  # a NamedTuple's own is a function in Python, compiled or not
NOTHING: Final = (-1, -1, -1)  # offset, epoch and time where nothing is committed


class Committed(NamedTuple):
    """One committed offset. Timestamps are Unix milliseconds; expire_timestamp_ms is -1 for none."""

    offset: int
    leader_epoch: int = -1
    metadata: str = ""
    commit_timestamp_ms: int = -1
    expire_timestamp_ms: int = -1
    topic_id: bytes = bytes(16)


class Pending:
    """An offset that a transaction will commit on one partition. None: a later commit has replaced it (see replay).

    `record_offset` is the offset of its record in the log.
    """

    __slots__ = ("committed", "record_offset")

    def __init__(self, committed: Committed | None, record_offset: int) -> None:
        self.committed = committed
        self.record_offset = record_offset


class Label:
    """A topic by name and id, shared by all groups that commit on it. `family`: the labels of the name by topic id."""

    __slots__ = ("family", "name", "topic_id")

    def __init__(self, name: str, topic_id: bytes, family: dict[bytes, Label]) -> None:
        self.name = name
        self.topic_id = topic_id
        self.family = family
        family[topic_id] = self

    def with_id(self, topic_id: bytes) -> Label:
        """The label of the same name with another id."""
        return self.family.get(topic_id) or Label(self.name, topic_id, self.family)


class Rare:
    """What few commits have: metadata, an expiry of their own, another topic id, offsets pending in transactions.

    By partition; `pending` is partition -> producer id -> its pending offset.
    """

    __slots__ = ("expire", "metadata", "other_ids", "pending")

    def __init__(self) -> None:
        self.metadata: dict[int, str] = {}
        self.expire: dict[int, int] = {}
        self.other_ids: dict[int, bytes] = {}
        self.pending: dict[int, dict[int, Pending]] = {}

    @property
    def is_empty(self) -> bool:
        """Whether no row has a rare field."""
        return not (self.metadata or self.expire or self.other_ids or self.pending)


class Mark:
    """Given to who keeps a reply: `is_valid` until the columns change."""

    __slots__ = ("is_valid",)

    def __init__(self) -> None:
        self.is_valid = True


class More:
    """What most columns have none of, beside their label."""

    __slots__ = ("label", "mark", "rare")

    def __init__(self, label: Label) -> None:
        self.label = label
        self.rare: Rare | None = None
        self.mark: Mark | None = None


class TopicOffsets:
    """Rows in the order of their partitions.

    `label` names the topic. There are as many objects as groups: two slots, 48 bytes.
    """

    __slots__ = ("_more", "_rows")

    def __init__(self, label: Label) -> None:
        self._rows: Rows | None = None
        self._more: Label | More = label

    # -- reading

    @property
    def label(self) -> Label:
        """The topic."""
        more = self._more
        return more if isinstance(more, Label) else more.label

    @property
    def rare(self) -> Rare | None:
        """What few commits have; None: none of these has it."""
        more = self._more
        return None if isinstance(more, Label) else more.rare

    @property
    def live(self) -> int:
        """How many partitions have a commit."""
        return rows.count(self._rows)

    @property
    def pending(self) -> dict[int, dict[int, Pending]] | None:
        """Partition -> producer id -> the offset pending there."""
        rare = self.rare
        return rare.pending if rare is not None and rare.pending else None

    @property
    def expire(self) -> dict[int, int] | None:
        """Partition -> expiry of its own, Unix milliseconds."""
        rare = self.rare
        return rare.expire if rare is not None and rare.expire else None

    @property
    def oldest_ms(self) -> int:
        """The time of the oldest commit; -1: there is none."""
        return -1 if self._rows is None else rows.oldest_ms(self._rows)

    def mark(self) -> Mark:
        """A mark that is valid until the next change."""
        more = self._with_more()
        if more.mark is None:
            more.mark = Mark()
        return more.mark

    def partitions(self) -> list[int]:
        """The partitions that have a commit, in order."""
        return list(rows.cells(self._rows)[0])

    def columns(self) -> Cells:
        """Partitions, offsets, leader epochs and commit times; see rows.cells."""
        return rows.cells(self._rows)

    def get(self, partition: int) -> Committed | None:
        """The commit on one partition, if there is one."""
        found = rows.get(self._rows, partition)
        if found is None:
            return None
        offset, epoch, time_ms = found
        more = self._more
        label, rare = (more, None) if isinstance(more, Label) else (more.label, more.rare)
        if rare is None:
            return _new(Committed, (offset, epoch, "", time_ms, -1, label.topic_id))
        return Committed(
            offset,
            epoch,
            rare.metadata.get(partition, ""),
            time_ms,
            rare.expire.get(partition, -1),
            rare.other_ids.get(partition, label.topic_id),
        )

    def offsets_and_epochs(self, partitions: Sequence[int]) -> list[tuple[int, int] | None]:
        """Offset and leader epoch of each of these partitions that has a commit."""
        return rows.get_all(self._rows, partitions)

    def plain(self, label: Label, partitions: Sequence[int]) -> tuple[Sequence[int], Sequence[int]] | None:
        """Offsets and leader epochs of these partitions, -1 where one has no commit.

        None: what few commits have is among them, or the label is another one.
        """
        more = self._more
        if more is not label and (isinstance(more, Label) or more.label is not label or more.rare is not None):
            return None
        held = self._rows
        if len(partitions) == 1:
            offset, epoch, _ = rows.get(held, partitions[0]) or NOTHING
            return (offset,), (epoch,)
        known, offsets, epochs, _ = rows.cells(held)
        if known == partitions:
            every_epoch = (epochs,) * len(partitions) if isinstance(epochs, int) else epochs
            return offsets, every_epoch  # type: ignore[return-value]  # there is more than one offset
        found = [each or NOTHING[:2] for each in rows.get_all(held, partitions)]
        return [each[0] for each in found], [each[1] for each in found]

    def _with_more(self) -> More:
        more = self._more
        if isinstance(more, Label):
            more = self._more = More(more)
        return more

    # -- changing

    def replay_only_row(self, partition: int, offset: int, epoch: int, time_ms: int) -> None:
        """Set the only row of empty columns."""
        self._rows = put(None, partition, offset, epoch, time_ms)

    def replay_rows(self, partitions: array[int], offsets: array[int], epochs: array[int], times: array[int]) -> None:
        """Set all rows of empty columns."""
        self._rows = rows.of_cells(partitions, offsets, epochs, times)

    def replay(self, partition: int, committed: Committed, record_offset: int | None = None) -> None:
        """Set one committed offset. `record_offset`: of a commit in a transaction; a later commit may follow it.

        A pending offset with a lower record offset is dropped. A plain commit drops all of them, because its record is
        the last. So no committed offset has to store the offset of its record.
        """
        rare = self.rare
        if rare is not None and partition in rare.pending:
            for pending in rare.pending[partition].values():
                if record_offset is None or pending.record_offset < record_offset:
                    pending.committed = None
        self._rows = put(self._rows, partition, committed.offset, committed.leader_epoch, committed.commit_timestamp_ms)
        self._replay_rare(partition, committed)
        self._replay_change()

    def replay_run(
        self,
        partitions: Sequence[int],
        offsets: Sequence[int],
        leader_epochs: Sequence[int],
        commit_ts: int,
        topic_id: bytes,
        *,
        dense: bool,
    ) -> None:
        """Set the offsets of a commit without metadata; `dense`: each partition is the one before it plus one."""
        more = self._more
        if not isinstance(more, Label):
            self._replay_change()
            more = self._more
            if not isinstance(more, Label):
                self._replay_each(partitions, offsets, leader_epochs, commit_ts, topic_id)
                return
        if more.topic_id != topic_id:
            if self._rows is not None:
                self._replay_each(partitions, offsets, leader_epochs, commit_ts, topic_id)
                return
            self._more = more.with_id(topic_id)
        if len(partitions) == 1:
            self._rows = put(self._rows, partitions[0], offsets[0], leader_epochs[0], commit_ts)
            return
        whole = rows.put_dense(self._rows, partitions, offsets, leader_epochs, commit_ts) if dense else None
        self._rows = whole or rows.put_run(self._rows, partitions, offsets, leader_epochs, commit_ts)

    def _replay_each(
        self, partitions: Sequence[int], offsets: Sequence[int], epochs: Sequence[int], time_ms: int, topic_id: bytes
    ) -> None:
        for partition, offset, epoch in zip(partitions, offsets, epochs, strict=True):
            self.replay(partition, Committed(offset, epoch, "", time_ms, -1, topic_id))

    def replay_removal(self, partition: int) -> None:
        """Remove a committed offset, and what is pending there. Nothing happens where there is none."""
        rare = self.rare
        if rare is not None:
            for by_partition in (rare.metadata, rare.expire, rare.other_ids, rare.pending):
                by_partition.pop(partition, None)
        self._rows = rows.remove(self._rows, partition)
        self._replay_change()

    def replay_pending(self, partition: int, producer_id: int, pending: Pending) -> None:
        """Set a pending offset."""
        more = self._with_more()
        if more.rare is None:
            more.rare = Rare()
        more.rare.pending.setdefault(partition, {})[producer_id] = pending
        _invalidate(more)

    def replay_ended(self, partition: int, producer_id: int) -> Pending | None:
        """Remove and answer the pending offset of a transaction that has ended."""
        rare = self.rare
        producers = rare.pending.get(partition) if rare is not None else None
        pending = producers.pop(producer_id, None) if producers else None
        if pending is not None:
            assert rare is not None
            if not producers:
                del rare.pending[partition]
            self._replay_change()
        return pending

    def _replay_change(self) -> None:
        """Make the mark invalid, and free `rare` when it is empty."""
        more = self._more
        if isinstance(more, Label):
            return
        _invalidate(more)
        if more.rare is None or more.rare.is_empty:
            self._more = more.label

    def _replay_rare(self, partition: int, committed: Committed) -> None:
        label = self.label
        other_id = committed.topic_id != label.topic_id
        if other_id and rows.count(self._rows) <= 1:  # the only commit here: the label takes its id
            label = label.with_id(committed.topic_id)
            other_id = False
            if isinstance(self._more, Label):
                self._more = label
            else:
                self._more.label = label
        if self.rare is None:
            if not (committed.metadata or committed.expire_timestamp_ms >= 0 or other_id):
                return
            self._with_more().rare = Rare()
        rare = self.rare
        assert rare is not None
        _keep(rare.metadata, partition, committed.metadata, bool(committed.metadata))
        _keep(rare.expire, partition, committed.expire_timestamp_ms, committed.expire_timestamp_ms >= 0)
        _keep(rare.other_ids, partition, committed.topic_id, other_id)


def _invalidate(more: More) -> None:
    if more.mark is not None:
        more.mark.is_valid = False
        more.mark = None


def _keep(by_partition: dict[int, T], partition: int, value: T, is_there: bool) -> None:
    if is_there:
        by_partition[partition] = value
    else:
        by_partition.pop(partition, None)
