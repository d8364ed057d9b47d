"""ShareFetch says the same whether it is served from bytes or decoded: two brokers, of which one decodes all requests.

Members read the same partitions, accept, release, reject and renew, while batches of every size, transactions that
commit and abort, deleted records and topics, settings, moved clocks, leaders, failing and unsynced writes and restarts
come in between.
"""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, note, settings
from hypothesis import strategies as st
from share_pair import MEMBERS, Sides, in_flight

from broker.coordinator.share.acknowledge import REJECT, RELEASE
from broker.coordinator.share.combine import StateBatch
from broker.coordinator.share.in_flight import ACQUIRED
from broker.coordinator.share.state import decode_update, update_value
from protocol.messages.coordinator_records import encode_record
from protocol.messages.share_fetch import ShareFetchRequest
from protocol.messages.share_state_records import ShareUpdateValue, ShareUpdateValueStateBatch
from protocol.messages.topics import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsTopic,
    DeleteTopicsRequest,
    DeleteTopicState,
)

VERSIONS = range(ShareFetchRequest.MIN_VERSION, ShareFetchRequest.MAX_VERSION + 1)
SETTINGS = [
    {"share.isolation.level": "read_committed"},
    {"share.isolation.level": "read_uncommitted"},
    {"share.partition.max.record.locks": "100"},
    {"share.partition.max.record.locks": "1000"},
    {"share.record.lock.duration.ms": "15000"},
    {"share.delivery.count.limit": "2"},
    {"errors.deadletterqueue.topic.name": "dlq.q"},
    {"errors.deadletterqueue.topic.name": "dlq.q", "errors.deadletterqueue.copy.record.enable": "true"},
]

EVENTS = ["produce"] * 6 + [
    "txn",
    "advance",
    "delete records",
    "set",
    "fail",
    "restart",
    "hold syncs",
    "leave",
    "topic",
    "move",
]


def event(sides: Sides, data: Any) -> None:
    what = data.draw(st.sampled_from(EVENTS))
    note(what)
    index = data.draw(st.integers(0, 1))
    if what == "produce":
        for _ in range(data.draw(st.integers(1, 4))):
            size = data.draw(st.sampled_from([1, 1, 100, 9000]))
            sides.produce(data.draw(st.sampled_from([1, 1, 3, 16])), index, size)
    elif what == "txn":
        sides.in_transaction(data.draw(st.integers(1, 3)), index, data.draw(st.booleans()))
    elif what == "advance":
        ms = data.draw(st.sampled_from([1, 1_000, 16_000, 31_000]))
        for world in sides.worlds:
            world.advance(ms)
    elif what == "delete records":
        offset = data.draw(st.sampled_from([1, 5, -1]))
        partition = DeleteRecordsPartition(partition_index=index, offset=offset)
        topic = DeleteRecordsTopic(name="t", partitions=[partition])
        sides.call(DeleteRecordsRequest(topics=[topic], timeout_ms=1000), 2)
    elif what == "set":
        sides.call(sides.config_request(data.draw(st.sampled_from(SETTINGS))), 1)
    elif what == "fail":
        for world in sides.worlds:
            world.files.inject(1, forever=True)
        ask(sides, data)
        for world in sides.worlds:
            world.files.heal()
    elif what == "restart":
        sides.restart()
        for reader in sides.readers.values():
            sides.join(reader)
    elif what == "hold syncs":
        for world in sides.worlds:
            world.auto_sync = False
        sides.produce(2, index, 1)
        for world in sides.worlds:
            world.auto_sync = True
        sides.run()
        sides.received()
    elif what == "leave":
        sides.reconnect(sides.readers[data.draw(st.sampled_from(MEMBERS))])
    elif what == "topic":
        sides.call(DeleteTopicsRequest(topics=[DeleteTopicState(name="t", topic_id=bytes(16))], timeout_ms=1), 6)
        sides.make_topic()
    elif len(sides.nodes[0].all) > 1:
        is_up = len(sides.worlds[0].broker.nodes) > 1
        for nodes in sides.nodes:
            (nodes.stop if is_up else nodes.start)(nodes.all[1], lambda done: None)


def ask(sides: Sides, data: Any) -> None:
    """A member's requests, most of which accept what the one before them acquired."""
    reader = sides.readers[data.draw(st.sampled_from(MEMBERS))]
    limits = {
        "max_records": data.draw(st.sampled_from([1, 2, 16, 500])),
        "batch_size": data.draw(st.sampled_from([1, 16, 500])),
        "max_wait_ms": data.draw(st.sampled_from([0, 0, 500])),
        "min_bytes": data.draw(st.sampled_from([1, 1, 1, 500, 20_000])),
        "max_bytes": data.draw(st.sampled_from([1 << 20, 1 << 20, 400])),
    }
    places = data.draw(st.sampled_from([[0], [0], [1], [0, 1]]))
    kind = data.draw(st.sampled_from([1, 1, 1, 1, 1, 2, 3, 0]))
    reader.version = data.draw(st.sampled_from(VERSIONS))
    for at in range(data.draw(st.integers(2, 5))):
        comes = data.draw(st.sampled_from([None, None, (1, 0, 1), (3, 0, 100)]))
        stale = data.draw(st.sampled_from([0] * 15 + [1]))
        sides.fetch(reader, places, kind if at else 1, comes, stale, **limits)


@pytest.mark.heavy
@pytest.mark.parametrize(("flush", "brokers"), [("os", 1), ("fsync", 1), ("os", 2)])
def test_both_codecs_agree_over_any_history(flush, brokers):
    @settings(max_examples=40)
    @given(st.data())
    def check(data: Any) -> None:
        sides = Sides(flush, brokers)
        sides.produce(4, 0, 1)
        for _ in range(data.draw(st.integers(2, 9))):
            event(sides, data)
            ask(sides, data)
        sides.check()

    check()


LIMITS = {"max_records": 16, "batch_size": 16, "max_wait_ms": 0, "min_bytes": 1, "max_bytes": 1 << 20}


def steady() -> Sides:
    """Member m has accepted three batches of sixteen, and has the fourth; eight are left."""
    sides = Sides("os")
    for _ in range(12):
        sides.produce(16, 0, 100)
    for _ in range(4):
        sides.fetch(sides.readers["m"], [0], 1, **LIMITS)
    assert sides.taken == 2
    return sides


def test_lock_of_a_request_that_was_served_from_bytes_expires():
    sides = steady()
    reader = sides.readers["m"]
    while reader.acquired:
        sides.fetch(reader, [0], 1, **LIMITS)
    sides.fetch(reader, [0], 1, **LIMITS)  # without records, so that it is kept
    for comes in (None, (16, 0, 10)):  # found at once, and waited for
        for world in sides.worlds:
            world.advance(31_000)  # the alarm of earlier locks rings, and finds nothing
        if comes is None:
            sides.produce(16, 0, 10)
        sides.fetch(reader, [0], 1, comes, **{**LIMITS, "max_wait_ms": 500 if comes else 0})
        assert reader.acquired
        for world in sides.worlds:
            world.advance(31_000)
        sides.check()
        assert all(part[2] != ACQUIRED for part in in_flight(sides.worlds[0])[sides.key(0)][4])
        while reader.acquired:
            sides.fetch(reader, [0], 1, **LIMITS)
            sides.fetch(reader, [0], 1, **LIMITS)


def test_old_epoch_is_refused():
    sides = steady()
    sides.fetch(sides.readers["m"], [0], 1, stale=1, **LIMITS)
    sides.check()
    assert sides.taken == 2


def test_what_another_member_has_acquired_is_refused():
    sides = steady()
    for _ in range(3):
        sides.fetch(sides.readers["n"], [0], 1, **LIMITS)
    m, n = sides.readers.values()
    m.acquired, n.acquired = n.acquired, m.acquired
    before = in_flight(sides.worlds[0])[sides.key(0)][2]
    for reader in (m, n):
        sides.fetch(reader, [0], 1, **LIMITS)
    assert in_flight(sides.worlds[0])[sides.key(0)][2] == before, "nothing was acknowledged"
    sides.check()


def test_readers_of_committed_records_are_served_from_bytes():
    sides = steady()
    sides.call(sides.config_request({"share.isolation.level": "read_committed"}), 1)
    sides.in_transaction(16, 0, commit=False)
    for _ in range(12):
        sides.fetch(sides.readers["m"], [0], 1, **LIMITS)
    assert sides.taken == 12
    sides.check()


def test_member_that_accepts_what_it_gets_is_served_from_bytes():
    """Or the comparison above compares nothing."""
    sides = Sides("os")
    reader = sides.readers["m"]
    for _ in range(20):
        sides.produce(16, 0, 100)
    for _ in range(12):
        sides.fetch(reader, [0], 1, max_records=16, batch_size=16, max_wait_ms=0, min_bytes=1, max_bytes=1 << 20)
        assert len(reader.acquired[0]) == 1
    assert sides.taken == 10
    sides.check()


def test_requests_that_wait_are_served_from_bytes():
    sides = Sides("os")
    limits = {"max_records": 5, "batch_size": 5, "max_wait_ms": 500, "min_bytes": 1, "max_bytes": 1 << 20}
    for _ in range(4):
        sides.fetch(sides.readers["m"], [0], 1, (2, 0, 10), **limits)
        assert len(sides.readers["m"].acquired[0]) == 1
    assert sides.taken == 2
    sides.check()


@pytest.mark.parametrize("kind", [RELEASE, REJECT])
def test_whatever_is_acknowledged_is_served_from_bytes(kind: int):
    sides = Sides("os")
    for _ in range(9):
        sides.produce(16, 0, 10)
    for _ in range(6):
        sides.fetch(sides.readers["m"], [0], kind, **LIMITS)
    assert sides.taken == 4
    sides.check()


def test_several_partitions_are_served_from_bytes():
    sides = Sides("os")
    for _ in range(6):
        for index in (0, 1):
            sides.produce(16, index, 10)
        sides.fetch(sides.readers["m"], [0, 1], 1, **{**LIMITS, "max_records": 100, "batch_size": 100})
    assert sides.taken >= 3
    sides.check()


def test_large_records_are_slices_of_the_log():
    sides = Sides("os")
    reader = sides.readers["m"]
    for _ in range(60):
        sides.produce(1, 0, 30_000)
    for _ in range(6):
        sides.fetch(reader, [0], 1, max_records=5, batch_size=5, max_wait_ms=0, min_bytes=1, max_bytes=1 << 20)
        assert len(reader.acquired[0]) == 1
    assert sides.taken >= 3
    sides.check()


OFFSETS = st.integers(0, 2**62)
BATCHES = st.lists(st.builds(StateBatch, OFFSETS, OFFSETS, st.sampled_from([0, 2, 4]), st.integers(0, 9)), max_size=200)


COUNTS = st.sampled_from([-1, 0]) | st.integers(1, 2**31 - 1)


@given(st.integers(0, 99), st.integers(-1, 99), st.integers(-1, 2**62), COUNTS, BATCHES)
def test_update_value_is_what_the_codec_writes(epoch, leader_epoch, start, count, batches):
    value = ShareUpdateValue(
        snapshot_epoch=epoch,
        leader_epoch=leader_epoch,
        start_offset=start,
        delivery_complete_count=count,
        state_batches=[
            ShareUpdateValueStateBatch(first_offset=b[0], last_offset=b[1], delivery_state=b[2], delivery_count=b[3])
            for b in batches
        ],
    )
    data = update_value(epoch, leader_epoch, start, count, batches)
    assert data == encode_record(value, 0)
    assert decode_update(data) == (leader_epoch, start, count, batches)
