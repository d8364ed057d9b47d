"""A paused broker before real clients: silence, another leader after its session, and what follows."""

from __future__ import annotations

import select
from collections.abc import Iterator
from contextlib import closing

import pytest
from cluster_kit import Wire
from confluent_kafka import Producer
from core_requests import produce_request
from test_control import momus

from momus import Broker, Cluster
from momus.control import ControlError
from protocol.errors import ErrorCode
from protocol.messages.cluster import MetadataRequest

SILENCE_S = 0.2


@pytest.fixture(scope="module")
def process() -> Iterator[Broker]:
    with Broker(brokers=2) as broker:
        yield broker


@pytest.fixture
def cluster(process: Broker) -> Iterator[Cluster]:
    config = {"default.replication.factor": 2, "connections.max.idle.ms": 60_000}
    with process.create_cluster(brokers=2, config=config) as cluster:
        cluster.clock.freeze()
        cluster.create_topic("t", 2)
        yield cluster
    assert cluster.log == ""


def leaders(cluster: Cluster, address: str | None = None) -> dict[int, int]:
    with closing(Wire(address or cluster.bootstrap_servers.split(",")[0])) as wire:
        topic = next(each for each in wire.call(MetadataRequest(topics=None), 12).topics if each.name == "t")
        return {each.partition_index: each.leader_id for each in topic.partitions}


def state(cluster: Cluster | Broker) -> list[tuple[object, object]]:
    return [(each["up"], each["paused"]) for each in cluster.control.brokers()]


def test_connections_stay_and_are_silent_however_far_the_clock_is_moved(cluster: Cluster) -> None:
    second = cluster.bootstrap_servers.split(",")[1]
    request = MetadataRequest(topics=None)
    with closing(Wire(second)) as known:
        known.call(request, 12)
        cluster.pause_broker(2)
        with closing(Wire(second)) as new:
            for wire in (known, new):
                wire.send(request, 12)
            assert select.select([known.socket, new.socket], [], [], SILENCE_S)[0] == []
            cluster.clock.advance(seconds=8)
            assert (state(cluster)[1], set(leaders(cluster).values())) == ((True, True), {1, 2})
            cluster.clock.advance(hours=1)  # longer than connections.max.idle.ms
            assert (state(cluster)[1], set(leaders(cluster).values())) == ((False, True), {1})
            assert select.select([known.socket, new.socket], [], [], SILENCE_S)[0] == []
            cluster.resume_broker(2)
            assert [len(wire.receive(request, 12).brokers) for wire in (known, new)] == [1, 1]
    assert (state(cluster), set(leaders(cluster, second).values())) == ([(True, False)] * 2, {1, 2})


def test_what_was_sent_to_a_leader_whose_session_has_ended_is_refused_by_it(cluster: Cluster) -> None:
    led = next(index for index, leader in leaders(cluster).items() if leader == 2)
    with closing(Wire(cluster.bootstrap_servers.split(",")[1])) as wire:
        wire.call(MetadataRequest(topics=None), 12)
        cluster.pause_broker(2)
        requests = [produce_request("t", led, b"x" * 100_000) for _ in range(3)]
        for each in requests:
            wire.send(each, 9)
        cluster.clock.advance(seconds=10)
        assert cluster.produce("t", "to the next", partition=led) == [(led, 0)]
        cluster.resume_broker(2)
        answers = [wire.receive(each, 9).responses[0].partition_responses[0] for each in requests]
        assert {each.error_code for each in answers} == {ErrorCode.NOT_LEADER_OR_FOLLOWER}
        assert [record.value for record in cluster.consume("t")] == [b"to the next"]
        after = produce_request("t", led, b"after")
        assert wire.call(after, 9).responses[0].partition_responses[0].base_offset == 1


@pytest.mark.heavy
def test_producer_delivers_each_record_once_through_the_pause_of_a_leader(cluster: Cluster) -> None:
    words = {"enable.idempotence": True, "socket.timeout.ms": 1000, "request.timeout.ms": 1000, "log_level": 0}
    producer = Producer({**cluster.client_config("confluent"), **words})
    errors: list[object] = []

    def send(first: int, partition: int) -> None:
        for number in range(first, first + 10):
            producer.produce("t", b"%d" % number, partition=partition, on_delivery=lambda e, _: errors.append(e))

    led = next(index for index, leader in leaders(cluster).items() if leader == 2)
    send(0, led)
    assert producer.flush(60) == 0
    cluster.pause_broker(2)
    send(10, led)
    assert producer.flush(SILENCE_S) > 0
    cluster.clock.advance(seconds=10)
    assert producer.flush(60) == 0
    cluster.resume_broker(2)
    send(20, led)
    assert producer.flush(60) == 0
    assert errors == [None] * 30
    assert [record.value for record in cluster.consume("t")] == [b"%d" % number for number in range(30)]


async def test_commands_twins_and_refusals(process: Broker) -> None:
    cluster, control = process, ("--control", process.control.address)
    assert momus("broker", "pause", "2", *control).stdout == "2 is paused\n"
    assert "2  paused  " in momus("broker", "list", *control).stdout
    for call in (cluster.start_broker, cluster.lag_follower, cluster.release_follower):
        with pytest.raises(ControlError, match="broker 2 is paused: resume it"):
            call(2)
    await cluster.aio.clock.advance(seconds=10)
    assert "2  paused, its session has ended  " in momus("broker", "list", *control).stdout
    with pytest.raises(ControlError, match="broker 1 is the last running one"):
        cluster.stop_broker(1)
    assert momus("broker", "resume", "2", *control).stdout == "2 goes on\n"
    await cluster.aio.resume_broker(2)  # it is not paused: nothing happens
    await cluster.aio.pause_broker(2)
    await cluster.aio.pause_broker(2)
    cluster.stop_broker(2)
    with pytest.raises(ControlError, match="broker 2 is stopped: it cannot be paused"):
        await cluster.aio.pause_broker(2)
    cluster.start_broker(2)
    assert state(cluster) == [(True, False)] * 2
    cluster.pause_broker(1)
    cluster.reset()
    assert state(cluster) == [(True, False)] * 2
