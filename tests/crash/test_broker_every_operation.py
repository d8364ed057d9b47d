"""A scripted day of a broker, killed at every single change it makes to the disk, and started again.

Whatever was acknowledged is there; what consists of several parts is there whole or not at all; no id comes twice. At
`os` the process dies; at `fsync` the power goes, and with it all that was not synced.
"""

from __future__ import annotations

import itertools
from random import Random
from typing import Any

import pytest
from budget import slow
from core_broker import Client, SimulatedCrash, World
from core_requests import fetch_request
from power_cut import power_cut
from scripted_day import Seen, commit, create, produce, producer_id, session

from protocol.messages.group_admin import DescribeGroupsRequest
from protocol.messages.offsets import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
)
from protocol.record_batch import iter_batches, iter_records
from storage.files.sim_env import sim_env
from storage.files.sim_faults import ALL_KINDS


def offsets_of(client: Client, group_id: str) -> dict[int, int]:
    question = OffsetFetchRequest(groups=[OffsetFetchRequestGroup(group_id=group_id, topics=None)])
    group = client.call(question, 8).groups[0]
    assert group.error_code == 0
    return {p.partition_index: p.committed_offset for topic in group.topics for p in topic.partitions}


def values_of(client: Client, name: str) -> list[bytes]:
    found: list[bytes] = []
    while True:
        answer = client.call(fetch_request(name, 0, len(found)), 12).responses[0].partitions[0]
        assert answer.error_code == 0
        data = bytes(answer.records or b"")
        if not data:
            assert answer.high_watermark == len(found)
            return found
        for position, header in iter_batches(data):
            batch = data[position : position + header.size]
            found += [bytes(record.value) for record in iter_records(batch)]


def check(world: World, seen: Seen) -> None:
    """Everything acknowledged is there; of what was asked for, all or nothing."""
    broker = world.broker
    assert not seen.cluster_id or broker.cluster_id == seen.cluster_id
    client = Client(world)
    topics = {name: len(topic.partitions) for name, topic in broker.metadata.topics.items() if not topic.internal}
    for name in {*topics, *seen.topics, *seen.asked_topics}:
        allowed = {seen.topics.get(name), seen.asked_topics.get(name, seen.topics.get(name))}
        assert topics.get(name) in allowed, f"{name} has {topics.get(name)} partitions, not one of {allowed}"
    for name, topic_id in seen.topic_ids.items():
        if name in seen.topics and name not in seen.asked_topics:
            assert broker.metadata.topics[name].topic_id == topic_id
    for group_id in {*seen.offsets, *seen.asked_offsets}:
        told = seen.offsets.get(group_id, {})
        assert offsets_of(client, group_id) in (told, seen.asked_offsets.get(group_id, told)), f"{group_id} is torn"
    for name in {*seen.records, *seen.asked_records}:
        if name in topics and name not in seen.asked_topics:
            told_records = seen.records.get(name, [])
            assert values_of(client, name) in (told_records, seen.asked_records.get(name, told_records))
    for name in topics:
        if name not in seen.records and name not in seen.asked_records and name not in seen.asked_topics:
            assert values_of(client, name) == []
    for group_id, (member_id, _) in seen.members.items():
        group = client.call(DescribeGroupsRequest(groups=[group_id]), 5).groups[0]
        assert group.group_state == "Stable"
        assert [(m.member_id, bytes(m.member_assignment)) for m in group.members] == [(member_id, b"mine")]


def go_on(world: World, seen: Seen) -> None:
    """The broker is of use: new things can be made, and no id comes again."""
    client = Client(world)
    name = f"again-{len(seen.topic_ids)}"
    create(client, seen, name, 20)
    produce(client, seen, name, b"v")
    producer_id(client, seen)
    if "short" not in world.broker.metadata.topics:  # its files of before must not come back with its name
        for told in (seen.topics, seen.asked_topics, seen.records, seen.asked_records):
            told.pop("short", None)
        create(client, seen, "short", 1)
    if "wide" in world.broker.metadata.topics:
        seen.topics["wide"] = 20
        seen.asked_topics.pop("wide", None)
        for group_id in list(seen.asked_offsets):
            seen.offsets[group_id] = offsets_of(client, group_id)
            del seen.asked_offsets[group_id]
        commit(client, seen, "fast", 1000, "")


def run(world_of: Any, seen: Seen) -> World | None:
    """A world that has been through the session, or through as much as it lived to see."""
    try:
        world = world_of()
        session(world, seen)
    except SimulatedCrash:
        return None
    return world


def operations(flush: str) -> int:
    env = sim_env(3)
    world = run(lambda: World(flush, env), Seen())
    assert world is not None
    world.broker.close()
    count: int = env.files.operations
    return count


@pytest.mark.heavy
@pytest.mark.parametrize(
    ("flush", "kinds", "short_bytes", "step"),
    [
        pytest.param("fsync", ALL_KINDS, 0, 4, id="fsync-any-4th"),
        pytest.param("os", ("write",), 100, 4, id="os-torn-write-4th"),
        slow("os", ALL_KINDS, 0, 1, name="os-any"),
        slow("fsync", ALL_KINDS, 0, 1, name="fsync-any"),
        slow("os", ("write",), 100, 1, name="os-torn-write"),
        slow("fsync", ("write",), 100, 1, name="fsync-torn-write"),
    ],
)
def test_broker_killed_at_any_change_of_the_disk_comes_back_with_all_it_acknowledged(flush, kinds, short_bytes, step):
    lose = flush == "fsync"
    for nth in itertools.count(1, step):
        env, seen = sim_env(3), Seen()
        env.files.kill_at(nth, short_bytes=short_bytes, kinds=kinds)
        if run(lambda env=env: World(flush, env), seen) is not None:
            break
        files = env.files.crash(lose_unsynced=lose)
        try:
            again = World(flush, sim_env(nth, env.clock.now_ms() + 1000, files))
            check(again, seen)
            go_on(again, seen)
            seen.members.clear()
            check(again.crash(lose_unsynced=lose), seen)
        except BaseException as error:
            error.add_note(f"killed at operation {nth}, {short_bytes} bytes of it written")
            raise
    assert nth > 25


@pytest.mark.parametrize(("flush", "step"), [("os", 68), ("fsync", 68), slow("os", 17), slow("fsync", 17)])
def test_broker_killed_during_its_recovery_comes_back_with_all_it_acknowledged(flush, step):
    """The first crash is in the middle of a commit; the second at any change that the next start makes."""
    lose = flush == "fsync"
    for first in range(20, operations(flush), step):
        env, seen = sim_env(3), Seen()
        env.files.kill_at(first, short_bytes=40)
        run(lambda env=env: World(flush, env), seen)
        for second in range(1, 30):
            files = env.files.crash(lose_unsynced=lose)
            files.kill_at(second)
            died = False
            try:
                World(flush, sim_env(second, env.clock.now_ms() + 1000, files))
            except SimulatedCrash:
                died = True
            try:
                after = files.crash(lose_unsynced=lose)
                check(World(flush, sim_env(9, env.clock.now_ms() + 2000, after)), seen)
            except BaseException as error:
                error.add_note(f"killed at {first}, then at {second} of the recovery")
                raise
            if not died:
                break


@pytest.mark.heavy
def test_broker_comes_back_after_a_loss_of_power_that_takes_a_part_of_what_is_not_synced():
    for nth in range(1, operations("fsync"), 5):
        env, seen = sim_env(3), Seen()
        env.files.kill_at(nth)
        run(lambda env=env: World("fsync", env), seen)
        for seed in range(8):
            try:
                again = sim_env(nth, env.clock.now_ms() + 1000, power_cut(env.files, Random(seed)))
                check(World("fsync", again), seen)
            except BaseException as error:
                error.add_note(f"killed at operation {nth}, what is lost drawn by {seed}")
                raise


@pytest.mark.parametrize("flush", ["os", "fsync"])
def test_broker_that_stopped_cleanly_comes_back_as_it_was_and_need_not_look(flush):
    env, seen = sim_env(3), Seen()
    world = run(lambda: World(flush, env), seen)
    assert world is not None
    before = world.fingerprints()
    again = world.restart()
    for shard in again.broker.groups.shards:
        shard.require()
    assert {k: v for k, v in again.fingerprints().items() if k in before} == before
    assert again.broker.directory.was_clean
    check(again, seen)
