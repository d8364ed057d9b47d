"""A classic group within a rebalance, and the codes that its members are told."""

from __future__ import annotations

from protocol.errors import ErrorCode

REBALANCE = ErrorCode.REBALANCE_IN_PROGRESS

UNKNOWN = ErrorCode.UNKNOWN_MEMBER_ID


def completing(h, members=2, **how):
    """A group that waits for its SyncGroups; leader first."""
    replies = [h.join(h.new_id(**how), **how) for _ in range(members)]
    h.advance()
    assert h.state() == "CompletingRebalance"
    return [r.member_id for r in replies]
