"""A scripted day of a broker, killed at every single change it makes to the disk, and started again.

Whatever was acknowledged is there; what consists of several parts is there whole or not at all; no id comes twice. At
`os` the process dies; at `fsync` the power goes, and with it all that was not synced.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass, field
from random import Random
from typing import Any

import pytest
from budget import slow
from core_broker import Client, SimulatedCrash, World
from core_requests import commit_request, fetch_request, produce_request
from power_cut import power_cut

from protocol.messages.classic_group import (
    JoinGroupRequest,
    JoinGroupRequestProtocol,
    SyncGroupRequest,
    SyncGroupRequestAssignment,
)
from protocol.messages.configs import (
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsRequestAlterableConfig,
    IncrementalAlterConfigsRequestAlterConfigsResource,
)
from protocol.messages.group_admin import DescribeGroupsRequest
from protocol.messages.offsets import (
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
)
from protocol.messages.topics import (
    CreatableTopic,
    CreatableTopicConfig,
    CreatePartitionsRequest,
    CreatePartitionsTopic,
    CreateTopicsRequest,
    DeleteTopicsRequest,
    DeleteTopicState,
)
from protocol.messages.transactions import InitProducerIdRequest
from protocol.record_batch import iter_batches, iter_records
from storage.files.sim_env import sim_env
from storage.files.sim_faults import ALL_KINDS


@dataclass
class Seen:
    """What the client was told, and what it asked for last without having been told."""

    cluster_id: str = ""
    topic_ids: dict[str, bytes] = field(default_factory=dict)
    producer_ids: list[int] = field(default_factory=list)
    topics: dict[str, int] = field(default_factory=dict)  # name -> partitions
    asked_topics: dict[str, int | None] = field(default_factory=dict)  # not acknowledged; None: deletion
    offsets: dict[str, dict[int, int]] = field(default_factory=dict)  # group -> partition -> offset
    asked_offsets: dict[str, dict[int, int | None]] = field(default_factory=dict)
    records: dict[str, list[bytes]] = field(default_factory=dict)  # topic -> values in partition 0
    asked_records: dict[str, list[bytes]] = field(default_factory=dict)
    members: dict[str, tuple[str, int]] = field(default_factory=dict)
    asked_members: set[str] = field(default_factory=set)
    finished: bool = False


def create(client: Client, seen: Seen, name: str, partitions: int, configs: dict[str, str] | None = None) -> None:
    rows = [CreatableTopicConfig(name=key, value=value) for key, value in (configs or {}).items()]
    wanted = CreatableTopic(name=name, num_partitions=partitions, replication_factor=1, configs=rows)
    seen.asked_topics[name] = partitions
    answer = client.call(CreateTopicsRequest(topics=[wanted], timeout_ms=1), 7).topics[0]
    assert answer.error_code == 0
    assert answer.topic_id not in seen.topic_ids.values(), "a topic id came twice"
    seen.topic_ids[name] = answer.topic_id
    seen.topics[name] = seen.asked_topics.pop(name)


def grow(client: Client, seen: Seen, name: str, partitions: int) -> None:
    seen.asked_topics[name] = partitions
    wanted = CreatePartitionsTopic(name=name, count=partitions, assignments=None)
    assert client.call(CreatePartitionsRequest(topics=[wanted], timeout_ms=1), 3).results[0].error_code == 0
    seen.topics[name] = seen.asked_topics.pop(name)


def delete(client: Client, seen: Seen, name: str) -> None:
    seen.asked_topics[name] = None
    wanted = DeleteTopicState(name=name, topic_id=bytes(16))
    assert client.call(DeleteTopicsRequest(topics=[wanted], timeout_ms=1), 6).responses[0].error_code == 0
    del seen.asked_topics[name]
    del seen.topics[name]
    seen.records.pop(name, None)


def produce(client: Client, seen: Seen, name: str, *values: bytes) -> None:
    seen.asked_records[name] = [*seen.records.get(name, []), *values]
    answer = client.call(produce_request(name, 0, *values), 9).responses[0].partition_responses[0]
    assert answer.error_code == 0
    seen.records[name] = seen.asked_records.pop(name)


def commit(client: Client, seen: Seen, group_id: str, offset: int, metadata: str, partitions=range(20)) -> None:
    wanted = dict.fromkeys(partitions, offset)
    seen.asked_offsets[group_id] = {**seen.offsets.get(group_id, {}), **wanted}
    answer = client.call(commit_request(group_id, wanted, "wide", metadata=metadata), 8)
    assert {p.error_code for p in answer.topics[0].partitions} == {0}
    seen.offsets[group_id] = seen.asked_offsets.pop(group_id)


def forget(client: Client, seen: Seen, group_id: str, partitions) -> None:
    kept = {p: offset for p, offset in seen.offsets[group_id].items() if p not in partitions}
    seen.asked_offsets[group_id] = kept
    rows = [OffsetDeleteRequestPartition(partition_index=p) for p in partitions]
    topics = [OffsetDeleteRequestTopic(name="wide", partitions=rows)]
    assert client.call(OffsetDeleteRequest(group_id=group_id, topics=topics), 0).error_code == 0
    seen.offsets[group_id] = seen.asked_offsets.pop(group_id)


def producer_id(client: Client, seen: Seen) -> None:
    answer = client.call(InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=1), 4)
    assert answer.error_code == 0
    assert answer.producer_id not in seen.producer_ids, "a producer id came twice"
    seen.producer_ids.append(answer.producer_id)


def join(client: Client, seen: Seen, group_id: str) -> None:
    seen.asked_members.add(group_id)
    ask = JoinGroupRequest(
        group_id=group_id,
        session_timeout_ms=30_000,
        rebalance_timeout_ms=30_000,
        member_id="",
        group_instance_id="one",
        protocol_type="consumer",
        protocols=[JoinGroupRequestProtocol(name="range", metadata=b"\0\0\0\0\0\0\xff\xff\xff\xff")],
    )
    answer = client.call(ask, 5)
    assert answer.error_code == 0
    sync = SyncGroupRequest(
        group_id=group_id,
        generation_id=answer.generation_id,
        member_id=answer.member_id,
        group_instance_id="one",
        assignments=[SyncGroupRequestAssignment(member_id=answer.member_id, assignment=b"mine")],
    )
    assert client.call(sync, 3).assignment == b"mine"
    seen.members[group_id] = (answer.member_id, answer.generation_id)


def small_segments(client: Client) -> None:
    """So that the log of offsets has several segments by the end."""
    change = IncrementalAlterConfigsRequestAlterableConfig(
        name="internal.segment.bytes", config_operation=0, value="6000"
    )
    resource = IncrementalAlterConfigsRequestAlterConfigsResource(
        resource_type=2, resource_name="__consumer_offsets", configs=[change]
    )
    answer = client.call(IncrementalAlterConfigsRequest(resources=[resource], validate_only=False), 1)
    assert answer.responses[0].error_code == 0, answer.responses[0].error_message


def session(world: World, seen: Seen) -> None:
    """The script. Each step that returns was acknowledged."""
    seen.cluster_id = world.broker.cluster_id
    client = Client(world)
    small_segments(client)
    create(client, seen, "wide", 20)
    create(client, seen, "logs", 1, {"internal.segment.bytes": "1000"})
    for n in range(4):
        commit(client, seen, "fast", n, "")
        commit(client, seen, "slow", n, "m" * 30)
        produce(client, seen, "logs", b"%d" % n * 200, b"x")
    producer_id(client, seen)
    producer_id(client, seen)
    join(client, seen, "members")
    grow(client, seen, "logs", 3)
    forget(client, seen, "slow", [1, 3, 5])
    create(client, seen, "short", 2)
    produce(client, seen, "short", b"old")
    delete(client, seen, "short")
    create(client, seen, "short", 1)
    produce(client, seen, "short", b"new")
    commit(client, seen, "fast", 77, "", [0, 7, 19])
    seen.members.clear()  # its session runs out now
    world.advance(400_000)  # housekeeping
    commit(client, seen, "fast", 99, "")
    seen.finished = True


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
