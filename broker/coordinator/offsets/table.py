"""The committed offsets of one shard: group -> topic -> columns."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Final

from broker.coordinator.offsets.columns import Committed, Label, Pending, TopicOffsets

ZERO_ID: Final = bytes(16)


class OffsetTable:
    """Group -> topic -> columns, for all groups of one shard. A group with one topic needs no dict."""

    __slots__ = ("_groups", "_labels", "dropped", "emptied", "shape")

    def __init__(self) -> None:
        self._groups: dict[str, TopicOffsets | dict[str, TopicOffsets]] = {}
        self._labels: dict[str, Label] = {}
        self.emptied: set[str] = set()  # groups that had offsets and have none left: see groups/simple.py
        self.shape = 0  # grows when a column object is added or removed, or who may ask for a group's offsets changes
        self.dropped: Callable[[], None] | None = None  # called when a column object is removed: references are stale

    # -- columns

    def topic(self, group_id: str, topic: str) -> TopicOffsets | None:
        """The columns of one group and topic, if it has any."""
        found = self._groups.get(group_id)
        if isinstance(found, TopicOffsets):
            return found if found.label.name == topic else None
        return found.get(topic) if found is not None else None

    def topic_or_new(self, group_id: str, topic: str) -> TopicOffsets:
        """The columns of one group and topic, made when missing."""
        found = self._groups.get(group_id)
        if isinstance(found, dict):  # as `topic`, without the call
            columns = found.get(topic)
            if columns is not None:
                return columns
        elif found is not None and found.label.name == topic:
            return found
        columns = TopicOffsets(self.label(topic, ZERO_ID))
        self.adopt(group_id, columns)
        return columns

    def label(self, topic: str, topic_id: bytes) -> Label:
        """The label that all columns of the topic share."""
        label = self._labels.get(topic)
        if label is None:
            label = self._labels[topic] = Label(topic, topic_id, {})
        return label.with_id(topic_id)

    def forget_labels(self, gone: Mapping[str, Iterable[bytes]]) -> None:
        """Drop the labels of topics that were deleted, by name and ids. Columns that have one keep it."""
        for name, topic_ids in gone.items():
            label = self._labels.get(name)
            if label is not None:
                for topic_id in (ZERO_ID, *topic_ids):
                    label.family.pop(topic_id, None)
                if not label.family:
                    del self._labels[name]

    def adopt(self, group_id: str, columns: TopicOffsets) -> None:
        """Add columns of a topic that the group has none of."""
        self.shape += 1
        found = self._groups.get(group_id)
        if found is None:
            self._groups[group_id] = columns
            self.emptied.discard(group_id)
        elif isinstance(found, TopicOffsets):
            self._groups[group_id] = {found.label.name: found, columns.label.name: columns}
        else:
            found[columns.label.name] = columns

    def topics(self, group_id: str) -> Sequence[TopicOffsets]:
        """The columns of one group."""
        found = self._groups.get(group_id)
        if found is None:
            return ()
        return (found,) if isinstance(found, TopicOffsets) else tuple(found.values())

    def drop_empty(self, group_id: str, topic: str, columns: TopicOffsets) -> None:
        """Remove columns that hold nothing."""
        if columns.live or columns.pending:
            return
        found = self._groups[group_id]
        if isinstance(found, TopicOffsets):
            del self._groups[group_id]
            self.emptied.add(group_id)
        else:
            del found[topic]
            if len(found) == 1:
                self._groups[group_id] = next(iter(found.values()))
        self.shape += 1
        if self.dropped is not None:
            self.dropped()

    # -- replay

    def replay(self, group_id: str, topic: str, partition: int, committed: Committed | None) -> None:
        """Replay an offset record; None: a tombstone."""
        if committed is not None:
            self.topic_or_new(group_id, topic).replay(partition, committed)
            return
        columns = self.topic(group_id, topic)
        if columns is not None:
            columns.replay_removal(partition)
            self.drop_empty(group_id, topic, columns)

    def replay_run(
        self,
        group_id: str,
        topic: str,
        topic_id: bytes,
        partitions: Sequence[int],
        offsets: Sequence[int],
        leader_epochs: Sequence[int],
        commit_ms: int,
        *,
        dense: bool,
    ) -> None:
        """Replay one commit without metadata; `dense`: each partition is the one before it plus one."""
        columns = self.topic_or_new(group_id, topic)
        columns.replay_run(partitions, offsets, leader_epochs, commit_ms, topic_id, dense=dense)

    def replay_emptied(self, group_id: str) -> None:
        """Read from an image that the group has no offset left."""
        if group_id not in self._groups:
            self.emptied.add(group_id)

    def replay_kind(self) -> None:
        """Replay that a group is a consumer, streams or share group now: who may ask for its offsets has changed."""
        self.shape += 1

    def replay_gone(self, group_id: str) -> None:
        """Replay the tombstone of the group itself."""
        self.emptied.discard(group_id)

    # -- queries

    def get(self, group_id: str, topic: str, partition: int) -> Committed | None:
        """One committed offset, if there is one."""
        columns = self.topic(group_id, topic)
        return columns.get(partition) if columns else None

    def partitions(self, group_id: str) -> dict[str, list[int]]:
        """Topic -> the partitions with a commit, of one group."""
        return {columns.label.name: columns.partitions() for columns in self.topics(group_id) if columns.live}

    def all_partitions(self, group_id: str) -> dict[str, list[int]]:
        """Topic -> the partitions with a commit, or with a pending one."""
        return {
            columns.label.name: sorted({*columns.partitions(), *(columns.pending or ())})
            for columns in self.topics(group_id)
        }

    def has_pending(self, group_id: str) -> bool:
        """Whether a transaction has offsets pending in the group."""
        return any(columns.pending for columns in self.topics(group_id))

    def has_group(self, group_id: object) -> bool:
        """Whether the group has any offset, committed or pending."""
        return group_id in self._groups

    def group_ids(self) -> Iterator[str]:
        """All groups with an offset, committed or pending."""
        return iter(self._groups)

    @property
    def group_count(self) -> int:
        """How many groups there are."""
        return len(self._groups)

    @property
    def size(self) -> int:
        """How many committed offsets there are."""
        return sum(columns.live for group_id in self._groups for columns in self.topics(group_id))

    def fingerprint(self) -> dict[tuple[str, str, int], Committed]:
        """Everything in it, to compare a replayed table with a live one."""
        return {
            (group_id, columns.label.name, partition): committed
            for group_id in self._groups
            for columns in self.topics(group_id)
            for partition in columns.partitions()
            if (committed := columns.get(partition)) is not None
        }


__all__ = ["Committed", "OffsetTable", "Pending", "TopicOffsets"]
