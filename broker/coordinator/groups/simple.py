"""Simple groups: committed offsets without members, and so without a record of their own.

Such a group is made by its first commit and costs nothing but its offsets. It outlives them: until the next check of
expired offsets it is Empty, and can be deleted. Two kinds of simple group have no offset:

    emptied   the last offset is gone: deleted, expired in part, or aborted. The records of that offset make the group
              again at a start, until a check has written the group's tombstone.
    refused   its only commit was refused after the group had been looked up. No record says so: a restart forgets it.
              As in Kafka, requests that write know it at once, those that read once the log has grown.

Source: Kafka's OffsetMetadataManager.validateOffsetCommit and replay, GroupCoordinatorShard.cleanupGroupMetadata.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, ClassVar

if TYPE_CHECKING:
    from broker.coordinator.offsets.table import OffsetTable


class SimpleGroups:
    """The simple groups of one shard; a group with members or a record may be among them."""

    __slots__ = ("_refused", "_table")

    VOLATILE: ClassVar[Mapping[str, str]] = {"_refused": "no record holds these groups"}

    def __init__(self, table: OffsetTable) -> None:
        self._table = table
        self._refused: dict[str, int] = {}  # group -> where the log ended when its commit was refused

    def __contains__(self, group_id: object) -> bool:
        return self._has_record(group_id) or group_id in self._refused

    def is_shown(self, group_id: str, log_end: int) -> bool:
        """Whether a request that only reads finds the group. `log_end`: where the shard's log ends."""
        return self._has_record(group_id) or self._refused.get(group_id, log_end) < log_end

    def ids(self) -> Iterator[str]:
        """All of them."""
        yield from self._table.group_ids()
        yield from self._table.emptied
        yield from (group_id for group_id in self._refused if not self._has_record(group_id))

    def _has_record(self, group_id: object) -> bool:
        """Whether records of offsets make the group, though none may be left. The two sets are disjoint."""
        return self._table.has_group(group_id) or group_id in self._table.emptied

    def make(self, group_id: str, log_end: int) -> None:
        """A commit to an unknown group is refused: the group is there now."""
        if group_id not in self:
            self._refused[group_id] = log_end

    def replay_tombstone(self, group_id: str) -> None:
        """A group is deleted; its offsets have tombstones of their own."""
        self._table.replay_gone(group_id)
        self._refused.pop(group_id, None)
