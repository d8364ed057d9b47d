"""A clock that is moved passes all deadlines in their order, with what each of them begins."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Iterator
from contextlib import ExitStack, closing

import pytest
from clientwork import until
from cluster_kit import Wire, join, topics
from confluent_kafka import Producer
from test_cluster_failures import process as process_in_this_loop

from broker.shell.cluster_plan import ClusterPlan
from broker.shell.control.of_cluster.clock import move_clock
from broker.shell.control.routes import Call, RefusedError
from momus import Broker
from momus.cluster import Cluster
from protocol.messages.classic_group import SyncGroupRequest
from protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from protocol.messages.share_fetch import (
    ShareFetchRequest,
    ShareFetchRequestFetchPartition,
    ShareFetchRequestFetchTopic,
)
from protocol.messages.share_group import ShareGroupHeartbeatRequest
from protocol.messages.transaction_admin import DescribeProducersRequest, DescribeProducersRequestTopicRequest

LATER_MS = 4_000_000_000_000


@pytest.fixture(scope="module")
def process() -> Iterator[Broker]:
    with Broker() as broker:
        yield broker
        assert (broker.stop(), broker.log) == (0, "")


@pytest.fixture
def cluster(process: Broker) -> Iterator[Cluster]:
    with process.create_cluster(config={"group.initial.rebalance.delay.ms": 0}) as cluster:
        cluster.clock.freeze()
        yield cluster


@pytest.mark.parametrize("step_s", [45, 5, 1])
def test_rebalance_that_an_expulsion_begins_ends_in_its_own_time_however_the_clock_is_moved(cluster, step_s):
    with closing(Wire(cluster.bootstrap_servers)) as short, closing(Wire(cluster.bootstrap_servers)) as long:
        first, second = join("g"), join("g")
        first.session_timeout_ms, second.session_timeout_ms = 10_000, 300_000
        first.rebalance_timeout_ms = second.rebalance_timeout_ms = 30_000
        first.member_id = short.call(first, 3).member_id
        long.send(second, 3)
        until(lambda: len(short.call(first, 3).members) == 2, "both have joined")
        joined = long.receive(second, 3)
        for wire, member_id in ((short, first.member_id), (long, joined.member_id)):
            sync = SyncGroupRequest(group_id="g", generation_id=joined.generation_id, member_id=member_id)
            assert wire.call(sync, 2).error_code == 0
        cluster.wait_for_group("g", "stable", members=2, timeout=0)
        # Both fall silent: one is expelled after 10 s. The other has 30 s then to join again.
        for at_s in range(step_s, 46, step_s):
            cluster.clock.advance(seconds=step_s)
            if 10 <= at_s < 40:
                cluster.wait_for_group("g", "preparing-rebalance", members=1, timeout=0)
        cluster.wait_for_group("g", "empty", members=0, timeout=0)


def test_idempotent_producer_is_forgotten_after_its_day(cluster):
    cluster.create_topic("t")
    producer = Producer({**cluster.client_config("confluent"), "enable.idempotence": True})
    producer.produce("t", b"x")
    assert producer.flush(60) == 0
    topic = DescribeProducersRequestTopicRequest(name="t", partition_indexes=[0])

    def producers() -> int:
        with closing(Wire(cluster.bootstrap_servers)) as wire:  # an older one is idle, and closed
            answer = wire.call(DescribeProducersRequest(topics=[topic]), 0)
        return len(answer.topics[0].partitions[0].active_producers)

    cluster.clock.advance(hours=23)
    assert producers() == 1
    cluster.clock.advance(hours=2)
    assert producers() == 0


def fetch_for(wait_ms: int) -> FetchRequest:
    """Wait for records of topic t."""
    wanted = FetchTopic(topic="t", partitions=[FetchPartition(partition=0, partition_max_bytes=1000)])
    return FetchRequest(max_wait_ms=wait_ms, min_bytes=1, max_bytes=1000, topics=[wanted])


def test_connections_that_are_idle_by_the_moved_clock_are_closed_and_others_are_not(cluster):
    """60 of them: more than are closed at once."""
    cluster.create_topic("t")
    with ExitStack() as stack:
        idle = [stack.enter_context(closing(Wire(cluster.bootstrap_servers))) for _ in range(60)]
        answered, waiting, spoken = (stack.enter_context(closing(Wire(cluster.bootstrap_servers))) for _ in range(3))
        for wire in idle:
            topics(wire)
        cluster.clock.advance(minutes=10)  # no longer than the limit
        answered.send(fetch_for(60_000), 11)
        waiting.send(fetch_for(3_600_000), 11)
        for wire in (*idle[1:], spoken):  # these answers come after the broker has read the two above
            topics(wire)
        cluster.clock.advance(seconds=1)
        assert idle[0].is_cut(), "idle for 601 s"
        cluster.clock.advance(minutes=9)
        assert answered.receive(fetch_for(60_000), 11).error_code == 0
        topics(spoken)
        cluster.clock.advance(seconds=60)
        assert all(wire.is_cut() for wire in idle[1:])
        assert waiting.is_cut(), "as in Kafka, a request that waits keeps no connection open"
        assert (topics(answered), topics(spoken)) != ({}, {})


def test_clients_go_on_after_their_connections_were_closed_for_idleness(cluster):
    producer = Producer(cluster.client_config("confluent"))
    for number in range(3):
        producer.produce("t", str(number))
        assert producer.flush(60) == 0
        cluster.clock.advance(days=1)
    assert [record.value for record in cluster.consume("t", 3)] == [b"0", b"1", b"2"]


def test_no_connection_is_idle_where_the_limit_is_off(process):
    with (
        process.create_cluster(config={"connections.max.idle.ms": -1}) as cluster,
        closing(Wire(cluster.bootstrap_servers)) as wire,
    ):
        topics(wire)
        cluster.clock.advance(days=8)
        topics(wire)


@pytest.mark.parametrize("flush", ["memory", "os"])
def test_tombstone_is_kept_for_delete_retention_ms_and_cleaned_after_it(process, flush):
    config = {"cleanup.policy": "compact", "delete.retention.ms": 3_600_000, "min.cleanable.dirty.ratio": "0.0"}
    with process.create_cluster(flush=flush) as cluster:
        cluster.clock.freeze()
        cluster.create_topic("t", config={**config, "segment.ms": 60_000})
        for value in ("old", None):
            cluster.produce("t", value, key="k")
        cluster.clock.advance(minutes=2)
        cluster.produce("t", "other", key="rolls the segment")
        cluster.clock.advance(minutes=2)  # the first cleaning sets the horizon
        assert [(r.key, r.value) for r in cluster.consume("t")][:1] == [(b"k", None)]
        cluster.clock.advance(minutes=50)
        cluster.produce("t", "another", key="rolls again")
        assert (b"k", None) in [(r.key, r.value) for r in cluster.consume("t")]
        cluster.clock.advance(minutes=30)
        cluster.produce("t", "a third", key="rolls once more")
        cluster.clock.advance(minutes=2)
        assert b"k" not in [r.key for r in cluster.consume("t")]


class ShareMember:
    """A member of a share group that reads partition 0 of topic t."""

    def __init__(self, wire: Wire, member_id: str) -> None:
        self.wire = wire
        self._topic_id = topics(wire)["t"]
        self._member = {"group_id": "g", "member_id": member_id}
        self._epoch = self._fetches = 0
        until(self._is_assigned, "the partition is assigned")

    def _is_assigned(self) -> bool:
        names = ["t"] if self._epoch == 0 else None
        beat = ShareGroupHeartbeatRequest(**self._member, member_epoch=self._epoch, subscribed_topic_names=names)
        answer = self.wire.call(beat, 1)
        self._epoch = answer.member_epoch
        return answer.error_code == 0 and answer.assignment is not None

    def ask(self, max_wait_ms: int = 0) -> ShareFetchRequest:
        """Send a fetch."""
        partition = ShareFetchRequestFetchPartition(partition_index=0, acknowledgement_batches=[])
        wanted = [ShareFetchRequestFetchTopic(topic_id=self._topic_id, partitions=[partition])]
        request = ShareFetchRequest(
            **self._member,
            share_session_epoch=self._fetches,
            max_wait_ms=max_wait_ms,
            min_bytes=1,
            max_bytes=1 << 20,
            max_records=500,
            batch_size=500,
            topics=[] if self._fetches else wanted,
        )
        self._fetches += 1
        self.wire.send(request, 2)
        return request

    def read(self, request: ShareFetchRequest) -> list[tuple[int, int, int]]:
        """What a fetch has acquired: first and last offset, and which delivery it is."""
        answer = self.wire.receive(request, 2)
        assert answer.error_code == 0, answer
        rows = [row for each in answer.responses for row in each.partitions]
        return [(a.first_offset, a.last_offset, a.delivery_count) for row in rows for a in row.acquired_records]

    def acquired(self) -> list[tuple[int, int, int]]:
        """What is there to be acquired now."""
        return self.read(self.ask())


def test_lock_on_a_shared_record_ends_after_its_30_seconds(process):
    with process.create_cluster() as cluster:
        cluster.clock.freeze()
        cluster.create_topic("t")
        with closing(Wire(cluster.bootstrap_servers)) as wire:
            member = ShareMember(wire, "AAAAAAAAAAAAAAAAAAAAAQ")
            assert member.acquired() == []  # the group begins at the end
            cluster.produce("t", "x")
            found: list[tuple[int, int, int]] = []
            until(lambda: found.extend(member.acquired()) or bool(found), "the record is acquired")
            assert found == [(0, 0, 1)]
            cluster.clock.advance(seconds=29)
            assert member.acquired() == []
            cluster.clock.advance(seconds=2)
            assert member.acquired() == [(0, 0, 2)]


@pytest.mark.parametrize("step_s", [44, 11, 1])
def test_locks_that_follow_one_another_end_in_their_own_time_however_far_the_clock_is_moved(process, wires, step_s):
    """A record is acquired at 0 s, again when that lock ends at 15, and again at 30: at 44 s that one has 1 s left."""
    settings = {"group.share.record.lock.duration.ms": 15_000, "group.share.session.timeout.ms": 60_000}
    with process.create_cluster(config=settings) as cluster:
        cluster.clock.freeze()
        cluster.create_topic("t")
        first, second, third = (
            ShareMember(wires(cluster.bootstrap_servers), f"AAAAAAAAAAAAAAAAAAAAA{letter}") for letter in "QgA"
        )
        assert first.acquired() == []
        cluster.produce("t", "x")
        found: list[tuple[int, int, int]] = []
        until(lambda: found.extend(first.acquired()) or bool(found), "the record is acquired")
        waiting = {member: member.ask(max_wait_ms=600_000) for member in (second, third)}
        topics(wires(cluster.bootstrap_servers))  # the broker reads its connections in turn: by now both wait
        for _ in range(0, 44, step_s):
            cluster.clock.advance(seconds=step_s)
        got = sorted(member.read(request) for member, request in waiting.items())
        assert (found, got) == ([(0, 0, 1)], [[(0, 0, 2)], [(0, 0, 3)]])
        assert first.acquired() == []
        cluster.clock.advance(seconds=2)
        assert first.acquired() == [(0, 0, 4)]


async def test_request_read_in_the_turn_in_which_the_clock_is_moved_waits_from_the_new_time(tmp_path):
    """A Fetch was answered at once, since its wait began before the move."""
    async with process_in_this_loop(tmp_path) as made:
        cluster = made.clusters["default"]
        turn, loop = cluster.broker.turn, asyncio.get_running_loop()
        while cluster.broker.is_loading:
            await asyncio.sleep(0.001)
        found = list[tuple[int, int]]()
        loop.call_soon(turn.begin)
        moving = asyncio.ensure_future(move_clock(cluster, Call({}, {}, {"set": LATER_MS})))
        loop.call_soon(lambda: found.append((turn.begin(), turn.now_ms)))
        assert await moving == {"now_ms": LATER_MS, "stands": True, "settled": True}
        assert found == [(cluster.clock.steady_ms(), LATER_MS)]


@pytest.mark.parametrize("body", [{"set": LATER_MS}, {"freeze": True}], ids=["at a deadline", "at the end"])
async def test_move_that_a_reset_overtakes_is_refused(tmp_path, body):
    """It was answered with the time of the new life, which had not moved, as settled."""
    async with process_in_this_loop(tmp_path) as made:
        cluster = made.clusters["default"]
        cluster.broker.turn.timers.at(cluster.clock.steady_ms() + 1000, lambda *_: None, is_deadline=True)
        cluster.broker.turn.jobs.add(itertools.repeat(None))
        moving = asyncio.ensure_future(move_clock(cluster, Call({}, {}, body)))
        await asyncio.sleep(0.01)
        await cluster.reset()
        with pytest.raises(RefusedError, match="the cluster was reset"):
            await moving
        assert cluster.clock.now_ms() < LATER_MS
        assert cluster.clock.stands_at_ms is None


async def test_move_that_a_removal_overtakes_is_refused(tmp_path):
    """It went on to its limit of 25 seconds."""
    async with process_in_this_loop(tmp_path) as made:
        plan = ClusterPlan("other", {}, data_dir=str(tmp_path / "other"), listen="127.0.0.1:0", flush="os")
        cluster = await made.start(plan)
        cluster.broker.turn.jobs.add(itertools.repeat(None))
        moving = asyncio.ensure_future(move_clock(cluster, Call({}, {}, {"freeze": True})))
        await asyncio.sleep(0.01)
        await made.remove("other")
        with pytest.raises(RefusedError, match="the cluster was removed"):
            await moving
