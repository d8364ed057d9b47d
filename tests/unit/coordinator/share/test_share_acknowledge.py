"""What becomes of acquired records: accepted, released, rejected, renewed, or their lock expires."""

from __future__ import annotations

import pytest
from unit.coordinator.share.kit import ShareWorld, acquired

from protocol.errors import ErrorCode

ACCEPT, RELEASE, REJECT, RENEW, GAP = 1, 2, 3, 4, 0
WRONG_STATE = ErrorCode.INVALID_RECORD_STATE


@pytest.fixture
def world():
    with ShareWorld() as made:
        yield made


def test_accepted_records_move_the_start_offset(world):
    world.produce(5)
    m = world.reader()
    m.acquired()
    assert m.ack_error((0, 2, [ACCEPT])) == 0
    assert (world.state().start_offset, world.state().batches) == (0, ((0, 2, 2, 1),))
    assert m.ack_error((3, 4, [ACCEPT, REJECT])) == 0
    assert world.state().start_offset == 3
    assert m.acquired() == []


def test_released_records_come_again_with_a_higher_count(world):
    world.produce(3)
    a, b = world.reader("a"), world.reader("b")
    a.acquired()
    assert a.ack_error((0, 2, [ACCEPT, RELEASE, ACCEPT])) == 0
    assert b.acquired() == [(1, 1, 2)]


def test_record_is_archived_when_it_was_delivered_as_often_as_it_may(world):
    world.produce(1)
    m = world.reader()
    counts = []
    while found := m.acquired():
        counts.append(found[0][2])
        m.ack_error((0, 0, [RELEASE]))
    assert counts == [1, 2, 3, 4, 5]
    assert world.state().batches == ((0, 0, 4, 5),)


def test_poison_record_is_isolated_and_its_batch_goes_on(world):
    world.produce(8)
    m = world.reader()
    done, deliveries = set(), 0
    while found := m.acquired():
        deliveries += 1
        for first, last, _ in found:
            if first <= 3 <= last:
                m.ack_error((first, last, [RELEASE]))
            else:
                done.update(range(first, last + 1))
                m.ack_error((first, last, [ACCEPT]))
        assert deliveries < 50
    assert done == {0, 1, 2, 4, 5, 6, 7}


def test_gap_is_archived(world):
    world.produce(2)
    m = world.reader()
    m.acquired()
    assert m.ack_error((0, 1, [GAP, ACCEPT])) == 0
    assert world.state().batches == ((0, 0, 4, 1), (1, 1, 2, 1))


def test_fetch_takes_acknowledgements_before_it_reads(world):
    world.produce(2, 2)
    m = world.reader()
    m.acquired(max_records=2)
    reply = m.fetch(acks={0: [(0, 1, [ACCEPT])]})
    assert acquired(reply) == [(2, 3, 1)]
    assert reply.responses[0].partitions[0].acknowledge_error_code == 0
    assert world.state().batches == ((0, 1, 2, 1),)


def test_wrong_acknowledgement_in_a_fetch_is_told_beside_the_records(world):
    world.produce(2)
    m = world.reader()
    reply = m.fetch(0)
    world.produce(1)
    reply = m.fetch(acks={0: [(0, 9, [ACCEPT])]})
    assert acquired(reply) == [(2, 2, 1)]
    assert reply.responses[0].partitions[0].acknowledge_error_code == ErrorCode.INVALID_REQUEST


@pytest.mark.parametrize(
    ("batches", "code"),
    [
        ([(3, 2, [ACCEPT])], ErrorCode.INVALID_REQUEST),
        ([(0, 2, [])], ErrorCode.INVALID_REQUEST),
        ([(0, 2, [ACCEPT, ACCEPT])], ErrorCode.INVALID_REQUEST),
        ([(0, 2, [5])], ErrorCode.INVALID_REQUEST),
        ([(0, 2, [RENEW])], ErrorCode.INVALID_REQUEST),
        ([(2, 2, [ACCEPT]), (0, 1, [ACCEPT])], ErrorCode.INVALID_REQUEST),
        ([(7, 8, [ACCEPT])], ErrorCode.INVALID_REQUEST),
        ([(0, 2, [ACCEPT]), (2, 2, [ACCEPT])], WRONG_STATE),
    ],
)
def test_acknowledgement_is_refused_with_kafkas_code_and_changes_nothing(world, batches, code):
    world.produce(3)
    m = world.reader()
    m.acquired()
    assert m.ack_error(*batches) == code
    assert world.state().batches == ()
    assert m.ack_error((0, 2, [ACCEPT])) == 0


def test_only_the_owner_may_acknowledge(world):
    world.produce(3)
    a, b = world.reader("a"), world.reader("b")
    a.acquired()
    b.acquired()
    assert b.ack_error((0, 2, [ACCEPT])) == WRONG_STATE
    assert b.ack_error((1, 1, [ACCEPT])) == WRONG_STATE
    assert a.ack_error((0, 1, [ACCEPT])) == 0
    assert a.ack_error((1, 2, [ACCEPT])) == 0  # what lies below the start offset is passed over
    assert a.ack_error((0, 2, [ACCEPT])) == 0
    assert b.ack_error((0, 2, [ACCEPT])) == 0


def test_what_a_fetch_gives_back_is_not_in_its_own_answer(world):
    world.produce(5)
    m = world.reader()
    assert m.acquired() == [(0, 4, 1)]
    assert m.acquired(acks={0: [(0, 4, [RELEASE])]}) == []
    assert m.acquired() == [(0, 4, 2)]


def test_lock_that_expires_gives_the_records_to_others(world):
    world.produce(3)
    a, b = world.reader("a"), world.reader("b")
    a.acquired()
    world.world.advance(29_999)
    assert b.acquired() == []
    world.world.advance(1)
    assert b.acquired() == [(0, 2, 2)]
    assert a.ack_error((0, 2, [ACCEPT])) == WRONG_STATE


def test_parked_fetch_gets_what_a_lock_gives_back(world):
    world.produce(1)
    a, b = world.reader("a"), world.reader("b")
    a.acquired()
    b.client.send(b.fetch_request(0, max_wait_ms=60_000), 2)
    world.world.advance(30_000)
    assert [acquired(reply) for reply in b.client.replies()] == [[(0, 0, 2)]]


def test_renewed_lock_lasts_again(world):
    world.produce(3)
    a, b = world.reader("a"), world.reader("b")
    a.acquired()
    world.world.advance(20_000)
    assert a.ack_error((0, 1, [RENEW]), is_renew_ack=True) == 0
    world.world.advance(20_000)
    assert b.acquired() == [(2, 2, 2)]
    world.world.advance(10_000)
    assert b.acquired() == [(0, 1, 2)]


def test_renewal_can_be_switched_off(world):
    assert world.set(**{"share.renew.acknowledge.enable": "false"}) == 0
    world.produce(1)
    m = world.reader()
    m.acquired()
    assert m.ack_error((0, 0, [RENEW]), is_renew_ack=True) == WRONG_STATE


def test_fetch_that_renews_reads_nothing(world):
    world.produce(1, 1)
    m = world.reader()
    m.acquired(max_records=1)
    assert m.fetch(acks={0: [(0, 0, [RENEW])]}, is_renew_ack=True).error_code == ErrorCode.INVALID_REQUEST
    m.session -= 1
    zero = {"max_bytes": 0, "min_bytes": 0, "max_records": 0, "max_wait_ms": 0}
    reply = m.fetch(acks={0: [(0, 0, [RENEW])]}, is_renew_ack=True, **zero)
    assert (reply.error_code, acquired(reply)) == (0, [])


def test_lock_lasts_as_long_as_the_group_says(world):
    assert world.set(**{"share.record.lock.duration.ms": "15000"}) == 0
    world.produce(1)
    a, b = world.reader("a"), world.reader("b")
    a.acquired()
    world.world.advance(15_000)
    assert b.acquired() == [(0, 0, 2)]


def test_shorter_lock_expires_before_an_earlier_one(world):
    world.produce(1, 1)
    a, b = world.reader("a"), world.reader("b")
    assert a.acquired(max_records=1) == [(0, 0, 1)]
    world.set(**{"share.record.lock.duration.ms": "15000"})
    assert b.acquired(max_records=1) == [(1, 1, 1)]
    world.world.advance(15_001)
    assert world.reader("c").acquired() == [(1, 1, 2)]
