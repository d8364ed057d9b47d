"""The offsets that one group has committed on one topic, in columns: a partition is a few array cells and no object.

A column whose cells are all equal (mostly commit times and leader epochs) is stored as one value, and a group with one
partition needs no array at all. Memory, all included, at 100, 10 and 1 partitions a group: 11, 39 and 223 bytes a
partition where epochs and times are equal, 25, 71 and 256 where they differ (`python -m benchmarks.offsets mixed`).
"""

from __future__ import annotations

from array import array
from bisect import bisect_left
from collections.abc import Sequence
from typing import Final, NamedTuple, TypeVar

T = TypeVar("T")

RANGES_KEPT: Final = 4096
LARGEST_SHARED: Final = 256

_ranges: dict[tuple[int, int], range] = {}


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
        return not (self.metadata or self.expire or self.other_ids or self.pending)


class TopicOffsets:
    """Rows in the order of their partitions.

    `label` names the topic. `seen` is the mark that a kept reply compares: every change of the columns removes it.
    """

    __slots__ = ("_epochs", "_offsets", "_partitions", "_times", "label", "rare", "seen")

    def __init__(self, label: Label) -> None:
        self.label = label
        self._partitions: range | array[int] = range(0)
        self._offsets: int | array[int] = 0
        self._epochs: int | array[int] = -1
        self._times: int | array[int] = -1
        self.rare: Rare | None = None
        self.seen: object | None = None

    # -- reading

    @property
    def live(self) -> int:
        """How many partitions have a commit."""
        return len(self._partitions)

    @property
    def pending(self) -> dict[int, dict[int, Pending]] | None:
        """Partition -> producer id -> the offset pending there."""
        return self.rare.pending if self.rare is not None and self.rare.pending else None

    @property
    def expire(self) -> dict[int, int] | None:
        """Partition -> expiry of its own, Unix milliseconds."""
        return self.rare.expire if self.rare is not None and self.rare.expire else None

    @property
    def oldest_ms(self) -> int:
        """The time of the oldest commit."""
        return self._times if isinstance(self._times, int) else min(self._times)

    def mark(self) -> object:
        """The mark that `seen` holds until the next change."""
        if self.seen is None:
            self.seen = object()
        return self.seen

    def partitions(self) -> list[int]:
        """The partitions that have a commit, in order."""
        return list(self._partitions)

    def columns(self) -> tuple[range | array[int], int | array[int], int | array[int], int | array[int]]:
        """Partitions, offsets, leader epochs and commit times. Callers must not change them."""
        return self._partitions, self._offsets, self._epochs, self._times

    def get(self, partition: int) -> Committed | None:
        """The commit on one partition, if there is one."""
        at = self._find(partition)
        if at < 0:
            return None
        offsets, epochs, times, rare = self._offsets, self._epochs, self._times, self.rare
        return Committed(
            offsets if isinstance(offsets, int) else offsets[at],
            epochs if isinstance(epochs, int) else epochs[at],
            rare.metadata.get(partition, "") if rare is not None else "",
            times if isinstance(times, int) else times[at],
            rare.expire.get(partition, -1) if rare is not None else -1,
            rare.other_ids.get(partition, self.label.topic_id) if rare is not None else self.label.topic_id,
        )

    def _find(self, partition: int) -> int:
        rows = self._partitions
        if isinstance(rows, range):
            return partition - rows.start if partition in rows else -1
        at = bisect_left(rows, partition)
        return at if at < len(rows) and rows[at] == partition else -1

    # -- changing

    def replay_only_row(self, partition: int, offset: int, epoch: int, time_ms: int) -> None:
        """Set the only row of empty columns."""
        self._partitions = _range(partition, partition + 1)
        self._offsets, self._epochs, self._times = offset, epoch, time_ms

    def replay_rows(self, partitions: array[int], offsets: array[int], epochs: array[int], times: array[int]) -> None:
        """Set all rows of empty columns."""
        n = len(partitions)
        self._partitions = _as_range(partitions)
        self._offsets = offsets if n > 1 else offsets[0]
        self._epochs = epochs[0] if epochs.count(epochs[0]) == n else epochs
        self._times = times[0] if times.count(times[0]) == n else times

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
        self._set(partition, committed.offset, committed.leader_epoch, committed.commit_timestamp_ms)
        self._set_rare(partition, committed)
        self.seen = None

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
        n = len(partitions)
        rows = self._partitions
        if self.rare is not None or (self.label.topic_id != topic_id and rows):
            for partition, offset, epoch in zip(partitions, offsets, leader_epochs, strict=True):
                self.replay(partition, Committed(offset, epoch, "", commit_ts, -1, topic_id))
            return
        self.seen = None
        if not rows and self.label.topic_id != topic_id:
            self.label = self.label.with_id(topic_id)
        if n == 1:
            if len(rows) == 1 and rows[0] == partitions[0]:
                self._offsets, self._epochs, self._times = offsets[0], leader_epochs[0], commit_ts
            else:
                self._set(partitions[0], offsets[0], leader_epochs[0], commit_ts)
        elif dense and (not rows or (len(rows) == n and rows[0] == partitions[0] and type(rows) is range)):
            if not rows:
                self._partitions = _range(partitions[0], partitions[0] + n)
            self._offsets = array("q", offsets)
            epoch = leader_epochs[0]
            self._epochs = epoch if leader_epochs.count(epoch) == n else array("i", leader_epochs)
            self._times = commit_ts
        else:
            for partition, offset, epoch in zip(partitions, offsets, leader_epochs, strict=True):
                self._set(partition, offset, epoch, commit_ts)

    def replay_removal(self, partition: int) -> None:
        """Remove a committed offset, and what is pending there. Nothing happens where there is none."""
        rare = self.rare
        if rare is not None:
            for by_partition in (rare.metadata, rare.expire, rare.other_ids, rare.pending):
                by_partition.pop(partition, None)
            self.tidy()
        self.seen = None
        at = self._find(partition)
        if at < 0:
            return
        rows = self._partitions
        if isinstance(rows, range) and partition in (rows[0], rows[-1]):
            self._partitions = _range(rows.start + (at == 0), rows.stop - (at > 0)) if len(rows) > 1 else range(0)
        else:
            sparse = array("i", rows)
            del sparse[at]
            self._partitions = _as_range(sparse)
        for column in (self._offsets, self._epochs, self._times):
            if not isinstance(column, int):
                del column[at]
        if len(self._partitions) == 1:  # one row needs no arrays
            only = self.get(self._partitions[0])
            assert only is not None
            self._offsets, self._epochs, self._times = only[0], only.leader_epoch, only.commit_timestamp_ms

    def replay_pending(self, partition: int, producer_id: int, pending: Pending) -> None:
        """Set a pending offset."""
        if self.rare is None:
            self.rare = Rare()
        self.rare.pending.setdefault(partition, {})[producer_id] = pending
        self.seen = None

    def replay_ended(self, partition: int, producer_id: int) -> Pending | None:
        """Remove and answer the pending offset of a transaction that has ended."""
        producers = self.rare.pending.get(partition) if self.rare is not None else None
        pending = producers.pop(producer_id, None) if producers else None
        if pending is not None:
            assert self.rare is not None
            if not producers:
                del self.rare.pending[partition]
            self.tidy()
            self.seen = None
        return pending

    def tidy(self) -> None:
        """Free `rare` when it is empty."""
        if self.rare is not None and self.rare.is_empty:
            self.rare = None

    def _set(self, partition: int, offset: int, epoch: int, time_ms: int) -> None:
        at = self._find(partition)
        if at < 0:
            at = self._insert(partition)
        n = len(self._partitions)
        if n == 1:
            self._offsets, self._epochs, self._times = offset, epoch, time_ms
            return
        assert not isinstance(self._offsets, int)
        self._offsets[at] = offset
        if isinstance(self._epochs, int):
            if epoch != self._epochs:
                self._epochs = array("i", (self._epochs,)) * n
                self._epochs[at] = epoch
        else:
            self._epochs[at] = epoch
        if isinstance(self._times, int):
            if time_ms != self._times:
                self._times = array("q", (self._times,)) * n
                self._times[at] = time_ms
        else:
            self._times[at] = time_ms

    def _insert(self, partition: int) -> int:
        """Make a row. The caller sets its cells."""
        rows = self._partitions
        if not rows:
            self._partitions = _range(partition, partition + 1)
            return 0
        at = bisect_left(rows, partition)
        if isinstance(rows, range) and partition in (rows.start - 1, rows.stop):
            self._partitions = _range(min(rows.start, partition), max(rows.stop, partition + 1))
        else:
            sparse = array("i", rows)
            sparse.insert(at, partition)
            self._partitions = _as_range(sparse)
        if isinstance(self._offsets, int):
            self._offsets = array("q", (self._offsets,))
        for column in (self._offsets, self._epochs, self._times):
            if not isinstance(column, int):
                column.insert(at, 0)
        return at

    def _set_rare(self, partition: int, committed: Committed) -> None:
        other_id = committed.topic_id != self.label.topic_id
        if other_id and len(self._partitions) <= 1:  # the only commit here: the label takes its id
            self.label = self.label.with_id(committed.topic_id)
            other_id = False
            if self.rare is not None:
                self.rare.other_ids.clear()
        if self.rare is None:
            if not (committed.metadata or committed.expire_timestamp_ms >= 0 or other_id):
                return
            self.rare = Rare()
        rare = self.rare
        _keep(rare.metadata, partition, committed.metadata, bool(committed.metadata))
        _keep(rare.expire, partition, committed.expire_timestamp_ms, committed.expire_timestamp_ms >= 0)
        _keep(rare.other_ids, partition, committed.topic_id, other_id)
        self.tidy()


def _keep(by_partition: dict[int, T], partition: int, value: T, is_there: bool) -> None:
    if is_there:
        by_partition[partition] = value
    else:
        by_partition.pop(partition, None)


def _range(start: int, stop: int) -> range:
    """The one range object of these bounds: groups that commit on the same partitions share it."""
    if stop - start > LARGEST_SHARED:
        return range(start, stop)
    found = _ranges.get((start, stop))
    if found is None:
        if len(_ranges) >= RANGES_KEPT:
            _ranges.clear()
        found = _ranges[start, stop] = range(start, stop)
    return found


def _as_range(rows: array[int]) -> range | array[int]:
    if not rows:
        return range(0)
    return _range(rows[0], rows[-1] + 1) if rows[-1] - rows[0] + 1 == len(rows) else rows
