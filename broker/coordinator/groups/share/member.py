"""One member of a share group: two values, each the content of one record.

    MemberMetadata     ShareGroupMemberMetadata: subscription, client
    CurrentAssignment  ShareGroupCurrentMemberAssignment: epochs, partitions

A partition may belong to several members at once, so no member waits for another: a member takes its whole target with
its next heartbeat.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final, NamedTuple

from broker.coordinator.groups.assignors.spec import UNASSIGNED, Assignment
from broker.coordinator.groups.common.member import LEAVING_EPOCH, ModernMember, Timer

STABLE: Final = 0  # the only state that a share group's member is in
NO_EPOCHS: Final[Mapping[bytes, Mapping[int, int]]] = {}


class MemberMetadata(NamedTuple):
    """What a member has told about itself."""

    rack_id: str | None = None
    client_id: str = ""
    client_host: str = ""
    topic_names: frozenset[str] = frozenset()


class CurrentAssignment(NamedTuple):
    """The epochs of a member, and the partitions it has."""

    member_epoch: int = 0
    previous_member_epoch: int = -1
    assigned: Assignment = UNASSIGNED
    state: int = STABLE

    @property
    def assigned_epochs(self) -> Mapping[bytes, Mapping[int, int]]:
        """None: share groups have no committed offsets, so partitions have no assignment epochs."""
        return NO_EPOCHS

    @property
    def pending_epochs(self) -> Mapping[bytes, Mapping[int, int]]:
        """None: nothing waits to be revoked."""
        return NO_EPOCHS


NO_METADATA: Final = MemberMetadata()
FIRST_ASSIGNMENT: Final = CurrentAssignment()
DELETED_ASSIGNMENT: Final = CurrentAssignment(member_epoch=LEAVING_EPOCH, previous_member_epoch=LEAVING_EPOCH)


class ShareMember(ModernMember):
    """A member of a share group."""

    __slots__ = ()

    current: CurrentAssignment
    member_metadata: MemberMetadata

    def __init__(
        self,
        group_id: str,
        member_id: str,
        member_metadata: MemberMetadata = NO_METADATA,
        current: CurrentAssignment = FIRST_ASSIGNMENT,
    ) -> None:
        super().__init__(group_id, member_id, member_metadata, current)

    def timers(self) -> Iterable[Timer]:
        """Every timer that may run for the member."""
        return (self.session_timer,)
