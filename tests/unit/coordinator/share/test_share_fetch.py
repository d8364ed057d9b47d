"""ShareFetch waits for records, and is refused with Kafka's codes."""

from __future__ import annotations

import pytest
from unit.coordinator.share.kit import ShareWorld, acquired

from protocol.errors import ErrorCode
from protocol.messages.topics import DeleteTopicsRequest

ACCEPT, RELEASE, RENEW = 1, 2, 4


@pytest.fixture
def world():
    with ShareWorld() as made:
        yield made


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


@pytest.mark.parametrize("most", [0, -1])
@pytest.mark.parametrize("field", ["max_records", "max_bytes"])
def test_fetch_that_asks_for_no_records_or_fewer_acquires_none_and_does_not_wait(world, field, most):
    m = world.reader()
    for _ in range(2):
        assert m.acquired(**{field: most, "max_wait_ms": 60_000}) == []
        world.produce(1)
    assert m.acquired() == [(0, 1, 1)]


def test_partition_that_cannot_be_loaded_is_told_when_no_other_has_records():
    """Kafka finds it out beside the request, which records of another partition answer before."""
    with ShareWorld({"t": 1, "u": 1}) as world:
        m = world.reader("m", "t")
        assert m.acquired(0) == []
        world.produce(1)
        reply = m.fetch(0, topic="u")  # a topic that its group does not read
        assert ([len(reply.responses), partition_error(reply)], acquired(reply)) == ([1, 0], [(0, 0, 1)])
        assert partition_error(m.fetch()) == ErrorCode.UNKNOWN_SERVER_ERROR


def test_response_has_its_partitions_in_order_whichever_is_read_first():
    with ShareWorld({"t": 3}) as world:
        m = world.reader()
        for named in ([0, 1, 2], [], [], []):
            for partition in range(3):
                world.produce(1, partition=partition)
            (topic,) = m.fetch(*named).responses
            assert [each.partition_index for each in topic.partitions] == [0, 1, 2]


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


def test_unknown_acquire_mode_fails_after_the_acknowledgements_were_taken():
    """As in Kafka, where the session goes on too."""
    with ShareWorld() as world:
        world.produce(2)
        m = world.reader()
        assert m.acquired(max_records=1, share_acquire_mode=1) == [(0, 0, 1)]
        reply = m.fetch(acks={0: [(0, 0, [2])]}, share_acquire_mode=2)
        assert reply.error_code == ErrorCode.UNKNOWN_SERVER_ERROR
        assert m.acquired() == [(0, 0, 2), (1, 1, 1)]
