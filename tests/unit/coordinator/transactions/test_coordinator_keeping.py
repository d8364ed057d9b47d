"""What the transaction coordinator keeps over time and restarts: deadlines, ids, and whose offsets they were."""

from __future__ import annotations

from unittest.mock import Mock

import pytest
from core_broker import Client, World, make_topic
from txn_kit import Producer, committed, state_of, states_in_log
from unit.coordinator.transactions.coordinator_kit import WEEK_MS, set_feature

from broker.coordinator.transactions.transaction import LAST_EPOCH, PREPARE_ABORT, PREPARE_COMMIT
from protocol.codegen import codec
from protocol.errors import ErrorCode
from protocol.messages.own_records import TransactionGroupValue
from storage.files.errors import StorageError

# -- time


@pytest.mark.parametrize("level", [0, 1, 2])
def test_transaction_that_lasts_too_long_is_aborted_and_its_producer_fenced(client, level):
    if level < 2:
        set_feature(client, level)
    producer = Producer(client, v2=level == 2)
    producer.init(timeout_ms=10_000)
    producer.add_offsets()
    producer.send_offsets({0: 5})
    client.world.advance(10_000)
    assert state_of(client).transaction_state == "Ongoing"
    client.world.advance(1)
    state = state_of(client)
    assert (state.transaction_state, state.producer_epoch) == ("CompleteAbort", 1)
    assert committed(client, stable=True) == {0: (-1, 0)}
    assert producer.send_offsets({0: 6}) == {0: ErrorCode.INVALID_PRODUCER_EPOCH}
    assert producer.end() in (ErrorCode.PRODUCER_FENCED, ErrorCode.INVALID_TXN_STATE)
    assert producer.init() == 0
    assert producer.epoch == 2


def test_transaction_that_times_out_with_its_last_epoch_goes_on_with_another_producer_id(client):
    producer = Producer(client)
    producer.init(timeout_ms=10_000)
    shard = client.world.broker.transactions.shard("tx")
    shard.machine.transactions["tx"].producer_epoch = producer.epoch = LAST_EPOCH
    producer.send_offsets({0: 5})
    client.world.advance(10_001)
    state = state_of(client)
    assert (state.transaction_state, state.producer_epoch) == ("CompleteAbort", 0)
    assert state.producer_id != producer.id
    assert committed(client, stable=True) == {0: (-1, 0)}


def test_transaction_that_ends_while_its_next_producer_id_is_made_durable_is_not_aborted():
    world = World("fsync")
    client = Client(world)
    make_topic(client, "t", 3)
    producer = Producer(client)
    producer.init(timeout_ms=10_000)
    coordinator = world.broker.transactions
    shard = coordinator.shard("tx")
    shard.machine.transactions["tx"].producer_epoch = producer.epoch = LAST_EPOCH
    producer.send_offsets({0: 5})
    world.broker.metadata._next_producer_id = -1  # as after a start: the next id begins a block
    world.auto_sync = False
    shard.apply(coordinator.fence(shard, shard.machine.transactions["tx"]))
    client.send(producer.end_request(), 4)
    world.auto_sync = True
    world.run()
    assert [reply.error_code for reply in client.replies()] == [0]
    assert state_of(client).transaction_state == "CompleteCommit"
    assert committed(client, stable=True) == {0: (5, 0)}


def needing_an_id(client):
    """A producer with an open transaction that cannot be aborted without a new producer id, which is to be written."""
    producer = Producer(client)
    producer.init(timeout_ms=10_000)
    broker = client.world.broker
    broker.transactions.shard("tx").machine.transactions["tx"].producer_epoch = producer.epoch = LAST_EPOCH
    assert producer.send_offsets({0: 5}) == {0: 0}
    broker.metadata._next_producer_id = -1  # as after a start: the next id begins a block
    return producer


def is_aborted(client):
    return state_of(client).transaction_state == "CompleteAbort" and committed(client, stable=True) == {0: (-1, 0)}


@pytest.mark.parametrize("step_ms", [0, -3_600_000, 3_600_000])
def test_transaction_that_times_out_while_no_producer_id_can_be_written_is_aborted_when_one_can(world, client, step_ms):
    needing_an_id(client)
    kind = "fail_fsync" if world.flush == "fsync" else "fail_write"
    fault = world.broker.faults.add({"fault": kind, "topic": "__cluster_metadata"})
    world.advance(10_001)
    world.clock.step(step_ms)
    world.advance(3_000)
    assert fault.hits == 4  # at its timeout, and once a second
    assert state_of(client).transaction_state == "Ongoing"
    world.broker.faults.remove(fault.name)
    world.advance(1_000)
    assert is_aborted(client)


def test_transaction_that_times_out_while_the_log_of_producer_ids_is_out_of_use_is_aborted_later(client, monkeypatch):
    needing_an_id(client)
    world = client.world
    with monkeypatch.context() as patch:
        patch.setattr(world.broker.metadata_shard.log, "append", Mock(side_effect=StorageError("out of use")))
        world.advance(10_001)
    assert state_of(client).transaction_state == "Ongoing"
    world.advance(1_000)
    assert is_aborted(client)


def test_producer_that_cannot_be_given_an_id_leaves_the_timeout_of_its_transaction_as_it_was(client):
    needing_an_id(client)
    world = client.world
    deadlines = world.broker.transactions.shard("tx").deadlines.by_name
    before = deadlines["tx"]
    kind = "fail_fsync" if world.flush == "fsync" else "fail_write"
    world.broker.faults.add({"fault": kind, "topic": "__cluster_metadata", "trigger": "once"})
    assert Producer(client).init() in (ErrorCode.CONCURRENT_TRANSACTIONS, ErrorCode.COORDINATOR_NOT_AVAILABLE)
    assert deadlines["tx"] == before
    assert state_of(client).transaction_state == "Ongoing"


def test_transaction_that_ended_while_its_next_producer_id_was_lost_gets_no_timeout(client):
    producer = needing_an_id(client)
    coordinator = client.world.broker.transactions
    shard = coordinator.shard("tx")
    before = shard.machine.transactions["tx"]
    assert producer.end() == 0
    coordinator._fence_later(shard, before)
    assert "tx" not in shard.deadlines.by_name


def test_transaction_does_not_time_out_after_its_end(client):
    producer = Producer(client)
    producer.init(timeout_ms=10_000)
    producer.send_offsets({0: 5})
    producer.end()
    client.world.advance(20_000)
    assert state_of(client).transaction_state == "CompleteCommit"
    producer.send_offsets({0: 6})
    client.world.advance(9_000)
    assert producer.end() == 0
    assert committed(client) == {0: (6, 0)}


def test_transaction_times_out_after_a_restart(world, client):
    if world.flush == "memory":
        return
    producer = Producer(client)
    producer.init(timeout_ms=10_000)
    producer.send_offsets({0: 5})
    again = world.crash(lose_unsynced=world.flush == "fsync")
    client = Client(again)
    assert committed(client, stable=True) == {0: (-1, 88)}
    again.advance(10_000)
    assert committed(client, stable=True) == {0: (-1, 0)}
    assert state_of(client).transaction_state == "CompleteAbort"


def test_unused_id_is_forgotten(client):
    idle, busy = Producer(client, "idle"), Producer(client, "busy")
    idle.init()
    busy.init()
    client.world.leap(WEEK_MS - 1_000)
    busy.init()
    client.world.advance(3_600_000)
    assert state_of(client, "idle").error_code == ErrorCode.TRANSACTIONAL_ID_NOT_FOUND
    assert state_of(client, "busy").error_code == 0
    assert idle.send_offsets({0: 1}) == {0: ErrorCode.INVALID_PRODUCER_ID_MAPPING}
    assert idle.init() == 0


# -- whose offsets they were


def groups_of(world, name="tx"):
    return world.broker.transactions.shard(name).machine.groups.get(name, {})


def decoded(value):
    return codec(TransactionGroupValue, 0).decode(value, 2)[0]


@pytest.mark.parametrize("commit", [True, False])
def test_groups_of_a_transaction_are_kept_with_its_decision(world, client, commit):
    producer = Producer(client)
    producer.init()
    producer.send_offsets({0: 1, 2: 3}, "g")
    producer.send_offsets(
        {1: 1}, "h", version=5, generation_id_or_member_epoch=-1, member_id="", group_instance_id=None
    )
    assert groups_of(world) == {}
    producer.end(commit=commit)
    kept = {group: decoded(value) for group, value in groups_of(world).items()}
    assert {g: (v.producer_id, v.producer_epoch, v.client_id) for g, v in kept.items()} == {
        "g": (producer.id, 0, "client"),
        "h": (producer.id, 0, "client"),
    }
    assert {g: [(t.topic, t.partitions) for t in v.topics] for g, v in kept.items()} == {
        "g": [("t", [0, 2])],
        "h": [("t", [1])],
    }
    before = groups_of(world)
    producer.send_offsets({1: 9}, "g")
    producer.end()
    assert decoded(groups_of(world)["g"]).topics[0].partitions == [1]
    assert groups_of(world)["h"] == before["h"]
    assert states_in_log(world).count(PREPARE_COMMIT if commit else PREPARE_ABORT) == (2 if commit else 1)


def test_groups_of_a_transaction_are_known_after_a_crash_before_its_end():
    world = World("os")
    client = Client(world)
    make_topic(client, "t", 3)
    producer = Producer(client)
    producer.init(timeout_ms=10_000)
    producer.send_offsets({0: 1}, "g")
    again = world.crash()
    again.advance(10_001)
    (value,) = groups_of(again).values()
    assert (decoded(value).client_id, decoded(value).topics[0].partitions) == ("client", [0])
    third = again.crash()
    assert groups_of(third) == groups_of(again)


def test_groups_go_with_the_id(client):
    producer = Producer(client)
    producer.init()
    producer.send_offsets({0: 1})
    producer.end()
    client.world.leap(WEEK_MS)
    client.world.advance(3_600_000)
    assert state_of(client).error_code == ErrorCode.TRANSACTIONAL_ID_NOT_FOUND
    assert groups_of(client.world) == {}
