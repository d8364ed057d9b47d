"""The rules of group.commit.fencing against one another, over all small epochs."""

from __future__ import annotations

from itertools import product

import pytest

from broker.coordinator.groups.common.assignment_epoch_checks import (
    ASSIGNMENT_EPOCH,
    ASSIGNMENT_EPOCH_EXACT,
    NOT_ASSIGNED,
    REVOCATION_EPOCH,
    STRICT,
    check_commit,
    check_txn_commit,
    may_commit,
)
from protocol.errors import ErrorCode

EPOCHS = range(-2, 6)
CASES = [
    (client, member, epochs)
    for client, member in product(EPOCHS, EPOCHS)
    for n in range(3)
    for epochs in product((0, 2, 4, NOT_ASSIGNED), repeat=n)
]


@pytest.mark.parametrize("fencing", [ASSIGNMENT_EPOCH, ASSIGNMENT_EPOCH_EXACT, STRICT])
def test_truth_table_of_a_rule(fencing):
    for client, member, epochs in CASES:
        highest = max(epochs, default=-9)
        wanted = {
            ASSIGNMENT_EPOCH: client == member or highest <= client < member,
            ASSIGNMENT_EPOCH_EXACT: highest <= client <= member,
            STRICT: client == member,
        }[fencing]
        assert may_commit(fencing, client, member, epochs) is wanted, (client, member, epochs)


def test_truth_table_of_the_earlier_design():
    for client, member, epochs in CASES:
        for revoked in range(5):
            wanted = revoked < client <= member
            assert may_commit(REVOCATION_EPOCH, client, member, epochs, revoked) is wanted


def test_exact_and_strict_accept_nothing_that_the_default_refuses():
    for client, member, epochs in CASES:
        if not may_commit(ASSIGNMENT_EPOCH, client, member, epochs):
            assert not may_commit(ASSIGNMENT_EPOCH_EXACT, client, member, epochs)
            assert not may_commit(STRICT, client, member, epochs)


def test_partitions_that_cannot_be_looked_at_are_refused_unless_they_do_not_matter():
    for client, member, _ in CASES:
        assert may_commit(ASSIGNMENT_EPOCH, client, member, None) is (client == member)
        assert may_commit(ASSIGNMENT_EPOCH_EXACT, client, member, None) is False
        assert may_commit(STRICT, client, member, None) is (client == member)


def test_partitions_are_not_looked_at_when_they_do_not_matter():
    def never():
        raise AssertionError("looked at")
        yield 0

    assert may_commit(ASSIGNMENT_EPOCH, 5, 5, never())
    assert not may_commit(ASSIGNMENT_EPOCH, 6, 5, never())
    assert may_commit(STRICT, 5, 5, never())


@pytest.mark.parametrize("epoch", [-2, -1, 0, 1])
@pytest.mark.parametrize("has_members", [False, True])
def test_commit_of_nobody_is_accepted_without_an_epoch_and_without_members(epoch, has_members):
    accepted = epoch < 0 and not has_members
    expected = ErrorCode.NONE if accepted else ErrorCode.UNKNOWN_MEMBER_ID
    for version in (8, 9):
        assert check_commit(STRICT, version, epoch, None, has_members=has_members) is expected
    assert check_txn_commit(STRICT, epoch, "m", None, None, has_members=has_members) is expected
    expected = ErrorCode.NONE if accepted or epoch == -1 else ErrorCode.UNKNOWN_MEMBER_ID
    assert check_txn_commit(STRICT, epoch, "", None, None, has_members=has_members) is expected
