"""Where a seek moves a group's offset: one rule for `momus group seek` and the control plane's seek.

    word        without a committed offset    beyond what the log holds
    earliest    the first offset              -
    latest      the end                       -
    offset N    N                             the nearest end of the log
    shift N     refused                       the nearest end of the log
    time        the first record that is not older, or else the end
    current     the end                       stays as it is

Source: KIP-122, KIP-175, and kafka-consumer-groups of Kafka 4.3.1, with which a test compares this.
"""

from __future__ import annotations

from typing import NamedTuple


class Facts(NamedTuple):
    """What is known of a partition; None: nothing committed, not asked for, or no record that is not older."""

    committed: int | None
    first: int
    end: int
    at_time: int | None = None


class Target(NamedTuple):
    """Where a partition goes, and what there is to say about it."""

    offset: int
    remark: str | None = None


def target(word: str, number: int, facts: Facts) -> Target:
    """Where a partition's offset goes. `number`: of offset and shift. Errors: ValueError: nothing to shift."""
    match word:
        case "earliest":
            return Target(facts.first)
        case "latest":
            return Target(facts.end)
        case "current":
            return (
                Target(facts.end, "nothing committed: the end") if facts.committed is None else Target(facts.committed)
            )
        case "time":
            return Target(facts.end, "no record is as new: the end") if facts.at_time is None else Target(facts.at_time)
        case "shift":
            if facts.committed is None:
                raise ValueError("nothing is committed that could be shifted")
            return _within(facts.committed + number, facts)
        case _:
            return _within(number, facts)


def _within(offset: int, facts: Facts) -> Target:
    if offset < facts.first:
        return Target(facts.first, f"{offset} is below the first offset {facts.first}")
    if offset > facts.end:
        return Target(facts.end, f"{offset} is above the end {facts.end}")
    return Target(offset)
