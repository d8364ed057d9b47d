"""Commits of streams members against the assignment epochs of their tasks (KAFKA-19779)."""

from __future__ import annotations

from typing import Any

import pytest
from core_broker import make_topic
from unit.coordinator.groups.streams.kit import Member, StreamsWorld, subtopology, topic_info, topology

from broker.coordinator.groups.streams.member import CurrentAssignment, MemberMetadata, TasksTupleWithEpochs
from broker.coordinator.groups.streams.records import (
    current_record,
    group_record,
    member_record,
    target_epoch_record,
    topology_record,
    topology_value,
)
from protocol.errors import ErrorCode
from protocol.messages.offsets import OffsetFetchRequest, OffsetFetchRequestGroup
from protocol.messages.transactions import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
)

STALE = ErrorCode.STALE_MEMBER_EPOCH
ILLEGAL = ErrorCode.ILLEGAL_GENERATION
SHAPE = topology(subtopology("0", "a", repartition=(topic_info("r", 3),), sinks=("r",)), subtopology("1", "b"))
# at epoch 9: task 0_0 since 5, 0_1 since 7, 0_2 to be given back, had since 4; a copy of 1_0
CURRENT = CurrentAssignment(
    9, 8, 2, TasksTupleWithEpochs({"0": {0: 5, 1: 7}}, {"1": frozenset({0})}), TasksTupleWithEpochs({"0": {2: 4}})
)


def put(world: StreamsWorld, current: CurrentAssignment) -> None:
    records = [
        member_record("g", "t", MemberMetadata(rebalance_timeout_ms=60_000, process_id="p", topology_epoch=0)),
        topology_record("g", topology_value(SHAPE)),
        group_record("g", 9, 0, 0, {}),
        target_epoch_record("g", 9, 0),
        current_record("g", "t", current),
    ]
    shard = world.world.broker.groups.of("g")
    shard.require()
    shard.append(records)
    world.world.run()


@pytest.fixture
def world():
    with StreamsWorld({"a": 3, "b": 1, "r": 3, "z": 1}) as made:
        put(made, CURRENT)
        yield made


def txn(world: StreamsWorld, epoch: int, partitions: dict[str, list[int]], member_id: str = "t") -> list[int]:
    code = world.world.broker.groups.of("g").machine.check_txn_offset_commit(
        "g", 5, epoch, member_id, None, lambda: [(t, b"", p) for t, ps in partitions.items() for p in ps]
    )
    return [code] * sum(map(len, partitions.values()))


@pytest.mark.parametrize(
    ("epoch", "partitions", "code"),
    [
        pytest.param(8, {"a": [0]}, 0, id="35: assigned since 5"),
        pytest.param(8, {"r": [1]}, 0, id="35: by the repartition topic"),
        pytest.param(6, {"a": [1]}, STALE, id="36: assigned since 7"),
        pytest.param(7, {"a": [1]}, 0, id="at its epoch"),
        pytest.param(4, {"a": [2]}, 0, id="37: pending"),
        pytest.param(3, {"a": [2]}, STALE, id="before the pending one came"),
        pytest.param(8, {"b": [0]}, STALE, id="38: standby only"),
        pytest.param(8, {"z": [0]}, STALE, id="39: not in the topology"),
        pytest.param(9, {"z": [0]}, 0, id="39: at the member epoch nothing is looked at"),
        pytest.param(10, {"a": [0]}, STALE, id="ahead"),
        pytest.param(6, {"a": [0, 1]}, STALE, id="one stale partition refuses all"),
        pytest.param(-1, {"a": [0]}, STALE, id="no epoch"),
    ],
)
def test_commit_with_an_epoch(world, epoch, partitions, code):
    expected = [code] * sum(map(len, partitions.values()))
    assert world.commit(partitions, epoch, "t") == expected
    assert txn(world, epoch, partitions) == expected
    world.restart()
    assert world.commit(partitions, epoch, "t") == expected, "the epochs are in the log"


def test_refused_commit_writes_nothing(world):
    world.commit({"a": [0, 1]}, 6, "t")
    assert not world.world.broker.groups.of("g").machine.offsets.has_group("g")


def test_commit_before_version_9_is_unsupported(world):
    assert world.commit({"a": [0]}, 9, "t", version=8) == [ErrorCode.UNSUPPORTED_VERSION]


def test_commit_of_an_unknown_member_is_refused(world):
    assert world.commit({"a": [0]}, 9, "x") == [ErrorCode.UNKNOWN_MEMBER_ID]
    assert world.commit({"a": [0]}, -1, "") == [ErrorCode.UNKNOWN_MEMBER_ID]


def test_transaction_that_says_nothing_of_the_group_passes(world):
    request = TxnOffsetCommitRequest(
        transactional_id="x",
        group_id="g",
        producer_id=1,
        producer_epoch=0,
        generation_id_or_member_epoch=-1,
        member_id="",
        topics=[TxnOffsetCommitRequestTopic(name="a", partitions=[TxnOffsetCommitRequestPartition()])],
    )
    assert request.group_instance_id is None
    assert txn(world, -1, {"a": [0]}, "") == [0]


def test_record_without_assignment_epochs_counts_from_the_member_epoch(world):
    key, value = current_record("g", "t", CURRENT)
    assert value is not None
    old = old_record()
    shard = world.world.broker.groups.of("g")
    shard.append([(key, old)])
    world.world.run()
    assert world.commit({"a": [0]}, 8, "t") == [STALE]
    assert world.commit({"a": [0]}, 9, "t") == [0]


def old_record() -> bytes:
    from protocol.messages.coordinator_records import encode_record
    from protocol.messages.streams_group_records import (
        StreamsGroupCurrentMemberAssignmentValue,
        StreamsGroupCurrentMemberAssignmentValueTaskIds,
    )

    tasks = StreamsGroupCurrentMemberAssignmentValueTaskIds(subtopology_id="0", partitions=[0, 1])
    value = StreamsGroupCurrentMemberAssignmentValue(
        member_epoch=9, previous_member_epoch=8, state=1, active_tasks=[tasks]
    )
    return encode_record(value, 0)


def fetch(world: StreamsWorld, member_id: str | None, epoch: int) -> int:
    asked = OffsetFetchRequestGroup(group_id="g", member_id=member_id, member_epoch=epoch, topics=None)
    return int(world.client.call(OffsetFetchRequest(groups=[asked]), 9).groups[0].error_code)


def test_offset_fetch_takes_the_member_epoch_only(world):
    assert fetch(world, "t", 9) == 0
    assert fetch(world, "t", 8) == STALE
    assert fetch(world, "x", 9) == ErrorCode.UNKNOWN_MEMBER_ID
    assert fetch(world, None, -1) == 0


@pytest.mark.parametrize(
    ("fencing", "answers"),
    [
        ("assignment-epoch", [0, 0, STALE]),
        ("assignment-epoch-exact", [STALE, 0, STALE]),
        ("strict", [0, STALE, STALE]),
    ],
)
def test_fencing_is_as_configured(fencing, answers):
    with StreamsWorld({"a": 3, "b": 1, "r": 3, "z": 1}, group_commit_fencing=fencing) as world:
        put(world, CURRENT)
        asked: list[Any] = [({"z": [0]}, 9), ({"a": [0]}, 8), ({"a": [1]}, 6)]
        assert [world.commit(partitions, epoch, "t")[0] for partitions, epoch in asked] == answers


def test_revocation_epoch_refuses_what_was_sent_before_tasks_were_given_back():
    with StreamsWorld({"in": 4}, group_commit_fencing="revocation-epoch") as world:
        a, b = world.member("a"), world.member("b")
        a.join()
        make_topic(world.client, "else")
        assert a.commit(2, {"in": [0]}) == [0]
        b.join()
        a.beat()
        assert a.commit(2, {"in": [3]}) == [0], "it is told to give back, and has not done so yet"
        a.ack()
        assert world.group().members["a"].current.revocation_epoch == 2
        assert a.commit(2, {"in": [0]}) == [STALE]
        assert a.commit(3, {"in": [0]}) == [0]


def test_owner_and_zombie_of_a_task_that_moved():
    with StreamsWorld({"in": 2}) as world:
        a, b = world.member("a"), world.member("b")
        a.join()
        b.join()
        a.beat()
        zombie = a.epoch
        a.ack()
        b.beat()
        assert (a.active, b.active) == ({"0": [0]}, {"0": [1]})
        assert a.commit(zombie, {"in": [0]}) == [0], "its own, had since then"
        assert a.commit(zombie, {"in": [1]}) == [STALE], "not its own any more"
        assert b.commit(b.epoch, {"in": [1]}) == [0]
        assert b.commit(b.epoch - 1, {"in": [1]}) == [STALE], "not its own then"


def test_commit_keeps_no_member_alive(world_of_one):
    """In Kafka a session is refreshed by heartbeats only."""
    world, a = world_of_one
    world.world.advance(40_000)
    assert a.commit(None, {"in": [0]}) == [0]
    world.world.advance(5_000)
    assert world.group().members == {}


@pytest.fixture
def world_of_one():
    with StreamsWorld({"in": 1}) as world:
        a: Member = world.member("a")
        a.join()
        yield world, a
