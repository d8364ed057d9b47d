"""Which commits and fetches a consumer or streams group accepts, by member and assignment epochs (KAFKA-19779).

The assignment epoch of a member's partition is the epoch at which it was assigned to the member. A commit with an older
member epoch is accepted if the member had the partition at that epoch already, and still has it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Final

from protocol.errors import ErrorCode

NOT_ASSIGNED: Final = 2**31 - 1  # the assignment epoch of a partition that is not the member's
MEMBER_EPOCHS_SINCE: Final = 9  # OffsetCommit: before, the field held a generation

ASSIGNMENT_EPOCH: Final = "assignment-epoch"
ASSIGNMENT_EPOCH_EXACT: Final = "assignment-epoch-exact"
REVOCATION_EPOCH: Final = "revocation-epoch"
STRICT: Final = "strict"

# Yields topic name, topic id and partition; called only where the answer depends on them.
CommittedPartitions = Callable[[], Iterable[tuple[str, bytes, int]]]

NONE = ErrorCode.NONE


def may_commit(
    fencing: str,
    client_epoch: int,
    member_epoch: int,
    assignment_epochs: Iterable[int] | None,
    revocation_epoch: int = 0,
) -> bool:
    """Whether a member may commit some partitions, by one of four rules (`group.commit.fencing`).

    C: the epoch in the request. E: the member epoch on the broker. A: the highest assignment epoch of the partitions,
    NOT_ASSIGNED if one is not the member's. R: the epoch the member left when it last gave partitions back.

    |                | assignment-epoch | assignment-epoch-exact | revocation-epoch | strict |
    |----------------|------------------|------------------------|------------------|--------|
    | C > E          | no               | no                     | no               | no     |
    | C = E, A <= C  | yes              | yes                    | if R < C         | yes    |
    | C = E, A > C   | yes              | no                     | if R < C         | yes    |
    | C < E, A <= C  | yes              | yes                    | if R < C         | no     |
    | C < E, A > C   | no               | no                     | if R < C         | no     |

    The first column is what Apache Kafka does since 4.3: at the current epoch the partitions do not matter. The second
    is the rule A <= C <= E to the letter, the third an earlier design with one epoch per member, the fourth what Kafka
    did before. `assignment_epochs` of None stands for partitions that are not known here: the
    answer is then no where it depends on them.
    """
    if client_epoch > member_epoch:
        return False
    if fencing == STRICT:
        return client_epoch == member_epoch
    if fencing == REVOCATION_EPOCH:
        return revocation_epoch < client_epoch
    if client_epoch == member_epoch and fencing == ASSIGNMENT_EPOCH:
        return True
    return assignment_epochs is not None and all(epoch <= client_epoch for epoch in assignment_epochs)


class Committer:
    """The epochs of the member that commits; `assignment_epochs`: those of the committed partitions."""

    __slots__ = ("assignment_epochs", "is_classic", "member_epoch", "revocation_epoch")

    def __init__(
        self,
        member_epoch: int,
        assignment_epochs: Iterable[int] | None,
        *,
        is_classic: bool = False,
        revocation_epoch: int = 0,
    ) -> None:
        self.member_epoch = member_epoch
        self.assignment_epochs = assignment_epochs
        self.is_classic = is_classic
        self.revocation_epoch = revocation_epoch


def check_commit(
    fencing: str, api_version: int, client_epoch: int, member: Committer | None, *, has_members: bool
) -> ErrorCode:
    """Whether an OffsetCommit of a consumer or streams group is accepted; `member` is None when it is unknown.

    | request                                      | result                                                       |
    |----------------------------------------------|--------------------------------------------------------------|
    | epoch < 0, group without members             | NONE: an administrator, or a client without group management |
    | unknown member                               | UNKNOWN_MEMBER_ID (the instance id does not matter)          |
    | below v9, member not of the classic protocol | UNSUPPORTED_VERSION                                          |
    | may_commit                                   | NONE                                                         |
    | else                                         | STALE_MEMBER_EPOCH; ILLEGAL_GENERATION for classic members   |
    """
    if client_epoch < 0 and not has_members:
        return NONE
    if member is None:
        return ErrorCode.UNKNOWN_MEMBER_ID
    if api_version < MEMBER_EPOCHS_SINCE and not member.is_classic:
        return ErrorCode.UNSUPPORTED_VERSION
    if may_commit(fencing, client_epoch, member.member_epoch, member.assignment_epochs, member.revocation_epoch):
        return NONE
    return ErrorCode.ILLEGAL_GENERATION if member.is_classic else ErrorCode.STALE_MEMBER_EPOCH


def check_txn_commit(
    fencing: str,
    client_epoch: int,
    member_id: str,
    group_instance_id: str | None,
    member: Committer | None,
    *,
    has_members: bool,
) -> ErrorCode:
    """Whether a TxnOffsetCommit is accepted: as check_commit, in any version.

    A producer that names no member (epoch -1, no member id, no instance id) is accepted.
    """
    if client_epoch < 0 and not has_members:
        return NONE
    if client_epoch == -1 and not member_id and group_instance_id is None:
        return NONE
    return check_commit(fencing, MEMBER_EPOCHS_SINCE, client_epoch, member, has_members=True)


def check_fetch(member_id: str | None, client_epoch: int, member: Committer | None) -> ErrorCode:
    """Whether an OffsetFetch of a consumer or streams group is answered.

    | member id | epoch  | member   | result                                                            |
    |-----------|--------|----------|-------------------------------------------------------------------|
    | null      | < 0    | any      | NONE                                                              |
    | any       | any    | unknown  | UNKNOWN_MEMBER_ID                                                 |
    | any       | its own| known    | NONE                                                              |
    | any       | other  | known    | STALE_MEMBER_EPOCH; ILLEGAL_GENERATION for classic members        |
    """
    if member_id is None and client_epoch < 0:
        return NONE
    if member is None:
        return ErrorCode.UNKNOWN_MEMBER_ID
    if client_epoch == member.member_epoch:
        return NONE
    return ErrorCode.ILLEGAL_GENERATION if member.is_classic else ErrorCode.STALE_MEMBER_EPOCH
