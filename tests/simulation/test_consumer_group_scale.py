"""A group of 1,000 members over 10,000 partitions (a fifth of that in the gate), in virtual time: how many heartbeats
until all have their share."""

from __future__ import annotations

import random

import pytest
from budget import slow
from consumer_kit import Groups, Member

HEARTBEAT_MS, SESSION_MS = 5_000, 45_000
ROUNDS = 4  # heartbeat intervals


def beat_all(groups: Groups, members: list[Member]) -> None:
    """One heartbeat of each, spread over the interval."""
    for n, member in enumerate(members):
        if n % 100 == 0:
            groups.advance(min(HEARTBEAT_MS, HEARTBEAT_MS * 100 // len(members)))
        member.beat()


def rounds_to_share(groups: Groups, members: list[Member], partitions: int) -> int:
    """Heartbeat intervals until every partition has its owner, and all are at the group's epoch."""
    for n in range(1, 20):
        beat_all(groups, members)
        group = groups.group()
        if group.state.value == "Stable" and sum(m.count() for m in members) == partitions:
            assert len({p for m in members for t in m.owned for p in m.owned[t]}) <= partitions
            return n
    raise AssertionError("they never share")


@pytest.mark.heavy
@pytest.mark.parametrize("count", [200, slow(1_000)])
@pytest.mark.parametrize("is_mixed", [False, True], ids=["one topic", "mixed subscriptions"])
def test_members_share_ten_partitions_each_within_four_heartbeats(is_mixed, count):
    partitions, killed = 10 * count, count // 10
    chance = random.Random(1)
    names = [f"t{i}" for i in range(10)] if is_mixed else ["t"]
    groups = Groups({name: partitions // len(names) for name in names})
    members = [
        groups.member(f"m{i:04}", topics=chance.sample(names, chance.randint(1, len(names)))) for i in range(count)
    ]
    for member in members:
        member.join()
    assert rounds_to_share(groups, members, partitions) <= ROUNDS

    living = members[killed:]
    killed_at_ms = groups.world.clock.now_ms()
    while groups.world.clock.now_ms() - killed_at_ms < SESSION_MS:
        beat_all(groups, living)
    assert len(groups.group().members) == count - killed
    assert rounds_to_share(groups, living, partitions) <= ROUNDS
    sizes = [m.count() for m in living]
    assert max(sizes) - min(sizes) <= (2 if is_mixed else 1)
    assert groups.group().inconsistencies() == []
