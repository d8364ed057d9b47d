"""A share group at work, killed at every single change it makes to the disk, and started again.

What was acknowledged to a member is not delivered again; what was not is delivered; a delivery count that a member was
told of a record given back does not go back. What was rejected is in the dead-letter queue, perhaps twice. At `os` the
process dies; at `fsync` the power goes, with all that was not synced.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass, field
from typing import Any

import pytest
from budget import slow
from core_broker import Client, SimulatedCrash, World, make_topic
from unit.coordinator.share.kit import GROUP, Member
from unit.coordinator.share.letters_kit import AUTO_CREATE, QUEUE, TOPIC_NAME, LettersWorld

from protocol.errors import ErrorCode
from storage.files.sim_env import sim_env
from storage.files.sim_faults import ALL_KINDS

RECORDS = 12
SETTINGS = {
    "share_coordinator_state_topic_num_partitions": "2",
    "share_coordinator_snapshot_update_records_per_snapshot": "2",
    "share_coordinator_state_topic_prune_interval_ms": "1000",
    "share_coordinator_cold_partition_snapshot_interval_ms": "3000",
    "offsets_topic_num_partitions": "2",
    AUTO_CREATE.replace(".", "_"): "true",
}


@dataclass
class Seen:
    """What the members were told, by offset."""

    done: set[int] = field(default_factory=set)  # accepted or rejected, and told so
    asked: set[int] = field(default_factory=set)  # the same, without an answer yet
    rejected: set[int] = field(default_factory=set)  # of those
    counts: dict[int, int] = field(default_factory=dict)  # delivery counts of records given back, and told so
    begun: bool = False  # the group's setting and the first records are there


class Killed(LettersWorld):
    """A world whose disk kills the process at some operation."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.client = Client(world)


def acknowledge(member: Member, seen: Seen, first: int, last: int, kind: int, count: int) -> None:
    offsets = set(range(first, last + 1))
    if kind != 2:
        seen.asked |= offsets
    if kind == 3:
        seen.rejected |= offsets
    assert member.ack_error((first, last, [kind])) == 0
    if kind == 2:
        seen.counts.update(dict.fromkeys(offsets, count))
    else:
        seen.done |= offsets
        seen.asked -= offsets


def session(world: World, seen: Seen) -> None:
    """Two members: one accepts, rejects and releases, the other one hangs until its locks expire."""
    share = Killed(world)
    make_topic(share.client, "t")
    assert share.set(**{"share.auto.offset.reset": "earliest", TOPIC_NAME: QUEUE}) == 0
    share.produce(*[3] * 4)
    seen.begun = True
    a, b = share.reader("a"), share.reader("b")
    for round_ in range(3):
        for first, last, count in a.acquired(max_records=3):
            acknowledge(a, seen, first, first, (1, 3, 2)[round_], count)
            if last > first:
                acknowledge(a, seen, first + 1, last, (2, 1, 1)[round_], count)
        b.acquired(max_records=2, share_acquire_mode=1)
        world.advance(31_000)
        a.beat()
        b.beat()
    b.fetch(epoch=-1)
    world.advance(2_000)


def run(flush: str, env: Any, seen: Seen) -> World | None:
    """A world that has been through the session; None: it was killed."""
    try:
        world = World(flush, env, **SETTINGS)
        session(world, seen)
    except SimulatedCrash:
        return None
    return world


def check(world: World, seen: Seen) -> None:
    """Everything that is not done is delivered, and nothing else, with counts that have not gone back."""
    if not seen.begun:
        return
    share = Killed(world)
    member = share.member("c")
    for _ in range(3):
        reply = member.join() if not member.epoch else member.beat()
        assert reply.error_code == ErrorCode.NONE
    delivered: dict[int, int] = {}
    for _ in range(60):
        found = member.acquired()
        for first, last, count in found:
            delivered.update(dict.fromkeys(range(first, last + 1), count))
        if not found:
            break
    assert not seen.done & delivered.keys(), f"delivered again: {sorted(seen.done & delivered.keys())}"
    missing = set(range(RECORDS)) - seen.done - seen.asked - delivered.keys()
    assert not missing, f"lost: {sorted(missing)}"
    letters = {offset for offset, _ in share.offsets()}
    given_up = seen.rejected - delivered.keys()
    assert given_up <= letters <= seen.rejected, f"letters: {letters}, given up: {given_up}"
    assert not share.under_way
    for offset, count in seen.counts.items():
        if offset in delivered:
            assert delivered[offset] > count, f"{offset} was delivered {count} times, and now {delivered[offset]}"
    share.check_replay()


@pytest.mark.parametrize(
    ("flush", "kinds", "short_bytes", "step"),
    [
        pytest.param("os", ("write",), 0, 3, id="os-write-3rd"),
        pytest.param("fsync", ALL_KINDS, 0, 5, id="fsync-any-5th"),
        pytest.param("os", ("write",), 70, 5, id="os-torn-write-5th"),
        slow("os", ALL_KINDS, 0, 1, name="os-any"),
        slow("fsync", ALL_KINDS, 0, 1, name="fsync-any"),
        slow("os", ("write",), 70, 1, name="os-torn-write"),
        slow("fsync", ("write",), 70, 1, name="fsync-torn-write"),
    ],
)
def test_share_group_killed_at_any_change_of_the_disk_goes_on(flush, kinds, short_bytes, step):
    lose = flush == "fsync"
    for nth in itertools.count(1, step):
        env, seen = sim_env(3), Seen()
        env.files.kill_at(nth, short_bytes=short_bytes, kinds=kinds)
        if run(flush, env, seen) is not None:
            break
        files = env.files.crash(lose_unsynced=lose)
        try:
            check(World(flush, sim_env(nth, env.clock.now_ms() + 1000, files), **SETTINGS), seen)
        except BaseException as error:
            error.add_note(f"killed at operation {nth}, {short_bytes} bytes of it written; {GROUP}: {seen}")
            raise
    assert nth > 25
