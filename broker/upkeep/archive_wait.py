"""Keeps records from retention and the cleaner until the archive has them: `archive.retain.group`.

The archive's position in a log is what that group has committed for the partition: an ordinary offset, durable with the
log of its group and visible to every tool. Internal topics wait from the beginning, other topics from the group's first
commit on them. Deleted topics and DeleteRecords never wait, because a client asked for them. While the group's shard is
loading, everything waits. What was committed on an earlier topic of the same name says nothing about the new one.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import TYPE_CHECKING, Literal

from broker.cluster.topic_names import INTERNAL_TOPICS, OFFSETS_TOPIC
from broker.coordinator.offsets.table import ZERO_ID
from broker.coordinator.runtime import READY
from storage.cleaning.compaction import uncleanable_offset
from storage.cleaning.retention import expired

if TYPE_CHECKING:
    from broker.cluster.data.directory import DataDirectory
    from broker.config.settings import BrokerConfig
    from broker.coordinator.group_shards import GroupShards
    from broker.partitions.table import Partitions
    from broker.turn.turn import Turn
    from storage.log.log import Log
    from storage.segments.segment import Segment

logger = logging.getLogger("momus.archive")


class ArchiveWait:
    """Computes the limits of retention and cleaning, and counts the bytes kept for the archive alone."""

    def __init__(
        self,
        turn: Turn,
        config: BrokerConfig,
        directory: DataDirectory,
        groups: GroupShards,
        partitions: Partitions,
    ) -> None:
        self._turn = turn
        self._partitions = partitions
        self._config = config
        self._directory = directory
        self._groups = groups
        # (who would remove them, topic, partition) -> bytes kept, as of the last round
        self.held_bytes: dict[tuple[Literal["retention", "cleaner"], str, int], int] = {}

    def position(self, topic: str, index: int) -> int | None:
        """The first offset that is not archived; None: this log is not archived."""
        group_id = self._config.archive_retain_group
        if not group_id:
            return None
        shard = self._groups.of(group_id)
        if shard.state is READY:
            committed = shard.machine.offsets.get(group_id, topic, index)
            if committed is not None:
                known = self._partitions.metadata.topics.get(topic)
                is_earlier = known is not None and ZERO_ID != committed.topic_id != known.topic_id
                return 0 if is_earlier else int(committed.offset)
        elif self._directory.exists(OFFSETS_TOPIC, self._groups.index_of(group_id)):
            return 0
        return 0 if topic in INTERNAL_TOPICS else None

    def retention_limit(self, topic: str, index: int, log: Log, high_watermark: int) -> int:
        """The offset below which retention may delete."""
        position = self.position(topic, index)
        if position is None:
            self.held_bytes.pop(("retention", topic, index), None)
            return high_watermark
        limit = min(high_watermark, max(position, log.log_start_offset))
        now_ms = self._turn.now_ms
        waiting = log.segments[expired(log, now_ms, limit) : expired(log, now_ms, high_watermark)]
        return self._weigh("retention", topic, index, waiting, limit, high_watermark)

    def cleaning_limit(self, topic: str, index: int, log: Log, last_stable_offset: int) -> int:
        """The offset below which the cleaner may clean: the beginning of a segment, so that no commit is split."""
        position = self.position(topic, index)
        if position is None:
            self.held_bytes.pop(("cleaner", topic, index), None)
            return last_stable_offset
        limit = max((s.base_offset for s in log.segments if s.base_offset <= position), default=0)
        end = uncleanable_offset(log, self._turn.now_ms, last_stable_offset)
        waiting = [s for s in log.segments if max(limit, log.cleaned_offset) <= s.base_offset < end]
        return self._weigh("cleaner", topic, index, waiting, min(limit, last_stable_offset), last_stable_offset)

    def forget(self, topic: str) -> None:
        """The topic was deleted."""
        self.held_bytes = {key: held for key, held in self.held_bytes.items() if key[1] != topic}

    def _weigh(
        self,
        by: Literal["retention", "cleaner"],
        topic: str,
        index: int,
        waiting: Sequence[Segment],
        limit: int,
        limit_without: int,
    ) -> int:
        held = self.held_bytes[by, topic, index] = sum(segment.size for segment in waiting)
        most = self._config.archive_retain_max_bytes
        if not held or most < 0 or sum(self.held_bytes.values()) <= most:
            return limit
        self.held_bytes[by, topic, index] = 0
        logger.warning(
            "%s-%d: the %s no longer waits for group %s to archive %d bytes from offset %d on: more than "
            "archive.retain.max.bytes (%d) are held back; the archive will have a gap",
            topic, index, by, self._config.archive_retain_group, held, waiting[0].base_offset, most,
        )  # fmt: skip  # several to a line
        return limit_without
