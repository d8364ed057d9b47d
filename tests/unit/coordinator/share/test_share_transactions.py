"""Share groups and transactions: `share.isolation.level` says whether open and aborted ones are delivered."""

from __future__ import annotations

import pytest
from core_broker import Client
from txn_kit import Producer
from unit.coordinator.share.kit import ShareWorld


@pytest.fixture
def world():
    with ShareWorld() as made:
        yield made


@pytest.fixture
def producer(world):
    made = Producer(Client(world.world))
    made.init()
    return made


def offsets(ranges):
    return [offset for first, last, _ in ranges for offset in range(first, last + 1)]


def transaction(producer, values, *, commit):
    assert producer.produce(*values) == 0
    assert producer.end(commit=commit) == 0


def test_records_of_aborted_transactions_are_archived_unread(world, producer):
    """The log: 0 committed, 1 its marker, 2-4 aborted, 5 its marker, 6 plain, 7 committed, 8 its marker."""
    world.set(**{"share.isolation.level": "read_committed"})
    m = world.reader()
    transaction(producer, [b"a"], commit=True)
    transaction(producer, [b"b", b"c", b"d"], commit=False)
    world.produce(1)
    transaction(producer, [b"e"], commit=True)
    found = offsets(m.acquired(0))
    assert not {2, 3, 4} & set(found)
    assert {0, 6, 7} <= set(found)
    assert m.ack_error((min(found), min(found), [1])) == 0
    assert m.ack_error((3, 3, [1])) != 0, "nobody has acquired it"


def test_records_of_aborted_transactions_are_delivered_uncommitted(world, producer):
    world.set(**{"share.isolation.level": "read_uncommitted"})
    m = world.reader()
    transaction(producer, [b"b", b"c", b"d"], commit=False)
    assert {0, 1, 2} <= set(offsets(m.acquired(0)))


def test_open_transaction_holds_back_what_follows_it(world, producer):
    world.set(**{"share.isolation.level": "read_committed"})
    m = world.reader()
    world.produce(1)
    assert producer.produce(b"x") == 0
    world.produce(1)
    assert offsets(m.acquired(0)) == [0]
    assert m.acquired(0, max_wait_ms=0) == []
    assert producer.end(commit=True) == 0
    assert {1, 3} <= set(offsets(m.acquired(0)))


def test_archived_records_stay_archived_over_a_restart(world, producer):
    world.set(**{"share.isolation.level": "read_committed"})
    m = world.reader()
    transaction(producer, [b"b", b"c", b"d"], commit=False)
    world.produce(1)
    assert offsets(m.acquired(0))[-1] == 4
    world.restart()
    again = world.reader("again")
    assert not {0, 1, 2} & set(offsets(again.acquired(0)))
