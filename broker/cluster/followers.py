"""Where the logs of replicas end that do not follow their leader: they are stopped, or were told to lag.

All replicas of a partition are one log. What a replica is said not to have is known by the offset at which it stopped
to follow: the high watermark gets no further while it is in sync, and the log is cut there when it leads.
None of this is stored: a start of the process starts all nodes, and they follow.
"""

from __future__ import annotations

from typing import Any, Final, Protocol

from broker.cluster.replicas import least_in_sync

NO_CEILING: Final = 1 << 63  # above every offset


class Replicated(Protocol):
    """A partition's replicas."""

    index: int
    isr: list[int]
    leader: int
    replicas: list[int]


class Followers:
    """The nodes that lag, and (topic id, index) -> node -> the end of its log, where that is not the leader's."""

    __slots__ = ("ends", "lagging")

    def __init__(self) -> None:
        self.lagging: set[int] = set()  # nodes that are up and do not fetch
        self.ends: dict[tuple[bytes, int], dict[int, int]] = {}

    def of(self, topic_id: bytes, index: int) -> dict[int, int]:
        """The ends of one partition, to be changed."""
        return self.ends.setdefault((topic_id, index), {})

    def limits(
        self, topic_id: bytes, partition: Replicated, min_insync_replicas: Any, high_watermark: int, end_offset: int
    ) -> tuple[bool, bool, int]:
        """Whether too few replicas are in sync, whether the leader does not have the end of the log, which is about to
        be cut there, and how far the high watermark may get."""
        is_held = len(partition.isr) < least_in_sync(min_insync_replicas, partition.replicas)
        is_behind = self.missed_from(topic_id, partition) < end_offset
        ceiling = self._ceiling(topic_id, partition, high_watermark)
        return is_held, is_behind, 0 if is_held or is_behind else ceiling

    def _ceiling(self, topic_id: bytes, partition: Replicated, high_watermark: int) -> int:
        """Where the first of the in-sync followers ends.

        A node that lags and whose end is not known has the partition since it lags: it has what was committed then.
        """
        ends = self.ends.get((topic_id, partition.index))
        if ends:
            for node_id in ends.keys() - partition.replicas:  # it was moved away: should it come back, with a copy
                del ends[node_id]
        ceiling = NO_CEILING
        if self.lagging:
            for node_id in partition.isr:
                if node_id in self.lagging and node_id != partition.leader:
                    ceiling = min(ceiling, self.of(topic_id, partition.index).setdefault(node_id, high_watermark))
        return ceiling

    def missed_from(self, topic_id: bytes, partition: Replicated) -> int:
        """The offset from which on the leader has nothing. NO_CEILING: it has all."""
        return self.ends.get((topic_id, partition.index), {}).get(partition.leader, NO_CEILING)

    def lost(self, topic_id: bytes, partition: Replicated, end_offset: int) -> None:
        """The log was cut to what its leader has: no follower has more."""
        ends = self.of(topic_id, partition.index)
        ends.pop(partition.leader, None)
        for node_id, end in ends.items():
            ends[node_id] = min(end, end_offset)

    def forget(self, topic_id: bytes, index: int) -> None:
        """The partition was deleted, with its log."""
        self.ends.pop((topic_id, index), None)
