"""Whether the epochs of a consumer or streams group are in their order.

    assignment epoch of a partition or task <= member epoch <= assignment epoch <= group epoch

Looked at is no more than what records of one batch may have put out of order: this runs after every one of them.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Any, Final, Protocol

THE_GROUP: Final = ""  # among ids of members: the group itself


class Group(Protocol):
    """A group with members that follow its epochs."""

    group_epoch: int
    assignment_epoch: int

    @property
    def members(self) -> Mapping[str, Any]:
        """By member id."""


def epoch_inconsistencies(
    group: Group, member_ids: Collection[str], held: Callable[[Any], Iterable[Mapping[int, int]]], what: str
) -> list[str]:
    """Where the order does not hold for these members; who is none counts as in order.

    With THE_GROUP among them, all members are looked at, but not what they hold. `held`: the assignment epochs in what
    is currently a member's; `what`: what these are of.
    """
    found = []
    limit, members = group.assignment_epoch, group.members
    if limit > group.group_epoch:
        found.append(f"assignment epoch {limit} is above group epoch {group.group_epoch}")
    touched = [members[m] for m in member_ids if m in members]
    for member in members.values() if THE_GROUP in member_ids else touched:
        epoch = member.current.member_epoch
        if epoch > limit:
            found.append(f"member {member.member_id} is at {epoch}, above {limit}")
    for member in touched:
        epoch = member.current.member_epoch
        for epochs in held(member.current):
            if max(epochs.values(), default=0) > epoch:
                found.append(f"a member at {epoch} has {what} assigned at {epochs}")
    return found
