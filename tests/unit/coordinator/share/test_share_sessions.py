"""Share sessions: their epochs, what they remember, and what their end gives back."""

from __future__ import annotations

import pytest
from core_broker import Client
from unit.coordinator.share.kit import ShareWorld, acquired

from protocol.api import ApiKey
from protocol.errors import ErrorCode

ACCEPT, RELEASE = 1, 2


@pytest.fixture
def world():
    with ShareWorld() as made:
        yield made


def test_session_remembers_its_partitions():
    with ShareWorld({"t": 2}) as world:
        world.produce(1)
        world.produce(1, partition=1)
        m = world.reader()
        assert m.acquired(0) == [(0, 0, 1)]
        assert m.acquired(1) == [(0, 0, 1)]
        world.produce(1)
        world.produce(1, partition=1)
        assert m.acquired(forget=[0]) == [(1, 1, 1)]


@pytest.mark.parametrize(
    ("epoch", "code"),
    [(2, ErrorCode.INVALID_SHARE_SESSION_EPOCH), (1, 0), (0, 0), (-1, 0)],
)
def test_session_epoch_must_be_the_next_one(world, epoch, code):
    m = world.reader()
    m.acquired()
    assert m.fetch(0, epoch=epoch).error_code == code


def test_fetch_and_acknowledge_need_a_session(world):
    m = world.reader()
    assert m.fetch(epoch=1).error_code == ErrorCode.SHARE_SESSION_NOT_FOUND
    assert m.fetch(epoch=-1).error_code == ErrorCode.SHARE_SESSION_NOT_FOUND
    assert m.acknowledge((0, 0, [1]), epoch=1).error_code == ErrorCode.SHARE_SESSION_NOT_FOUND
    assert m.acknowledge((0, 0, [1]), epoch=0).error_code == ErrorCode.INVALID_SHARE_SESSION_EPOCH


def test_end_of_the_session_gives_records_back(world):
    world.produce(2)
    a, b = world.reader("a"), world.reader("b")
    a.acquired()
    reply = a.fetch(acks={0: [(0, 0, [ACCEPT])]}, epoch=-1)
    assert (reply.error_code, acquired(reply)) == (0, [])
    assert b.acquired() == [(1, 1, 2)]


def test_end_of_the_session_gives_records_of_many_partitions_to_its_own_fetch_that_waits():
    """Which changes the order of the session's partitions meanwhile."""
    with ShareWorld({"t": 3}) as world:
        a = world.reader("a")
        for _ in range(2):
            for partition in range(3):
                world.produce(1, partition=partition)
            for partition in range(3):
                a.acquired(partition)
        waits = Client(world.world)
        waits.send(a.fetch_request(epoch=a.session, max_wait_ms=500), 2)
        world.world.run()
        assert waits.replies() == []
        assert a.fetch(epoch=-1).error_code == 0
        (reply,) = waits.replies()
        assert acquired(reply) == [(0, 0, 2), (1, 1, 2)]


def test_fetch_whose_session_goes_on_while_it_waits_is_refused_and_counted_as_an_error(world):
    m = world.reader()
    m.acquired()
    m.client.send(m.fetch_request(max_wait_ms=500), 2)
    world.world.run()
    assert Client(world.world).call(m.fetch_request(), 2).error_code == 0
    world.world.advance(500)
    refused = ErrorCode.INVALID_SHARE_SESSION_EPOCH
    assert [reply.error_code for reply in m.client.replies()] == [refused]
    assert world.world.broker.turn.metrics.errors[ApiKey.SHARE_FETCH, refused] == 1


def test_end_of_the_connection_gives_records_back(world):
    world.produce(2)
    a, b = world.reader("a"), world.reader("b")
    b.acquired()
    b.acknowledge((0, 1, [RELEASE]))
    assert a.acquired() == [(0, 1, 2)]
    a.client.leave()
    world.world.run()
    assert b.acquired() == [(0, 1, 3)]


def test_too_many_sessions_are_refused_after_the_wait():
    with ShareWorld(group_share_max_share_sessions="1") as world:
        a, b = world.reader("a"), world.reader("b")
        a.acquired()
        b.client.send(b.fetch_request(0, max_wait_ms=500), 2)
        world.world.advance(499)
        assert b.client.replies() == []
        world.world.advance(1)
        assert [reply.error_code for reply in b.client.replies()] == [ErrorCode.SHARE_SESSION_LIMIT_REACHED]


def test_first_fetch_of_a_session_may_acknowledge_nothing(world):
    m = world.reader()
    assert m.fetch(acks={0: [(0, 0, [ACCEPT])]}).error_code == ErrorCode.INVALID_REQUEST


@pytest.mark.parametrize("fields", [{"group_id": None}, {"member_id": None}, {"member_id": "x" * 37}])
def test_names_are_checked(world, fields):
    m = world.reader()
    assert m.fetch(0, **fields).error_code == ErrorCode.INVALID_REQUEST
    assert m.acknowledge((0, 0, [ACCEPT]), **fields).error_code == ErrorCode.INVALID_REQUEST


def test_fault_finds_what_a_session_reads_though_the_fetch_does_not_name_it(world):
    world.produce(3)
    reader = world.reader()
    assert reader.acquired(0)
    fault = world.world.broker.faults.add(
        {"fault": "inject_error", "api": "ShareFetch", "topic": "t", "partition": 0, "error": "UNKNOWN_SERVER_ERROR"}
    )
    other = world.world.broker.faults.add(
        {"fault": "inject_error", "api": "ShareFetch", "topic": "t", "partition": 1, "error": "UNKNOWN_SERVER_ERROR"}
    )
    assert reader.fetch().error_code == ErrorCode.UNKNOWN_SERVER_ERROR
    assert (fault.hits, other.hits) == (1, 0)
