"""How far the members of a streams group have the state of tasks: sums of changelog offsets, as they report them.

They are kept in memory only and are gone with the member or a restart, in Kafka too; members report them again. Nothing
checks whether the topology has the task. The assignor prefers who has more of a task's state.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Final, NamedTuple, TypeAlias

from protocol.errors import ErrorCode, KafkaError

if TYPE_CHECKING:
    from protocol.messages.streams_group import StreamsGroupHeartbeatRequestTaskOffset as Reported

OffsetByTask: TypeAlias = Mapping[tuple[str, int], int]  # (subtopology, partition) -> offset

NO_OFFSETS: Final[OffsetByTask] = {}


class TaskOffsets(NamedTuple):
    """What a member has reported: where its copies of the changelogs are, and where the changelogs end."""

    offsets: OffsetByTask = NO_OFFSETS
    end_offsets: OffsetByTask = NO_OFFSETS

    def updated(self, offsets: Sequence[Reported] | None, end_offsets: Sequence[Reported] | None) -> TaskOffsets:
        """These, with each list that is not null in place of the one before. Errors: INVALID_REQUEST: a task twice."""
        return TaskOffsets(
            self.offsets if offsets is None else _by_task(offsets),
            self.end_offsets if end_offsets is None else _by_task(end_offsets),
        )


NONE_REPORTED: Final = TaskOffsets()


def _by_task(reported: Sequence[Reported]) -> OffsetByTask:
    found: dict[tuple[str, int], int] = {}
    for each in reported:
        task = each.subtopology_id, each.partition
        if task in found:
            raise KafkaError(
                ErrorCode.INVALID_REQUEST,
                f"Task offsets contain a duplicate entry for subtopology {each.subtopology_id} and partition "
                f"{each.partition}.",
            )
        found[task] = each.offset
    return found
