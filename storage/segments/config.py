"""The settings of one log, under Kafka's names."""

from __future__ import annotations

from typing import NamedTuple

from protocol.record_batch import MAX_RECORD_BYTES

DAY_MS = 24 * 60 * 60 * 1000


class LogConfig(NamedTuple):
    """Kafka's topic settings that storage obeys; -1 means without limit where Kafka says so."""

    segment_bytes: int = 1 << 30
    segment_ms: int = 7 * DAY_MS
    segment_index_bytes: int = 10 << 20
    index_interval_bytes: int = 4096
    retention_ms: int = 7 * DAY_MS
    retention_bytes: int = -1
    cleanup_policy: frozenset[str] = frozenset({"delete"})
    min_cleanable_dirty_ratio: float = 0.5
    min_compaction_lag_ms: int = 0
    max_compaction_lag_ms: int = (1 << 63) - 1
    delete_retention_ms: int = DAY_MS
    max_message_bytes: int = 1048588
    max_record_bytes: int = MAX_RECORD_BYTES
    flush_messages: int = (1 << 63) - 1
    flush_ms: int = (1 << 63) - 1

    @property
    def roll_ms(self) -> int:
        """Age at which a segment is full. The active one is never cleaned, so the compaction lag counts too."""
        return min(self.segment_ms, self.max_compaction_lag_ms) if self.compacts else self.segment_ms

    @property
    def compacts(self) -> bool:
        """Whether cleanup.policy has compact."""
        return "compact" in self.cleanup_policy

    @property
    def deletes(self) -> bool:
        """Whether cleanup.policy has delete."""
        return "delete" in self.cleanup_policy
