"""The steps that a heartbeat takes alike in consumer and streams groups.

A step reads the group and writes records; what it decides is kept in its own slots until the records are replayed.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from broker.coordinator.groups.common.assignment_epoch_checks import REVOCATION_EPOCH
from broker.coordinator.groups.common.member import note_revocation

if TYPE_CHECKING:
    from broker.coordinator.groups.common.member import ModernMember
    from broker.coordinator.groups.common.outcome import Outcome
    from broker.turn.decision import Record


class HeartbeatStep:
    """One request of one member: what it finds, and what the member and the group will be after it.

    member_metadata, current   the member's, as they will be
    before                     the member's current assignment, as it was
    target, target_epoch       the member's target assignment, and the group epoch it was computed for
    """

    __slots__ = ("before", "current", "group_epoch", "member", "member_metadata", "out", "target", "target_epoch")

    member: Any
    member_metadata: Any
    before: Any
    current: Any
    target: Any
    target_epoch: int
    group_epoch: int
    out: Outcome

    def use_member(self, member: ModernMember) -> None:
        """Go on with this member."""
        self.member = member
        self.member_metadata = member.member_metadata
        self.before = self.current = member.current

    def write_current(self, group_id: str, after: Any, current_record: Callable[[str, str, Any], Record]) -> bool:
        """Log the member's next current assignment; whether it is another one than before."""
        before = self.current
        if self.out.config.group_commit_fencing == REVOCATION_EPOCH:
            after = note_revocation(before, after)
        elif after.revocation_epoch:  # logged while that was the mode
            after = after._replace(revocation_epoch=0)
        if after == before:
            return False
        self.current = after
        self.out.records.append(current_record(group_id, self.member.member_id, after))
        return True

    def set_rebalance_timer(self, *, is_revoking: bool) -> None:
        """Give the member its rebalance timeout to revoke what it has to, or stop the timer."""
        if is_revoking:
            self.out.set_timer(self.member.rebalance_timer, self.member_metadata.rebalance_timeout_ms)
        else:
            self.out.cancel_timer(self.member.rebalance_timer)
