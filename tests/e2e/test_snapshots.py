"""Snapshots, forks and restores over the control plane and from Python: what is kept, what is cut, who sees what."""

from __future__ import annotations

import asyncio
from contextlib import ExitStack
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from clientwork import until
from cluster_kit import CLUSTERS, Wire, create, join, topics
from confluent_kafka.admin import AdminClient

from momus import Broker
from momus.cluster import Cluster
from momus.control import ControlError
from protocol.messages.classic_group import SyncGroupRequest, SyncGroupRequestAssignment
from protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic

AT = datetime(2030, 1, 1, tzinfo=UTC)
FLUSHES = ("memory", "os", "fsync")


@pytest.fixture(scope="module")
def process(tmp_path_factory):
    with Broker(data_dir=tmp_path_factory.mktemp("data")) as broker:
        yield broker


@pytest.fixture
def cluster(process):
    with process.create_cluster() as made:
        yield made


def values(cluster: Any, topic: str = "orders") -> list[bytes | None]:
    return [record.value for record in cluster.consume(topic)]


def enter(wire: Wire, group: str) -> str:
    """The only member of a group that is stable; its id."""
    request = join(group)
    request.member_id = wire.call(request, 5).member_id
    answer = wire.call(request, 5)
    assigned = SyncGroupRequestAssignment(member_id=answer.member_id, assignment=b"a")
    sync = SyncGroupRequest(
        group_id=group, generation_id=answer.generation_id, member_id=answer.member_id, assignments=[assigned]
    )
    assert wire.call(sync, 3).error_code == 0
    member_id: str = answer.member_id
    return member_id


@pytest.mark.parametrize("flush", FLUSHES)
def test_fork_and_origin_go_on_apart_and_a_restore_goes_back(process, flush):
    with process.create_cluster(flush=flush) as cluster:
        cluster.create_topic("orders", 2)
        cluster.produce("orders", "a", "b", partition=0)
        snapshot = cluster.snapshot("two")
        cluster.produce("orders", "c", partition=0)
        with cluster.fork(snapshot) as fork, cluster.fork() as late:
            assert fork.bootstrap_servers != cluster.bootstrap_servers
            assert len({fork.cluster_id, late.cluster_id, cluster.cluster_id}) == 3
            fork.produce("orders", "x", partition=0)
            late.create_topic("others")
            cluster.produce("orders", "d", partition=0)
            assert values(fork) == [b"a", b"b", b"x"]
            assert values(late) == [b"a", b"b", b"c"]
            assert values(cluster) == [b"a", b"b", b"c", b"d"]
            before = cluster.bootstrap_servers
            cluster.restore(snapshot)
            assert (values(cluster), cluster.bootstrap_servers) == ([b"a", b"b"], before)
            cluster.produce("orders", "again", partition=0)
            assert values(fork) == [b"a", b"b", b"x"]
        cluster.restore(snapshot)
        assert values(cluster) == [b"a", b"b"]
        cluster.create_topic("others")  # there is none
    assert process.log == ""


def test_restore_cuts_whoever_waits_and_the_next_connection_is_served(cluster, wires):
    setup, fetching, joining = (wires(cluster.bootstrap_servers) for _ in range(3))
    create(setup, "t")
    snapshot = cluster.snapshot()
    topic_id = topics(setup)["t"]
    wanted = FetchTopic(topic="t", topic_id=topic_id, partitions=[FetchPartition(partition=0, fetch_offset=0)])
    fetching.send(FetchRequest(max_wait_ms=600_000, min_bytes=1, topics=[wanted]), 13)
    member = enter(joining, "g")
    joining.send(join("g"), 3)  # a second member, for whom the first one is waited for
    until(lambda: cluster.control.ask("GET", f"{CLUSTERS}/{cluster.name}")["connections"] == 3, "all are connected")
    cluster.restore(snapshot)
    assert all(wire.is_cut() for wire in (setup, fetching, joining))
    assert member not in cluster.wait_for_group("g", "dead")
    after = wires(cluster.bootstrap_servers)
    assert topics(after)["t"] == topic_id


def test_wait_of_the_control_plane_is_answered_when_its_cluster_is_restored(cluster):
    cluster.create_topic("t")
    snapshot = cluster.snapshot()

    async def wait() -> None:
        waiting = asyncio.create_task(cluster.aio.consume("t", 1, timeout=20))
        place = f"{CLUSTERS}/{cluster.name}"
        while not (await asyncio.to_thread(cluster.control.ask, "GET", place))["waits"]:
            await asyncio.sleep(0.01)
        await cluster.aio.restore(snapshot)
        with pytest.raises(ControlError, match="was reset"):
            await waiting

    asyncio.run(wait())


@pytest.mark.parametrize("flush", FLUSHES)
def test_members_and_open_transactions_are_in_a_fork_as_after_a_restart(process, flush, wires):
    from kafka import KafkaProducer

    with process.create_cluster(flush=flush) as cluster, ExitStack() as ends:
        cluster.create_topic("orders")
        member = enter(wires(cluster.bootstrap_servers), "g")
        producer = KafkaProducer(**cluster.client_config("kafka-python"), transactional_id="tx")
        ends.callback(producer.close)
        producer.init_transactions()
        producer.begin_transaction()
        producer.send("orders", b"open").get(30)
        with cluster.fork() as fork:
            assert fork.wait_for_group("g", "stable") == [member]
            assert values(fork) == [b"open"]
            assert fork.consume("orders", isolation="committed") == []
            fork.clock.advance(minutes=16)  # longer than a session and a transaction
            assert fork.wait_for_group("g", "dead") == []  # it has no offsets
            fork.produce("orders", "behind", partition=0)
            assert [record.value for record in fork.consume("orders", 1, isolation="committed")] == [b"behind"]
            assert cluster.wait_for_group("g", "stable") == [member]
            producer.commit_transaction()
            assert [record.value for record in cluster.consume("orders", 1, isolation="committed")] == [b"open"]


def test_clock_of_a_copy_begins_where_it_was_and_moves_alone(process):
    with process.create_cluster(at=AT) as cluster:
        snapshot = cluster.snapshot()
        cluster.clock.advance(days=8)
        with cluster.fork(snapshot) as fork, cluster.fork() as late:
            assert (fork.clock.now(), fork.clock.stands()) == (AT, True)
            assert late.clock.now() == AT + timedelta(days=8)
            fork.clock.advance(hours=1)
            assert cluster.clock.now() == AT + timedelta(days=8)
        cluster.restore(snapshot)
        assert cluster.clock.now() == AT
        cluster.reset()
        cluster.clock.resume()
        cluster.clock.advance(days=400)
        with cluster.fork() as fork:
            ahead = fork.clock.now() - cluster.clock.now()
            assert not fork.clock.stands()
            assert abs(ahead) < timedelta(hours=1)


def test_faults_and_the_journal_begin_anew_in_a_copy(process, wires):
    with process.create_cluster(journal_mb=1) as cluster:
        cluster.create_topic("t")
        topics(wires(cluster.bootstrap_servers))
        cluster.faults.inject_error("Metadata", "UNKNOWN_SERVER_ERROR")
        snapshot = cluster.snapshot()
        place = f"{CLUSTERS}/{cluster.name}"
        with cluster.fork(snapshot) as fork:
            assert fork.journal.entries() == []
            assert fork.control.ask("GET", f"{CLUSTERS}/{fork.name}/faults") == []
            assert "t" in topics(wires(fork.bootstrap_servers))
            assert len(fork.journal.verify(api="Metadata")) == 1
        assert len(cluster.control.ask("GET", f"{place}/faults")) == 1
        assert len(cluster.journal.verify(api="Metadata")) == 1
        cluster.restore(snapshot)
        assert cluster.control.ask("GET", f"{place}/faults") == []
        assert cluster.journal.entries() == []


def test_copy_has_the_settings_brokers_and_seed_of_its_origin(process, wires):
    with process.create_cluster(brokers=2, seed=7, config={"num.partitions": 5}) as cluster:
        snapshot = cluster.snapshot()
        ids = []
        for _ in range(2):
            with cluster.fork(snapshot) as fork:
                described = cluster.control.ask("GET", f"{CLUSTERS}/{fork.name}")
                assert (described["brokers"], described["seed"]) == (2, 7)
                wire = wires(fork.bootstrap_servers.split(",")[0])
                create(wire, "made-in-the-fork")
                ids.append(topics(wire)["made-in-the-fork"])
        assert ids[0] == ids[1]


def test_snapshots_are_listed_and_removed_and_what_was_made_from_them_stays(cluster):
    cluster.create_topic("orders")
    cluster.produce("orders", "a", partition=0)
    assert [cluster.snapshot(), cluster.snapshot("mine"), cluster.snapshot()] == ["snapshot-1", "mine", "snapshot-2"]
    assert sorted(cluster.snapshots()) == ["mine", "snapshot-1", "snapshot-2"]
    with cluster.fork("mine") as fork:
        cluster.remove_snapshot("mine")
        cluster.remove_snapshot("snapshot-1")
        assert cluster.snapshots() == ["snapshot-2"]
        assert values(fork) == [b"a"]
        assert cluster.snapshot("mine") == "mine"
    cluster.reset()
    assert sorted(cluster.snapshots()) == ["mine", "snapshot-2"]
    cluster.restore("mine")
    assert values(cluster) == [b"a"]


def test_what_cannot_be_done_is_refused_and_changes_nothing(process, cluster):
    cluster.create_topic("orders")
    cluster.produce("orders", "a", partition=0)
    cluster.snapshot("mine")
    for call, why in (
        (lambda: cluster.snapshot("mine"), "there is a snapshot mine already"),
        (lambda: cluster.snapshot("../other"), "is no name"),
        (lambda: cluster.restore("none"), "no such snapshot: none; there are mine"),
        (lambda: cluster.fork("none"), "no such snapshot: none"),
        (lambda: cluster.fork(name=cluster.name), "already"),
        (lambda: cluster.fork(listen="127.0.0.1:notaport"), "port"),
        (lambda: cluster.remove_snapshot("none"), "no such snapshot"),
    ):
        clusters = len(process.control.ask("GET", CLUSTERS))
        with pytest.raises(ControlError, match=why):
            call()
        assert len(process.control.ask("GET", CLUSTERS)) == clusters
    assert values(cluster) == [b"a"]


def test_snapshots_on_disk_outlive_their_process(tmp_path):
    with Broker(data_dir=tmp_path) as broker:
        broker.create_topic("orders")
        broker.produce("orders", "a")
        broker.snapshot("one")
        broker.produce("orders", "b")
        broker.kill()
        broker.start()
        assert broker.snapshots() == ["one"]
        broker.restore("one")
        assert values(broker) == [b"a"]
        broker.produce("orders", "c")
        broker.kill()
        broker.start()
        assert values(broker) == [b"a", b"c"]
        with broker.fork("one") as fork:
            assert values(fork) == [b"a"]
            left = fork.name
            fork.is_open = False  # its folder stays
        broker.kill()
        broker.start()
        with pytest.raises(ControlError, match="holds the data of an earlier cluster"):
            broker.fork(name=left)
        with broker.create_cluster(name=left, flush="os") as again:
            assert values(again) == [b"a"]


def test_twin_to_await_forks_and_restores(cluster):
    async def run() -> list[bytes | None]:
        await cluster.aio.create_topic("orders")
        await cluster.aio.produce("orders", "a")
        snapshot = await cluster.aio.snapshot()
        fork = await cluster.aio.fork(snapshot)
        assert isinstance(fork.target, Cluster)
        await fork.produce("orders", "b", partition=0)
        await cluster.aio.restore(snapshot)
        found = [record.value for record in await fork.consume("orders")]
        await fork.close()
        return found

    assert asyncio.run(run()) == [b"a", b"b"]


def test_fork_and_restore_go_back_to_the_users_of_the_snapshot(process):
    """What a client is told to connect with is what the credentials in the data are of."""

    def check(cluster: Any) -> None:
        assert cluster.users.list() == ["alice", "bob"]
        for user in ("alice", "bob"):
            settings = cluster.client_config("confluent", user=user)
            assert AdminClient({**settings, "log_level": 0}).list_topics(timeout=10).brokers

    with process.create_cluster(security="sasl_plaintext", users={"alice": "old", "bob": "b"}) as cluster:
        snapshot = cluster.snapshot()
        cluster.users.add("alice", "new")
        cluster.users.add("carol", "c")
        cluster.users.remove("bob")
        with cluster.fork(snapshot) as fork:
            check(fork)
        cluster.restore(snapshot)
        check(cluster)


@pytest.mark.parametrize("flush", FLUSHES)
def test_each_life_has_an_id_but_a_restored_one_and_a_seed_repeats_them(process, flush):
    found = []
    for _ in range(2):
        with process.create_cluster(flush=flush, seed=5, name="seeded") as cluster:
            ids, kept = [cluster.cluster_id], cluster.snapshot()
            for _ in range(2):
                cluster.reset()
                ids.append(cluster.cluster_id)
            with cluster.fork(kept, name="fork") as fork:
                ids.append(fork.cluster_id)
                again = fork.snapshot()
                fork.reset()
                fork.restore(again)
                assert fork.cluster_id == ids[-1]
            cluster.restore(kept)
            assert cluster.cluster_id == ids[0]
            assert cluster.control.ask("GET", f"{CLUSTERS}/seeded")["cluster_id"] == ids[0]
        found.append(ids)
    assert found[0] == found[1]
    assert len(set(ids)) == 4
    with process.create_cluster(flush=flush) as cluster:
        before = cluster.cluster_id
        cluster.reset()
        assert cluster.cluster_id != before


def test_cluster_id_that_was_asked_for_stays_through_resets(process):
    with process.create_cluster(config={"cluster.id": "mine"}) as cluster:
        cluster.reset()
        assert cluster.cluster_id == "mine"
        with cluster.fork() as fork:
            assert fork.cluster_id != "mine"
