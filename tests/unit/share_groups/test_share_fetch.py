"""ShareFetch and ShareAcknowledge from outside: acquiring, locks, deliveries, sessions, and what is refused."""

from __future__ import annotations

import pytest
from unit.share_groups.kit import ShareWorld, acquired

from protocol.errors import ErrorCode
from protocol.messages.topics import DeleteTopicsRequest
from protocol.record_batch import iter_batches

ACCEPT, RELEASE, REJECT, RENEW, GAP = 1, 2, 3, 4, 0
WRONG_STATE = ErrorCode.INVALID_RECORD_STATE


@pytest.fixture
def world():
    with ShareWorld() as made:
        yield made


# -- acquiring ---------------------------------------------------------------------------------------------------------


def test_fetch_acquires_what_there_is_and_names_the_lock(world):
    world.produce(3, 2)
    reply = world.reader().fetch()
    assert acquired(reply) == [(0, 4, 1)]
    assert reply.acquisition_lock_timeout_ms == 30_000
    assert [b.base_offset for _, b in iter_batches(reply.responses[0].partitions[0].records)] == [0, 3]


def test_acquired_records_are_not_given_to_others(world):
    world.produce(3)
    a, b = world.reader("a"), world.reader("b")
    assert a.acquired() == [(0, 2, 1)]
    assert b.acquired() == []
    world.produce(1)
    assert b.acquired() == [(3, 3, 1)]


def test_whole_batches_are_acquired_beyond_the_limit_of_records(world):
    world.produce(3, 3, 3)
    assert world.reader().acquired(max_records=4) == [(0, 5, 1)]


def test_batch_size_splits_what_is_acquired(world):
    world.produce(3, 3, 3)
    assert world.reader().acquired(batch_size=3) == [(0, 2, 1), (3, 5, 1), (6, 8, 1)]


def test_record_limit_acquires_exactly_so_many(world):
    world.produce(5)
    m = world.reader()
    assert m.acquired(max_records=2, share_acquire_mode=1) == [(0, 1, 1)]
    assert m.acquired(max_records=2, share_acquire_mode=1) == [(2, 3, 1)]
    assert m.acquired(max_records=2, share_acquire_mode=1) == [(4, 4, 1)]


def test_records_in_flight_are_limited(world):
    assert world.set(**{"share.partition.max.record.locks": "100"}) == 0
    world.produce(*[60] * 3)
    m = world.reader()
    assert m.acquired() == [(0, 119, 1)]
    assert m.acquired() == []
    assert m.ack_error((0, 59, [ACCEPT])) == 0
    assert m.acquired() == [(120, 179, 1)]


def test_latest_reads_what_comes_after_the_first_fetch():
    with ShareWorld(reset="latest") as world:
        world.produce(3)
        m = world.reader()
        assert m.acquired() == []
        world.produce(2)
        assert m.acquired() == [(3, 4, 1)]


def test_by_duration_reads_what_is_not_older():
    with ShareWorld(reset="by_duration:PT1H") as world:
        world.world.clock.advance(1_700_000_000_000 + 1_800_000 - world.world.clock.now_ms())
        world.produce(2)
        assert world.reader().acquired() == [(0, 1, 1)]


def test_max_bytes_is_kept(world):
    world.produce(5, 5)
    assert world.reader().acquired(max_bytes=100) == [(0, 4, 1)]


def test_deleted_records_are_passed_over(world):
    from protocol.messages.topics import DeleteRecordsPartition, DeleteRecordsRequest, DeleteRecordsTopic

    world.produce(5, 5)
    m = world.reader()
    assert m.acquired(max_records=5) == [(0, 4, 1)]
    request = DeleteRecordsRequest(
        topics=[DeleteRecordsTopic(name="t", partitions=[DeleteRecordsPartition(partition_index=0, offset=7)])],
        timeout_ms=1000,
    )
    assert world.client.call(request, 2).topics[0].partitions[0].error_code == 0
    assert m.acquired() == [(5, 9, 1)]  # whole batches, as in Kafka
    assert m.ack_error((0, 4, [ACCEPT])) == 0


# -- acknowledging -----------------------------------------------------------------------------------------------------


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


# -- locks -------------------------------------------------------------------------------------------------------------


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


# -- waiting -----------------------------------------------------------------------------------------------------------


def test_fetch_waits_for_records(world):
    m = world.reader()
    m.client.send(m.fetch_request(0, max_wait_ms=5000), 2)
    world.world.run()
    assert m.client.replies() == []
    world.produce(2)
    assert [acquired(reply) for reply in m.client.replies()] == [[(0, 1, 1)]]


def test_fetch_is_answered_after_its_wait(world):
    m = world.reader()
    m.client.send(m.fetch_request(0, max_wait_ms=5000), 2)
    world.world.advance(4999)
    assert m.client.replies() == []
    world.world.advance(1)
    assert [acquired(reply) for reply in m.client.replies()] == [[]]


def test_several_waiting_members_get_disjoint_records(world):
    members = [world.reader(f"m{number}") for number in range(8)]
    for member in members:
        member.client.send(member.fetch_request(0, max_wait_ms=60_000, max_records=1), 2)
    world.world.run()
    world.produce(*[1] * 8)
    found = [acquired(reply) for member in members for reply in member.client.replies()]
    assert sorted(found) == [[(offset, offset, 1)] for offset in range(8)]


def test_member_that_waits_gets_what_another_one_releases(world):
    world.produce(1)
    a, b = world.reader("a"), world.reader("b")
    a.acquired()
    b.client.send(b.fetch_request(0, max_wait_ms=60_000), 2)
    world.world.run()
    a.acknowledge((0, 0, [RELEASE]))
    assert [acquired(reply) for reply in b.client.replies()] == [[(0, 0, 2)]]


def test_deleted_topic_ends_the_wait(world):
    m = world.reader()
    m.client.send(m.fetch_request(0, max_wait_ms=60_000), 2)
    world.world.run()
    world.client.call(DeleteTopicsRequest(topic_names=["t"], timeout_ms=1000), 5)
    world.world.run()
    (reply,) = m.client.replies()
    assert reply.responses[0].partitions[0].error_code == ErrorCode.UNKNOWN_TOPIC_ID


# -- sessions ----------------------------------------------------------------------------------------------------------


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


# -- errors of partitions ----------------------------------------------------------------------------------------------


def partition_error(reply):
    return reply.responses[0].partitions[0].error_code


def test_unknown_topics_and_partitions_have_kafkas_codes(world):
    m = world.reader()
    assert partition_error(m.fetch(0, topic_id=b"\1" * 16)) == ErrorCode.UNKNOWN_TOPIC_ID
    other = world.reader("o")
    assert partition_error(other.fetch(9)) == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert other.ack_error((0, 0, [ACCEPT]), topic_id=b"\1" * 16) == ErrorCode.UNKNOWN_TOPIC_ID
    assert other.ack_error((0, 0, [ACCEPT]), partition=9) == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def test_group_that_never_subscribed_has_nothing_to_read(world):
    world.reader()
    stranger = world.member(group="other")
    assert partition_error(stranger.fetch(0)) == ErrorCode.UNKNOWN_SERVER_ERROR


def test_other_node_names_the_leader():
    with ShareWorld({"t": 2}, brokers=2) as world:
        m = world.reader()
        leader = world.world.broker.metadata.topics["t"].partitions[0].leader
        here = m.client.connection.node_id
        wrong = 1 if leader == here else 0
        reply = m.fetch(wrong)
        part = reply.responses[0].partitions[0]
        assert part.error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER
        assert part.current_leader.leader_id != here
        assert [e.node_id for e in reply.node_endpoints] == [part.current_leader.leader_id]


# -- restarts ----------------------------------------------------------------------------------------------------------


def test_after_a_restart_acknowledged_records_stay_away_and_others_come_again(world):
    world.produce(5)
    m = world.reader()
    m.acquired()
    assert m.ack_error((1, 2, [ACCEPT])) == 0
    assert m.ack_error((3, 3, [RELEASE])) == 0
    world.restart()
    again = world.member("n")
    assert again.acquired() == [(0, 0, 1), (3, 3, 2), (4, 4, 1)]


def test_versions_1_has_no_renewal(world):
    world.produce(1)
    m = world.reader()
    assert acquired(m.fetch(version=1)) == [(0, 0, 1)]
    reply = m.acknowledge((0, 0, [RENEW]), version=1)
    assert partition_error(reply) == ErrorCode.INVALID_REQUEST
    assert partition_error(m.acknowledge((0, 0, [ACCEPT]), version=1)) == 0
