"""Which requests a classic group accepts, by generation, member id and instance id: pure functions."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import TYPE_CHECKING, Final

from broker.coordinator.groups.classic.states import COMPLETING_REBALANCE, DEAD, EMPTY, PREPARING_REBALANCE, STABLE
from protocol.errors import ErrorCode

if TYPE_CHECKING:
    from broker.coordinator.groups.classic.group import ClassicGroup

NONE: Final = ErrorCode.NONE
TXN_NOT_FOUND_SINCE: Final = 6  # TxnOffsetCommit says GROUP_ID_NOT_FOUND


def check_member(group: ClassicGroup, member_id: str, group_instance_id: str | None) -> ErrorCode:
    """Whether a request comes from a member of the group.

    | instance id                   | member id  | result              |
    |-------------------------------|------------|---------------------|
    | none                          | known      | NONE                |
    | none                          | unknown    | UNKNOWN_MEMBER_ID   |
    | unknown                       | any        | UNKNOWN_MEMBER_ID   |
    | of this member id             | known      | NONE                |
    | of another member id          | any        | FENCED_INSTANCE_ID  |
    """
    if group_instance_id is not None:
        owner = group.static_members.get(group_instance_id)
        if owner is None:
            return ErrorCode.UNKNOWN_MEMBER_ID
        if owner != member_id:
            return ErrorCode.FENCED_INSTANCE_ID
    return NONE if member_id in group.members else ErrorCode.UNKNOWN_MEMBER_ID


def check_offset_commit(
    group: ClassicGroup | None,
    api_version: int,
    generation_id: int,
    member_id: str,
    group_instance_id: str | None,
    *,
    is_simple: bool = False,
) -> ErrorCode:
    """Whether an OffsetCommit is accepted. `is_simple`: it is a simple group; for `group` None only.

    | group                    | request                                         | result                           |
    |--------------------------|-------------------------------------------------|----------------------------------|
    | unknown, simple          | generation < 0                                  | NONE: a simple group is created  |
    | simple                   | generation >= 0                                 | UNKNOWN_MEMBER_ID                |
    | unknown                  | generation >= 0, from v9 on                     | GROUP_ID_NOT_FOUND               |
    | unknown                  | generation >= 0, before v9                      | ILLEGAL_GENERATION               |
    | Dead                     | any                                             | COORDINATOR_NOT_AVAILABLE        |
    | Empty                    | generation < 0, whatever the member             | NONE                             |
    | any                      | member, instance or generation >= 0: not a      | UNKNOWN_MEMBER_ID or             |
    |                          | member by check_member                          | FENCED_INSTANCE_ID               |
    | any                      | ... a member, another generation                | ILLEGAL_GENERATION               |
    | not Empty                | no member, no instance, generation < 0          | UNKNOWN_MEMBER_ID                |
    | CompletingRebalance      | ... a member of this generation                 | REBALANCE_IN_PROGRESS            |
    | Stable, Preparing        | ... a member of this generation                 | NONE                             |

    A simple group (groups/simple.py) counts as Empty without members, which gives the second row.
    Source: Kafka's OffsetMetadataManager.validateOffsetCommit and ClassicGroup.validateOffsetCommit.
    """
    if group is None:
        if generation_id < 0:
            return NONE
        if is_simple:
            return ErrorCode.UNKNOWN_MEMBER_ID
        return ErrorCode.GROUP_ID_NOT_FOUND if api_version >= 9 else ErrorCode.ILLEGAL_GENERATION
    state = group.state
    if state is DEAD:
        return ErrorCode.COORDINATOR_NOT_AVAILABLE
    if generation_id < 0 and state is EMPTY:
        return NONE
    if generation_id < 0 and not member_id and group_instance_id is None:
        return ErrorCode.UNKNOWN_MEMBER_ID
    error = check_member(group, member_id, group_instance_id)
    if error is not NONE:
        return error
    if generation_id != group.generation_id:
        return ErrorCode.ILLEGAL_GENERATION
    return ErrorCode.REBALANCE_IN_PROGRESS if state is COMPLETING_REBALANCE else NONE


def check_txn_offset_commit(
    group: ClassicGroup | None,
    api_version: int,
    generation_id: int,
    member_id: str,
    group_instance_id: str | None,
    *,
    is_simple: bool = False,
) -> ErrorCode:
    """Whether a TxnOffsetCommit is accepted: as OffsetCommit, but a producer may leave out all about the group.

    | group                | request                                     | result                                   |
    |----------------------|---------------------------------------------|------------------------------------------|
    | unknown, simple      | generation < 0                              | NONE                                     |
    | simple               | generation >= 0                             | UNKNOWN_MEMBER_ID                        |
    | unknown              | generation >= 0                             | GROUP_ID_NOT_FOUND; v0-5: ILLEGAL_...    |
    | Dead                 | any                                         | COORDINATOR_NOT_AVAILABLE                |
    | Empty                | generation < 0                              | NONE                                     |
    | any                  | no member, no instance, generation < 0      | NONE                                     |
    | any                  | else: not a member by check_member          | UNKNOWN_MEMBER_ID or FENCED_INSTANCE_ID  |
    | any                  | ... a member, another generation            | ILLEGAL_GENERATION                       |
    | any                  | ... a member of this generation             | NONE, also in CompletingRebalance        |
    """
    if group is None:
        if generation_id < 0:
            return NONE
        if is_simple:
            return ErrorCode.UNKNOWN_MEMBER_ID
        is_told = api_version >= TXN_NOT_FOUND_SINCE
        return ErrorCode.GROUP_ID_NOT_FOUND if is_told else ErrorCode.ILLEGAL_GENERATION
    if group.state is DEAD:
        return ErrorCode.COORDINATOR_NOT_AVAILABLE
    if generation_id < 0 and (group.state is EMPTY or (not member_id and group_instance_id is None)):
        return NONE
    error = check_member(group, member_id, group_instance_id)
    if error is not NONE:
        return error
    return NONE if generation_id == group.generation_id else ErrorCode.ILLEGAL_GENERATION


def on_offset_commit_accepted(
    group: ClassicGroup, member_id: str, now_ms: int
) -> Sequence[tuple[Hashable, int | None]]:
    """The timers that an accepted OffsetCommit sets: the session timeout of the member starts again."""
    if group.state is not STABLE and group.state is not PREPARING_REBALANCE:
        return ()
    member = group.members[member_id]
    return ((member.session_timer, now_ms + member.session_timeout_ms),)
