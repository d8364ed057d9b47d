"""The states of a classic group, and which may follow which.

Empty                no members: made by the first JoinGroup, or when the last member has left
PreparingRebalance   members are to join again; their JoinGroups are parked until all have, or a timeout passes
CompletingRebalance  a new generation is chosen; SyncGroups are parked until the leader's brings the assignment
Stable               every member can have its assignment
Dead                 deleted. No group is found in this state; DescribeGroups shows unknown groups as Dead
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from typing import Final


class State(Enum):
    """The states of a classic group; the value is what clients see."""

    EMPTY = "Empty"
    PREPARING_REBALANCE = "PreparingRebalance"
    COMPLETING_REBALANCE = "CompletingRebalance"
    STABLE = "Stable"
    DEAD = "Dead"


EMPTY: Final = State.EMPTY
PREPARING_REBALANCE: Final = State.PREPARING_REBALANCE
COMPLETING_REBALANCE: Final = State.COMPLETING_REBALANCE
STABLE: Final = State.STABLE
DEAD: Final = State.DEAD
TRANSITIONS: Final[Mapping[State, frozenset[State]]] = {
    EMPTY: frozenset({PREPARING_REBALANCE, DEAD}),
    PREPARING_REBALANCE: frozenset({COMPLETING_REBALANCE, EMPTY, DEAD}),
    COMPLETING_REBALANCE: frozenset({STABLE, PREPARING_REBALANCE, DEAD}),
    STABLE: frozenset({PREPARING_REBALANCE, DEAD}),
    DEAD: frozenset(),
}
