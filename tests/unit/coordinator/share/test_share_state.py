"""What lies in `__share_group_state`: snapshots, updates, pruning, cold states, and the settings of the topic."""

from __future__ import annotations

import pytest
from stepped_kit import let_load_at_once
from unit.coordinator.share.kit import GROUP, ShareWorld

from broker.coordinator.share.combine import StateBatch, combine
from broker.coordinator.share.state import decode_key, decode_snapshot, decode_update
from protocol.errors import ErrorCode
from protocol.messages.cluster import FindCoordinatorRequest
from protocol.messages.topics import DeleteTopicsRequest
from protocol.record_batch import iter_records

B = StateBatch


def records(world):
    """(type, share partition, value or None) of each record of t-0's log."""
    log = world.log()
    return [
        (record.key[1], decode_key(record.key), record.value)
        for _, batch in log.batches(log.log_start_offset)
        for record in iter_records(batch)
        if record.offset >= log.log_start_offset
    ]


def read_all(world, member, count):
    """Acquire and accept `count` records one by one."""
    for _ in range(count):
        for first, last, _ in member.acquired(max_records=1, share_acquire_mode=1):
            assert member.ack_error((first, last, [1])) == 0


def test_first_record_is_a_snapshot_and_changes_are_updates():
    with ShareWorld() as world:
        world.produce(3)
        m = world.reader()
        m.acquired()
        m.acknowledge((0, 1, [1]))
        m.acknowledge((2, 2, [2]))
        (kind, key, value), (other, same, first), (_, _, second) = records(world)
        assert (kind, other, key, same) == (0, 1, (GROUP, world.topic_id(), 0), key)
        assert decode_snapshot(value)[:5] == (0, 2, 0, -1, -1)
        assert decode_update(first) == (0, 0, 2, [B(0, 1, 2, 1)])
        assert decode_update(second) == (0, 2, 0, [B(2, 2, 0, 1)])


def test_acquiring_is_not_stored():
    with ShareWorld() as world:
        world.produce(3)
        m = world.reader()
        before = len(records(world))
        m.acquired()
        assert len(records(world)) == before


def test_snapshot_comes_after_as_many_updates_as_the_setting_says():
    with ShareWorld(share_coordinator_snapshot_update_records_per_snapshot="3") as world:
        world.produce(*[1] * 8)
        read_all(world, world.reader(), 8)
        assert [kind for kind, _, _ in records(world)] == [0, 1, 1, 1, 0, 1, 1, 1, 0]
        assert world.state().snapshot_epoch == 2


def test_log_is_pruned_up_to_the_oldest_snapshot_after_the_interval():
    settings = {
        "share_coordinator_snapshot_update_records_per_snapshot": "3",
        "share_coordinator_state_topic_prune_interval_ms": "1000",
    }
    with ShareWorld(**settings) as world:
        world.produce(*[1] * 4)
        read_all(world, world.reader(), 4)
        assert world.log().log_start_offset == 0
        world.world.advance(1001)
        assert world.log().log_start_offset == 4
        world.restart()
        assert world.log().log_start_offset == 4
        assert world.state().start_offset == 3


def test_snapshot_of_an_idle_share_partition_is_not_pruned():
    settings = {
        "share_coordinator_state_topic_num_partitions": "1",
        "share_coordinator_snapshot_update_records_per_snapshot": "1",
        "share_coordinator_state_topic_prune_interval_ms": "1000",
    }
    with ShareWorld({"t": 2}, **settings) as world:
        world.produce(*[1] * 4)
        member = world.reader()  # it reads partition 0 only
        read_all(world, member, 4)
        world.world.advance(1001)
        world.restart()
        assert world.state(1) is not None
        assert world.state(0).start_offset == 3


def test_idle_state_is_written_anew_after_the_interval():
    with ShareWorld(share_coordinator_cold_partition_snapshot_interval_ms="1000") as world:
        world.reader()
        world.world.advance(1001)
        state = world.state()
        assert (state.snapshot_epoch, state.start_offset) == (1, -1)
        assert state.write_ms > state.create_ms
        count = len(records(world))
        world.world.advance(5000)
        assert len(records(world)) == count


def test_topic_has_the_settings_that_were_set():
    settings = {
        "share_coordinator_state_topic_num_partitions": "3",
        "share_coordinator_state_topic_segment_bytes": "2000000",
        "share_coordinator_state_topic_replication_factor": "2",
        "share_coordinator_state_topic_min_isr": "2",
    }
    with ShareWorld(brokers=2, **settings) as world:
        key = f"{GROUP}:AAAAAAAAAAAAAAAAAAAAAA:0"
        answer = world.client.call(FindCoordinatorRequest(key_type=2, coordinator_keys=[key, "g"]), 6)
        assert [each.error_code for each in answer.coordinators] == [0, ErrorCode.INVALID_REQUEST]
        topic = world.world.broker.metadata.topics["__share_group_state"]
        assert [len(p.replicas) for p in topic.partitions] == [2, 2, 2]
        assert topic.configs == {
            "cleanup.policy": "delete",
            "compression.type": "producer",
            "min.insync.replicas": "2",
            "retention.ms": "-1",
            "segment.bytes": "2000000",
        }


@pytest.mark.parametrize("load_at_once_bytes", [1 << 20, 0])
def test_state_of_a_topic_deleted_by_a_crash_is_removed_at_the_start(load_at_once_bytes, monkeypatch):
    let_load_at_once(monkeypatch, load_at_once_bytes)
    with ShareWorld({"t": 1, "u": 1}) as world:
        world.reader("m", "t", "u")
        coordinator = world.world.broker.share.coordinator
        coordinator.forget_gone_topics = lambda: None  # the process dies before
        world.client.call(DeleteTopicsRequest(topic_names=["u"], timeout_ms=1000), 5)
        world.restart()
        world.world.run()
        shards = world.world.broker.share.coordinator.shards
        assert {key.topic_id for shard in shards for key in shard.machine.states} == {world.topic_id()}


@pytest.mark.parametrize(
    ("batches", "start", "combined"),
    [
        ([], -1, []),
        ([B(0, 9, 2, 1)], 5, [B(5, 9, 2, 1)]),
        ([B(0, 4, 2, 1)], 5, []),
        ([B(0, 4, 2, 1), B(5, 9, 2, 1)], -1, [B(0, 9, 2, 1)]),
        ([B(0, 4, 2, 1), B(6, 9, 2, 1)], -1, [B(0, 4, 2, 1), B(6, 9, 2, 1)]),
        ([B(0, 9, 0, 1), B(3, 5, 2, 2)], -1, [B(0, 2, 0, 1), B(3, 5, 2, 2), B(6, 9, 0, 1)]),
        ([B(0, 9, 2, 2), B(3, 5, 0, 1)], -1, [B(0, 9, 2, 2)]),
        ([B(0, 5, 0, 1), B(3, 9, 2, 1)], -1, [B(0, 2, 0, 1), B(3, 9, 2, 1)]),
        ([B(0, 5, 4, 1), B(3, 9, 2, 1)], -1, [B(0, 5, 4, 1), B(6, 9, 2, 1)]),
    ],
)
def test_newer_state_counts_where_batches_overlap(batches, start, combined):
    assert combine(batches, start) == combined
