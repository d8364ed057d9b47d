"""How long requests take, in parts: waiting, work, durability; none is lost, and none stays behind."""

from __future__ import annotations

import random

import pytest
from core_broker import Client, World, frame, make_topic
from core_requests import commit_request, fetch_request, produce_request

from broker.turn.metrics import BOUNDS_S, DURABILITY, PARKED, QUEUE, TOTAL, WORK, Histogram
from broker.wire.connection import BACKLOG_SLOTS
from protocol.api import ApiKey
from protocol.messages.classic_group import JoinGroupRequest, JoinGroupRequestProtocol
from protocol.messages.cluster import ApiVersionsRequest, MetadataRequest


class Measured:
    """A broker with a meter, whose seconds pass when the test says so."""

    def __init__(self, flush: str = "os", **settings: str) -> None:
        self.world = World(flush, **settings)
        self.now_s = 0.0
        self.client = Client(self.world)
        make_topic(self.client)
        self.world.clock.monotonic_us = lambda: int(self.now_s * 1_000_000)
        self.world.broker.measure()

    def seconds(self, api: ApiKey, part: int) -> float:
        return self.histogram(api, part).seconds

    def histogram(self, api: ApiKey, part: int) -> Histogram:
        return self.world.broker.turn.metrics.latencies.get((api, part), Histogram())


def test_bucket_is_the_first_whose_bound_is_not_less():
    histogram = Histogram()
    for seconds in (0.0, BOUNDS_S[0], BOUNDS_S[0] + 1e-9, BOUNDS_S[-1], 1e9):
        histogram.add(seconds)
    assert (histogram.buckets[:2], histogram.buckets[-2:], histogram.count) == ([2, 1], [1, 1], 5)


def test_sync_of_a_commit_is_its_durability():
    measured = Measured("fsync")
    measured.world.auto_sync = False
    measured.client.send(commit_request("g", {0: 1}), 8)
    measured.world.run()
    measured.now_s += 3
    measured.world.sync()
    measured.world.run()
    while measured.world.syncs:
        measured.world.sync()
        measured.world.run()
    assert measured.client.replies()
    assert measured.seconds(ApiKey.OFFSET_COMMIT, DURABILITY) == 3
    assert measured.seconds(ApiKey.OFFSET_COMMIT, TOTAL) == 3
    assert measured.histogram(ApiKey.OFFSET_COMMIT, PARKED).count == 0


@pytest.mark.parametrize("is_warm", [False, True])
def test_fetch_that_waits_for_records_is_parked(is_warm):
    measured = Measured()
    for _ in range(2 * is_warm):  # the shortcut serves what it has seen before
        measured.client.send(fetch_request("t", 0, 0, max_wait_ms=100), 11)
        measured.world.advance(100)
    before = measured.seconds(ApiKey.FETCH, PARKED)
    measured.client.send(fetch_request("t", 0, 0, max_wait_ms=1000), 11)
    measured.world.run()
    measured.now_s += 0.5
    Client(measured.world).call(produce_request("t", 0, b"x"), 9)
    assert measured.seconds(ApiKey.FETCH, PARKED) - before == 0.5
    assert measured.seconds(ApiKey.FETCH, DURABILITY) == 0


def test_frame_behind_too_many_unanswered_ones_is_queued():
    measured = Measured()
    world, client = measured.world, measured.client
    many = b"".join(frame(MetadataRequest(topics=[]), 5) for _ in range(BACKLOG_SLOTS))
    last = frame(ApiVersionsRequest(), 0)
    client.send_bytes(frame(fetch_request("t", 0, 0, max_wait_ms=500), 11) + many + last + last[:-1])
    world.run()
    assert (ApiKey.API_VERSIONS, WORK) not in world.broker.turn.metrics.latencies
    measured.now_s += 2
    world.advance(500)
    assert measured.seconds(ApiKey.API_VERSIONS, QUEUE) == measured.seconds(ApiKey.API_VERSIONS, TOTAL) == 2
    assert measured.histogram(ApiKey.API_VERSIONS, TOTAL).count == 1
    client.send_bytes(last[-1:])
    world.run()
    assert measured.histogram(ApiKey.API_VERSIONS, TOTAL).count == 2
    assert measured.seconds(ApiKey.API_VERSIONS, QUEUE) == 2


def test_reply_that_is_sent_ends_no_other_request():
    measured = Measured()
    measured.client.send_bytes(
        frame(MetadataRequest(topics=[]), 5) + frame(fetch_request("t", 0, 0, max_wait_ms=500), 11)
    )
    measured.world.run()
    assert measured.histogram(ApiKey.METADATA, TOTAL).count == 1
    assert measured.histogram(ApiKey.FETCH, TOTAL).count == 0


def test_member_that_waits_for_others_is_parked():
    measured = Measured(group_initial_rebalance_delay_ms="3000")
    protocols = [JoinGroupRequestProtocol(name="range", metadata=b"")]
    join = JoinGroupRequest(group_id="g", session_timeout_ms=6000, protocol_type="consumer", protocols=protocols)
    measured.client.send(join, 2)
    measured.world.run()
    measured.now_s += 3
    measured.world.advance(3000)
    assert measured.client.replies()
    assert measured.seconds(ApiKey.JOIN_GROUP, PARKED) == 3


def test_work_is_from_the_beginning_of_the_turn():
    measured = Measured()
    turn = measured.world.broker.turn
    turn.begin()
    measured.now_s += 0.25
    measured.client.call(MetadataRequest(topics=None), 5)
    assert measured.seconds(ApiKey.METADATA, WORK) == measured.seconds(ApiKey.METADATA, TOTAL) == 0.25


@pytest.mark.parametrize("flush", ["os", "fsync"])
def test_each_answered_request_is_counted_once_in_each_part(flush):
    measured, rng = Measured(flush), random.Random(7)
    world = measured.world
    clients = [Client(world) for _ in range(4)]
    for _ in range(300):
        client = rng.choice(clients)
        match rng.randrange(6):
            case 0:
                client.send(produce_request("t", 0, b"x" * rng.randrange(3000), acks=rng.choice((0, 1, -1))), 9)
            case 1:
                client.send(fetch_request("t", 0, rng.randrange(5), max_wait_ms=rng.choice((0, 50))), 11)
            case 2:
                client.send(commit_request("g", {0: rng.randrange(9)}), 8)
            case 3:
                client.transport.stalled = not client.transport.stalled
                client.transport.read()
            case 4:
                world.run()
            case 5:
                client.leave()
                clients[clients.index(client)] = Client(world)
        measured.now_s += rng.random()
    for client in clients:
        client.transport.stalled = False
        client.transport.read()
    world.advance(1000)
    latencies = world.broker.turn.metrics.latencies
    (meter,) = world.broker.clients.watchers
    for api in (ApiKey.PRODUCE, ApiKey.FETCH, ApiKey.OFFSET_COMMIT):
        parts = [latencies[api, part].count if (api, part) in latencies else 0 for part in range(5)]
        assert parts[QUEUE] == parts[WORK]
        assert parts[DURABILITY] + parts[PARKED] == parts[TOTAL] > 10
        assert parts[TOTAL] <= parts[WORK]
        sums = [latencies[api, part].seconds if (api, part) in latencies else 0 for part in range(5)]
        assert sums[TOTAL] <= sum(sums[:TOTAL]) + 1e-6
    assert not any(meter._open.values())
    assert not meter._waiting
