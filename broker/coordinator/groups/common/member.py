"""A member of a consumer or streams group: its two records, and the timers it may have."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, ClassVar, Final

from protocol.errors import ErrorCode, KafkaError

JOINING_EPOCH: Final = 0
LEAVING_EPOCH: Final = -1  # sent by a member that leaves; also the epoch of one whose current assignment is deleted
STATIC_LEAVING_EPOCH: Final = -2  # sent by a static member that will be back

Timer = tuple[str, str, str]  # kind, group id, member id


class ModernMember:
    """A member. Replay alone replaces `member_metadata` and `current`; both are values, and never changed in place."""

    __slots__ = ("current", "member_id", "member_metadata", "rebalance_timer", "session_timer")

    VOLATILE: ClassVar[Mapping[str, str]] = {}

    current: Any
    member_metadata: Any

    def __init__(self, group_id: str, member_id: str, member_metadata: object, current: object) -> None:
        self.member_id = member_id
        self.member_metadata = member_metadata
        self.current = current
        self.session_timer: Timer = ("session", group_id, member_id)
        self.rebalance_timer: Timer = ("rebalance", group_id, member_id)

    @property
    def uses_classic_protocol(self) -> bool:
        """Whether the member takes part by JoinGroup, SyncGroup and Heartbeat."""
        return False

    def timers(self) -> Iterable[Timer]:
        """Every timer that may run for the member."""
        return self.session_timer, self.rebalance_timer


def check_other_epoch(current: Any, epoch: int, what: str, *, owns_only_assigned: bool) -> None:
    """Refuse a heartbeat with another member epoch than the member's, unless the last response was lost.

    owns_only_assigned: the heartbeat lists what the member owns, and all of it is assigned to the member.
    what:               "partitions" or "tasks", for the message.

    | epoch received     | previous member epoch | owns_only_assigned | result                    |
    |--------------------|-----------------------|--------------------|---------------------------|
    | below the member's | the one received      | yes                | accepted: a lost response |
    | below the member's | the one received      | no                 | FENCED_MEMBER_EPOCH       |
    | below the member's | another one           | any                | FENCED_MEMBER_EPOCH       |
    | above the member's | any                   | any                | FENCED_MEMBER_EPOCH       |
    """
    if epoch > current.member_epoch or epoch != current.previous_member_epoch or not owns_only_assigned:
        raise KafkaError(
            ErrorCode.FENCED_MEMBER_EPOCH,
            f"the member's epoch is {current.member_epoch}, not {epoch}: it must give up its {what} and rejoin",
        )


def note_revocation(before: Any, after: Any) -> Any:
    """The assignment `after` with the epoch that the member left if it gave something back with this step.

    Only for group.commit.fencing=revocation-epoch, an earlier design of KAFKA-19779.
    """
    if after.member_epoch <= before.member_epoch:
        return after
    gave_back = any(
        not epochs.keys() <= after.assigned_epochs.get(key, {}).keys()
        for part in (before.assigned_epochs, before.pending_epochs)
        for key, epochs in part.items()
    )
    return after._replace(revocation_epoch=max(before.member_epoch, 0)) if gave_back else after
