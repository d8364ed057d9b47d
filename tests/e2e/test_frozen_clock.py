"""While a cluster's clock stands, a Fetch waits in real time, or as long as it stands; runs repeat in both."""

from __future__ import annotations

import json
import select
from collections.abc import Iterator
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from cluster_kit import Wire, topics
from confluent_kafka import Consumer, TopicPartition
from test_control import momus
from test_time import ShareMember

from momus import Broker, Cluster
from protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic

AT = datetime(2030, 1, 1, tzinfo=UTC)
WAIT_MS = 100
REAL_S = 0.3  # in which what waits in real time would be answered


@pytest.fixture(scope="module")
def process() -> Iterator[Broker]:
    with Broker() as broker:
        yield broker


def fetch(index: int, wait_ms: int, offset: int = 0) -> FetchRequest:
    partition = FetchPartition(partition=index, fetch_offset=offset, partition_max_bytes=1 << 20)
    wanted = [FetchTopic(topic="t", partitions=[partition])]
    return FetchRequest(max_wait_ms=wait_ms, min_bytes=1, max_bytes=1 << 20, session_epoch=-1, topics=wanted)


def records_of(answer: Any) -> bytes:
    (row,) = answer.responses[0].partitions
    assert row.error_code == 0
    return bytes(row.records or b"")


@pytest.mark.parametrize("clock", ["frozen", "at a moment"])
def test_librdkafka_reads_on_beside_an_empty_partition_while_the_clock_stands(process: Broker, clock: str) -> None:
    """It has one Fetch at a broker: that of the empty partition, without an answer, kept all others back."""
    with process.create_cluster(at=None if clock == "frozen" else AT) as cluster:
        cluster.create_topic("t", 2)
        if clock == "frozen":
            cluster.clock.freeze()
        now = cluster.clock.now()
        settings = {"group.id": "g", "enable.auto.commit": False, "fetch.wait.max.ms": 20}
        consumer = Consumer({**cluster.client_config("confluent"), **settings})
        consumer.assign([TopicPartition("t", 1, 0), TopicPartition("t", 0, 0)])
        assert consumer.poll(0) is None
        for number in range(3):
            cluster.produce("t", str(number), partition=0)
            message = consumer.poll(60)
            assert message is not None
            assert (message.partition(), message.value()) == (0, b"%d" % number)
        consumer.close()
        assert cluster.clock.now() == now


def test_waits_of_fetch_and_share_fetch_pass_in_real_time_while_the_clock_stands(process: Broker) -> None:
    with process.create_cluster(at=AT) as cluster:
        cluster.create_topic("t")
        with closing(Wire(cluster.bootstrap_servers)) as wire:
            assert records_of(wire.call(fetch(0, WAIT_MS), 12)) == b""
            member = ShareMember(wire, "AAAAAAAAAAAAAAAAAAAAAQ")
            assert member.read(member.ask(WAIT_MS)) == []
            waiting = fetch(0, 600_000)
            wire.send(waiting, 12)
            topics_of(cluster)  # connections are read in turn: by now it waits
            cluster.clock.advance(minutes=10)  # a move passes waits too
            assert records_of(wire.receive(waiting, 12)) == b""
            cluster.clock.resume()
            assert records_of(wire.call(fetch(0, WAIT_MS), 12)) == b""


def test_waits_last_as_long_as_the_clock_stands_where_that_is_asked_for(process: Broker) -> None:
    with process.create_cluster(at=AT, fetch_waits="frozen") as cluster:
        cluster.create_topic("t")
        with closing(Wire(cluster.bootstrap_servers)) as wire, closing(Wire(cluster.bootstrap_servers)) as shared:
            member = ShareMember(shared, "AAAAAAAAAAAAAAAAAAAAAQ")
            assert member.read(member.ask()) == []
            plain, share = fetch(0, 1), member.ask(1)
            wire.send(plain, 12)
            sockets = [wire.socket, shared.socket]
            assert select.select(sockets, [], [], REAL_S)[0] == []
            cluster.clock.advance(milliseconds=1)
            assert records_of(wire.receive(plain, 12)) == b""
            assert member.read(share) == []


def topics_of(cluster: Cluster) -> dict[str, bytes]:
    with closing(Wire(cluster.bootstrap_servers)) as wire:
        return topics(wire)


def run(cluster: Cluster, *, moves: bool) -> list[bytes]:
    """A run that meets an empty answer between two with records: the bytes of its answers."""
    found = []
    cluster.create_topic("t")
    with closing(Wire(cluster.bootstrap_servers)) as wire:
        for number in range(2):
            waiting = fetch(0, WAIT_MS, number)
            wire.send(waiting, 12)
            if moves:
                topics_of(cluster)
                cluster.clock.advance(milliseconds=WAIT_MS)
            found.append(wire.receive_bytes())
            waiting = fetch(0, 600_000, number)
            wire.send(waiting, 12)
            topics_of(cluster)
            cluster.produce("t", f"record {number}")
            found.append(wire.receive_bytes())
    return found


@pytest.mark.parametrize("fetch_waits", ["real", "frozen"])
def test_seeded_runs_repeat_and_are_replayed(process: Broker, tmp_path: Path, fetch_waits: str) -> None:
    runs = []
    for number in range(2):
        with process.create_cluster(at=AT, seed=7, fetch_waits=fetch_waits) as cluster:
            cluster.record()
            runs.append(run(cluster, moves=fetch_waits == "frozen"))
            (tmp_path / f"{number}.momus").write_bytes(cluster.recording())
    assert runs[0] == runs[1]
    assert [b"record" in answer for answer in runs[0]] == [False, True, False, True]
    done = momus("replay", str(tmp_path / "1.momus"), "--json")
    assert done.returncode == 0, done.stdout + done.stderr
    told = json.loads(done.stdout)
    assert (told["difference"], told["compared"] >= 4, told["notes"]) == (None, True, [])
