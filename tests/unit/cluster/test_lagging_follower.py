"""A follower that is told to lag: what waits for it, what goes on without it, and what it has missed when it leads."""

from __future__ import annotations

import pytest
from core_broker import DATA, FLUSHES, Client
from core_requests import fetch_request, produce_request
from trio_kit import COMMITTED, Trio
from txn_kit import Producer

from protocol.errors import ErrorCode
from protocol.messages.topics import DeleteTopicsRequest
from storage.files import checkpoints

LAG_MS = 30_000  # replica.lag.time.max.ms


def send(trio: Trio, *values: bytes, timeout_ms: int = 60_000, acks: int = -1) -> Client:
    """A client that waits for the answer to its Produce."""
    client = Client(trio.world, trio.info.leader - 1)
    request = produce_request("t", 0, *values, acks=acks)
    request.timeout_ms = timeout_ms
    client.send(request, 9)
    trio.world.run()
    return client


def answered(client: Client) -> list[int]:
    return [each.responses[0].partition_responses[0].error_code for each in client.replies()]


@pytest.mark.parametrize("shortcuts", [True, False])
@pytest.mark.parametrize("flush", FLUSHES)
def test_acks_all_waits_for_a_follower_that_lags_and_acks_1_does_not(flush, shortcuts):
    trio = Trio([1, 2], flush, shortcuts=shortcuts)
    assert trio.produce(b"before") == 0
    trio.change("lag 2")
    waiting = send(trio, b"waits")
    assert trio.produce(b"one", acks=1) == 0
    assert answered(waiting) == []
    for how in ({}, COMMITTED):
        assert trio.read(**how) == (1, [b"before"])
    trio.change("release 2")
    assert answered(waiting) == [0]
    for how in ({}, COMMITTED):
        assert trio.read(**how) == (3, [b"before", b"waits", b"one"])
    assert trio.produce(b"after") == 0


@pytest.mark.parametrize("how", [{}, COMMITTED], ids=["uncommitted", "committed"])
def test_reader_at_the_end_waits_for_a_follower_that_lags(how):
    trio = Trio([1, 2])
    trio.change("lag 2")
    reader = Client(trio.world)
    reader.send(fetch_request("t", 0, 0, max_wait_ms=50_000, **how), 12)
    assert trio.produce(b"a", acks=1) == 0
    assert reader.replies() == []
    trio.change("release 2")
    (answer,) = reader.replies()
    assert answer.responses[0].partitions[0].high_watermark == 1


def test_follower_that_has_missed_something_for_too_long_leaves_and_acks_all_goes_on():
    trio = Trio([1, 2])
    trio.change("lag 2")
    waiting = send(trio, b"waits")
    trio.world.advance(LAG_MS - 1)
    assert (answered(waiting), trio.info.isr) == ([], [1, 2])
    trio.world.advance(1)
    assert (answered(waiting), trio.info.isr) == ([0], [1])
    assert trio.produce(b"at once") == 0
    assert trio.read()[0] == 2
    trio.change("release 2")
    assert trio.info.isr == [1, 2]


def test_follower_that_has_missed_nothing_stays_in_sync_until_it_has():
    trio = Trio([1, 2])
    assert trio.produce(b"both") == 0
    trio.change("lag 2")
    trio.world.advance(10 * LAG_MS)
    assert trio.info.isr == [1, 2]
    waiting = send(trio, b"waits")
    assert answered(waiting) == []
    trio.world.advance(LAG_MS // 2)
    assert (answered(waiting), trio.info.isr) == ([0], [1])


def test_lag_time_of_the_setting_is_waited_for():
    trio = Trio([1, 2], settings={"replica_lag_time_max_ms": "1000"})
    trio.change("lag 2")
    waiting = send(trio, b"waits")
    trio.world.advance(999)
    assert answered(waiting) == []
    trio.world.advance(1)
    assert answered(waiting) == [0]


def test_acks_all_below_min_insync_replicas_after_the_append_times_out_and_is_in_the_log():
    trio = Trio([1, 2], min_insync_replicas="2")
    trio.change("lag 2")
    waiting = send(trio, b"waits", timeout_ms=LAG_MS + 5000)
    trio.world.advance(LAG_MS)
    assert (answered(waiting), trio.info.isr, trio.info.elr) == ([], [1], [2])
    trio.world.advance(5000)
    assert answered(waiting) == [ErrorCode.REQUEST_TIMED_OUT]
    assert trio.produce(b"refused") == ErrorCode.NOT_ENOUGH_REPLICAS
    assert trio.read() == (0, [])
    trio.change("release 2")
    assert trio.read() == (1, [b"waits"])


@pytest.mark.parametrize("flush", FLUSHES)
def test_follower_that_lags_and_leads_has_lost_what_it_missed(flush):
    trio = Trio([2, 1, 3], flush)
    assert trio.produce(b"both") == 0
    trio.change("lag 1")
    waiting = send(trio, b"waits")
    trio.change("stop 2")
    assert trio.info.leader == 1
    assert answered(waiting) == [ErrorCode.NOT_LEADER_OR_FOLLOWER]
    assert trio.read() == (1, [b"both"])
    assert trio.produce(b"again") == 0  # it leads, and waits for nobody
    trio.change("start 2")
    assert trio.read() == (2, [b"both", b"again"])
    if flush == "os":
        answer = Client(trio.world.crash(), 1).call(fetch_request("t", 0, 0), 12)
        assert answer.responses[0].partitions[0].high_watermark == 2


def test_old_leader_does_not_have_what_was_written_over_its_records():
    trio = Trio([2, 1], unclean_leader_election_enable="true")
    assert trio.produce(b"both") == 0
    trio.change("lag 1")
    assert trio.produce(b"lost", acks=1) == 0
    trio.change("stop 2")  # it has two records; 1 leads and has one
    assert trio.produce(b"second", acks=1) == 0
    trio.change("stop 1", "start 2")  # an unclean leader, whose second record was another one
    assert trio.read() == (1, [b"both"])


def test_preferred_leader_that_lags_is_elected_and_what_it_missed_is_lost():
    trio = Trio([2, 1])
    trio.change("stop 2", "start 2")
    assert trio.elect(0) == ErrorCode.ELECTION_NOT_NEEDED
    trio.reassign([1, 2])
    assert trio.info.leader == 2
    assert trio.produce(b"both") == 0
    trio.change("lag 1")
    waiting = send(trio, b"waits")
    assert trio.elect(0) == 0
    trio.world.run()
    assert answered(waiting) == [ErrorCode.NOT_LEADER_OR_FOLLOWER]
    assert (trio.info.leader, trio.read()) == (1, (1, [b"both"]))
    assert trio.produce(b"again") == 0


def test_topic_made_while_a_follower_lags_waits_for_it_too():
    trio = Trio([1, 2])
    trio.change("lag 2")
    trio.clients[1].call(DeleteTopicsRequest(topic_names=["t"], timeout_ms=1), 5)
    trio.make([1, 2])
    waiting = send(trio, b"waits")
    assert answered(waiting) == []
    trio.change("release 2")
    assert answered(waiting) == [0]


def test_stopped_follower_lags_no_more_when_it_starts():
    trio = Trio([1, 2])
    trio.change("lag 2", "stop 2", "start 2")
    assert trio.info.isr == [1, 2]
    assert trio.produce(b"at once") == 0
    trio.world.advance(2 * LAG_MS)
    assert trio.info.isr == [1, 2]


def test_deleted_topics_leave_nothing_behind():
    trio = Trio([1, 2])
    trio.change("lag 2", "stop 2")
    followers = trio.world.broker.nodes.followers
    assert followers.ends
    trio.clients[1].call(DeleteTopicsRequest(topic_names=["t"], timeout_ms=1), 5)
    trio.world.run()
    assert not followers.ends


def test_transaction_commits_and_is_read_when_its_follower_has_caught_up():
    trio = Trio([1, 2])
    producer = Producer(trio.clients[1], v2=True)
    assert producer.init() == 0
    assert producer.produce(b"a") == 0
    trio.change("lag 2")
    assert producer.end(commit=True) == 0
    assert trio.read(**COMMITTED)[1] == []
    assert trio.read()[0] == 1
    trio.change("release 2")
    assert trio.read(**COMMITTED)[1][0] == b"a"


def test_closed_connection_does_not_wait():
    trio = Trio([1, 2])
    trio.change("lag 2")
    waiting = send(trio, b"waits")
    waiting.leave()
    trio.world.run()
    (partition,) = (each for each in trio.world.broker.partitions.opened() if each.topic.name == "t")
    assert not partition.waiters
    trio.change("release 2")
    assert trio.read()[0] == 1


@pytest.mark.parametrize("kinds", [("write",), ("sync",)])
def test_records_that_cannot_be_written_are_not_waited_for(kinds):
    trio = Trio([1, 2], "fsync")
    assert trio.produce(b"before") == 0
    trio.change("lag 2")
    trio.world.files.inject(1, kinds=kinds)
    waiting = send(trio, b"waits")
    assert answered(waiting) == [ErrorCode.KAFKA_STORAGE_ERROR]
    trio.change("release 2")
    assert trio.read() == (1, [b"before"])


def test_replica_that_was_moved_away_while_it_lagged_and_back_has_what_was_committed_since():
    trio = Trio([1, 2])
    trio.change("lag 2")
    trio.reassign([1, 3])
    assert trio.produce(b"committed") == 0
    trio.reassign([1, 2])
    trio.change("stop 1")
    assert trio.info.leader == 2
    assert trio.read() == (1, [b"committed"])


def test_follower_that_has_left_stays_out_when_another_broker_stops_and_starts():
    trio = Trio([1, 2, 3])
    trio.change("lag 2")
    assert trio.produce(b"a", acks=1) == 0
    trio.world.advance(LAG_MS)
    assert trio.info.isr == [1, 3]
    trio.change("stop 3", "start 3")
    assert trio.info.isr == [1, 3]
    trio.change("release 2")
    assert trio.info.isr == [1, 2, 3]


def lose_by_a_stop_that_is_not_durable(trio: Trio) -> None:
    """Node 2 leads, and 1 lags; node 2 stops, and nothing has been synced since."""
    assert trio.produce(b"both") == 0
    trio.change("lag 1")
    assert trio.produce(b"mine", acks=1) == 0
    trio.world.auto_sync = False
    node = trio.nodes.find(2)
    assert node is not None
    trio.nodes.stop(node, lambda durable: None)
    trio.world.run()
    assert trio.info.leader == 1


def test_crash_before_a_new_leader_is_durable_loses_nothing():
    trio = Trio([2, 1], "fsync")
    lose_by_a_stop_that_is_not_durable(trio)
    again = trio.world.crash(lose_unsynced=True)
    assert again.broker.metadata.topics["t"].partitions[0].leader == 2
    answer = Client(again, 1).call(fetch_request("t", 0, 0), 12)
    assert answer.responses[0].partitions[0].high_watermark == 2


def test_new_leader_takes_nothing_until_it_has_lost_what_it_missed():
    trio = Trio([2, 1], "fsync")
    lose_by_a_stop_that_is_not_durable(trio)
    early = send(trio, b"early")
    trio.world.auto_sync = True
    trio.world.run()
    assert answered(early) == [ErrorCode.NOT_LEADER_OR_FOLLOWER]
    assert trio.produce(b"again") == 0
    assert trio.read() == (2, [b"both", b"again"])


def test_records_behind_a_cut_are_checked_after_a_crash():
    """The cut lies below the recovery point, and what is written behind it is not synced."""
    trio = Trio([1, 2])
    trio.change("lag 2")
    for n in range(10):
        assert trio.produce(b"%d" % n, acks=1) == 0
    directory = trio.world.broker.directory
    trio.world.advance(130_000)
    assert directory.recovery_point(("t", 0)) == 10
    trio.change("stop 1")
    trio.elect(1)
    assert directory.logs["t", 0].end_offset == 0
    assert trio.produce(*[b"%d" % n for n in range(20)], acks=1) == 0
    files = trio.world.files.crash()
    found = checkpoints.read_offsets(files, f"{DATA}/{checkpoints.RECOVERY_POINTS}")
    assert found["t", 0] == 0
