"""Which share partitions of a group have state in `__share_group_state`: being made, there, or being deleted.

A share partition is assigned only when its state is there. The three lists are one record of the group
(ShareGroupStatePartitionMetadata); each function makes the next value from the last one.

    initializing   asked for by a subscription; its first snapshot is not known to be durable
    initialized    its snapshot is durable
    deleting       its offsets or its group are being deleted, and its tombstone is not known to be durable

Differs:   partitions that are added to a topic whose first state was asked for in vain begin at offset 0; in Kafka the
           others of this topic, which are asked for again, do too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Final, NamedTuple, TypeAlias

Topics: TypeAlias = Mapping[bytes, tuple[str, frozenset[int]]]  # topic id -> name, partitions
NO_TOPICS: Final[Mapping[bytes, tuple[str, frozenset[int]]]] = {}


class Missing(NamedTuple):
    """Share partitions whose state is to be made. `added`: those of them that were added to a topic already known."""

    topics: Topics = NO_TOPICS
    added: Mapping[bytes, frozenset[int]] = {}  # never changed: the default of a tuple's field


class StatePartitions(NamedTuple):
    """The share partitions of one group."""

    initializing: Topics = NO_TOPICS
    initialized: Topics = NO_TOPICS
    deleting: Mapping[bytes, str] = {}  # never changed: the default of a tuple's field

    def begun(self, topics: Topics) -> StatePartitions:
        """With topics whose state is about to be made; a deletion that has not ended is given up."""
        deleting = {topic_id: name for topic_id, name in self.deleting.items() if topic_id not in topics}
        return StatePartitions(union(self.initializing, topics), self.initialized, deleting)

    def added(self, topic_id: bytes, partitions: frozenset[int]) -> frozenset[int]:
        """Which of these, whose state is to be made, the topic did not have when the group came to know it."""
        if topic_id in self.initialized:
            return partitions
        if topic_id in self.initializing:
            return partitions - self.initializing[topic_id][1]
        return frozenset()

    def ended(self, topics: Topics) -> StatePartitions:
        """With topics whose state is there."""
        return StatePartitions(minus(self.initializing, topics), union(self.initialized, topics), self.deleting)

    def given_up(self, topics: Topics) -> StatePartitions:
        """With topics whose state could not be made."""
        return self._replace(initializing=minus(self.initializing, topics))

    def to_delete(self, topics: Iterable[bytes]) -> StatePartitions:
        """With topics whose state is about to be deleted."""
        gone = {t: self.initialized[t][0] for t in topics if t in self.initialized}
        kept = {t: found for t, found in self.initialized.items() if t not in gone}
        return StatePartitions(self.initializing, kept, {**self.deleting, **gone})

    def deleted(self, topics: Iterable[bytes]) -> StatePartitions:
        """With topics whose tombstones are durable."""
        gone = set(topics)
        return self._replace(deleting={t: name for t, name in self.deleting.items() if t not in gone})

    def without(self, is_gone: Callable[[str, bytes], bool]) -> StatePartitions:
        """Without topics that no longer exist, by name and id."""
        return StatePartitions(
            {t: found for t, found in self.initializing.items() if not is_gone(found[0], t)},
            {t: found for t, found in self.initialized.items() if not is_gone(found[0], t)},
            {t: name for t, name in self.deleting.items() if not is_gone(name, t)},
        )


NO_PARTITIONS: Final = StatePartitions()


def union(some: Topics, others: Topics) -> dict[bytes, tuple[str, frozenset[int]]]:
    """The partitions of both, with the names of the second."""
    found = dict(some)
    for topic_id, (name, partitions) in others.items():
        found[topic_id] = name, partitions | found.get(topic_id, ("", frozenset()))[1]
    return found


def minus(some: Topics, others: Topics) -> dict[bytes, tuple[str, frozenset[int]]]:
    """The partitions of the first that the second lacks."""
    found = {}
    for topic_id, (name, partitions) in some.items():
        left = partitions - others.get(topic_id, ("", frozenset()))[1]
        if left:
            found[topic_id] = name, left
    return found
