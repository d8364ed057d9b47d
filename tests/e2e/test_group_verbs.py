"""What a test does with groups: waits for offsets and lag, rebalances, expels members, deletes."""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress

import pytest
from clientwork import until
from confluent_kafka import Consumer, KafkaException, TopicPartition
from test_control import momus

from momus import Broker
from momus.cluster import Cluster
from momus.control import ControlError
from momus.handle import WaitTimeoutError


@pytest.fixture(scope="module")
def process() -> Iterator[Broker]:
    with Broker(seed=5) as broker:
        yield broker


@pytest.fixture
def cluster(process: Broker) -> Iterator[Cluster]:
    with process.create_cluster(brokers=2, journal_mb=4) as cluster:
        yield cluster
    assert cluster.log == ""


class Member:
    """A member of a group that polls in a thread, and may commit what it has read."""

    def __init__(self, cluster: Cluster, group: str, **settings: object) -> None:
        words = {"auto.offset.reset": "earliest", "enable.auto.commit": False, "heartbeat.interval.ms": 50, **settings}
        if words.get("group.protocol") == "consumer":
            del words["heartbeat.interval.ms"]
        self.assigned = 0
        self.revoked = 0
        self.lost = 0
        self.seen: list[int] = []
        self.commits = threading.Event()
        self._end = threading.Event()
        self.consumer = Consumer({**cluster.client_config("confluent"), "group.id": group, **words})
        self.consumer.subscribe(["t"], on_assign=self._assigned, on_revoke=self._revoked, on_lost=self._lost)
        self._thread = threading.Thread(target=self._poll, daemon=True)
        self._thread.start()

    def _assigned(self, *_: object) -> None:
        self.assigned += 1

    def _revoked(self, *_: object) -> None:
        self.revoked += 1

    def _lost(self, *_: object) -> None:
        self.lost += 1

    def _poll(self) -> None:
        while not self._end.is_set():
            message = self.consumer.poll(0.02)
            if message is not None and message.error() is None:
                self.seen.append(message.offset())
            if self.commits.is_set() and self.seen:
                with suppress(KafkaException):  # between two assignments, or nothing new
                    self.consumer.commit(asynchronous=False)

    def close(self) -> None:
        """Leave the group; once more does nothing."""
        if self._end.is_set():
            return
        self._end.set()
        self._thread.join()
        self.consumer.close()


@pytest.fixture
def join(cluster: Cluster) -> Iterator[Callable[..., Member]]:
    members: list[Member] = []

    def begin(**settings: object) -> Member:
        members.append(Member(cluster, "g", **settings))
        return members[-1]

    yield begin
    for member in members:
        member.close()


def test_committed_offsets_are_waited_for(cluster: Cluster, join: Callable[..., Member]) -> None:
    cluster.create_topics({"t": 2})
    cluster.produce("t", "a", "b", partition=1)
    with pytest.raises(WaitTimeoutError, match=r"group g: t-0 is at none, not 1; t-1 is at none, not 2, after 0 s"):
        cluster.wait_for_committed("g", {("t", 0): 1, ("t", 1): 2}, timeout=0)
    member = join()
    until(lambda: len(member.seen) == 2, "the records are read")
    waiting = threading.Timer(0.2, member.commits.set)
    waiting.start()
    assert cluster.wait_for_committed("g", {("t", 1): 1}, timeout=60) == {("t", 1): 2}
    assert cluster.wait_for_committed("g", {}, timeout=0) == {}


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_lag_is_waited_for(cluster: Cluster, join: Callable[..., Member], protocol: str) -> None:
    cluster.create_topics({"t": 2})
    with pytest.raises(
        WaitTimeoutError, match="group g has committed no offset, and its members have no partition, after 0 s"
    ):
        cluster.wait_for_lag("g", timeout=0)
    with pytest.raises(WaitTimeoutError, match="no offset of t-0, t-1, and its members have none of them"):
        cluster.wait_for_lag("g", topic="t", timeout=0)
    cluster.produce("t", "a", "b", "c", partition=1)
    member = join(**{"group.protocol": protocol})
    until(lambda: len(member.seen) == 3, "the records are read")
    with pytest.raises(WaitTimeoutError, match=r"group g has a lag of 3 \(t-1: 3\), not 2, after 0 s"):
        cluster.wait_for_lag("g", 2, timeout=0)
    assert cluster.wait_for_lag("g", 3, timeout=0) == 3
    member.commits.set()
    assert cluster.wait_for_lag("g", timeout=60) == 0
    cluster.produce("t", "d")
    with pytest.raises(WaitTimeoutError, match="group g has no partition of another: there is no such topic"):
        cluster.wait_for_lag("g", topic="another", timeout=0)
    assert cluster.wait_for_lag("g", topic="t", timeout=60) == 0
    assert cluster.committed("g") == {("t", 0): 1, ("t", 1): 3}


def test_lag_does_not_count_what_retention_has_deleted(cluster: Cluster) -> None:
    cluster.create_topic("t", config={"segment.bytes": 1 << 20, "retention.bytes": 0})
    consumer = Consumer({**cluster.client_config("confluent"), "group.id": "g"})
    for _ in range(25):
        cluster.produce("t", "x" * 100_000)
    consumer.commit(offsets=[TopicPartition("t", 0, 1)], asynchronous=False)
    consumer.close()
    assert cluster.wait_for_lag("g", 24, timeout=0) == 24
    cluster.clock.advance(minutes=10)
    left = len(cluster.consume("t"))
    assert left < 20
    assert cluster.wait_for_lag("g", 24, timeout=0) == left


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_member_that_is_expelled_is_lost_and_joins_again(
    cluster: Cluster, join: Callable[..., Member], protocol: str
) -> None:
    cluster.create_topics({"t": 2})
    member = join(**{"group.protocol": protocol})
    until(lambda: member.assigned == 1, "it has partitions")
    (before,) = cluster.wait_for_group("g", members=1)
    with pytest.raises(ControlError, match=re.escape(f"group g has no member x; there are {before}")):
        cluster.expel_member("g", "x")
    cluster.expel_member("g", before)
    until(lambda: member.assigned == 2, "it has joined again")
    assert member.lost == 1
    cluster.wait_for_group("g", members=1)
    assert cluster.journal.entries(error="UNKNOWN_MEMBER_ID")


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_static_member_is_expelled_by_its_instance_id(
    cluster: Cluster, join: Callable[..., Member], protocol: str
) -> None:
    cluster.create_topics({"t": 2})
    member = join(**{"group.protocol": protocol, "group.instance.id": "one"})
    until(lambda: member.assigned == 1, "it has partitions")
    with pytest.raises(ControlError, match="group g has no member two"):
        cluster.expel_member("g", "two")
    cluster.expel_member("g", "one")
    until(lambda: bool(cluster.journal.entries(error="UNKNOWN_MEMBER_ID")), "it has noticed")


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_rebalance_is_started_without_a_member_that_asks(
    cluster: Cluster, join: Callable[..., Member], protocol: str
) -> None:
    cluster.create_topics({"t": 2})
    with pytest.raises(ControlError, match="there is no group g"):
        cluster.rebalance("g")
    member = join(**{"group.protocol": protocol})
    until(lambda: member.assigned == 1, "it has partitions")
    (found,) = cluster.wait_for_group("g", members=1)

    def epoch() -> int:
        return int(cluster.control.ask("GET", f"{cluster.control.prefix}/groups/g/details")["group_epoch"])  # type: ignore[index]  # JSON

    def joins() -> int:
        return len(cluster.journal.entries(api="JoinGroup"))

    before, joined = epoch(), joins()
    assert cluster.rebalance("g") == [found]
    if protocol == "consumer":
        assert epoch() == before + 1
        until(lambda: _member_epoch(cluster) == before + 1, "the member has the next epoch")
    else:
        until(lambda: joins() > joined, "it joins again")
        until(lambda: member.assigned == 2, "it has partitions again")
    cluster.wait_for_group("g", members=1)


def _member_epoch(cluster: Cluster) -> int:
    found = cluster.control.ask("GET", f"{cluster.control.prefix}/groups/g/details")
    return int(found["members"][0]["epoch"])  # type: ignore[index]  # JSON


def test_group_without_members_is_deleted_with_its_offsets(cluster: Cluster, join: Callable[..., Member]) -> None:
    cluster.create_topics({"t": 1})
    cluster.produce("t", "a")
    member = join()
    member.commits.set()
    cluster.wait_for_committed("g", {("t", 0): 1}, timeout=60)
    with pytest.raises(ControlError, match="group g: NON_EMPTY_GROUP"):
        cluster.delete_group("g")
    member.close()
    cluster.wait_for_group("g", "empty", timeout=60)
    cluster.delete_group("g")
    assert cluster.committed("g") == {}
    cluster.wait_for_group("g", "dead", timeout=0)
    with pytest.raises(ControlError, match="group g: GROUP_ID_NOT_FOUND"):
        cluster.delete_group("g")


def test_records_with_a_key_are_read_and_waited_for(cluster: Cluster) -> None:
    cluster.produce("t", "a", "b", key="k")
    cluster.produce("t", "c", key=b"\xff")
    cluster.produce("t", "d")
    assert [each.value for each in cluster.consume("t", key="k")] == [b"a", b"b"]
    assert [each.value for each in cluster.consume("t", key=b"\xff")] == [b"c"]
    with pytest.raises(WaitTimeoutError, match="t has 2 records with key 'k' after 0 s, not 3"):
        cluster.consume("t", 3, key="k", timeout=0)
    writer = threading.Timer(0.1, lambda: cluster.produce("t", "e", key="k"))
    writer.start()
    assert cluster.consume("t", 3, key="k", timeout=60)[-1].value == b"e"


def test_command_line_waits_rebalances_and_expels(cluster: Cluster, join: Callable[..., Member]) -> None:
    cluster.create_topics({"t": 1})
    cluster.produce("t", "a", "b")

    def run(*words: str, fails: str = "") -> str:
        done = momus("group", *words, "--control", cluster.control.address, "--cluster", cluster.name)
        assert (done.returncode == 0) == (not fails), done.stderr
        assert fails in done.stderr
        return str(done.stdout)

    run("rebalance", "g", fails="there is no group g")
    member = join()
    run("wait", "g", "--state", "stable", "--members", "1", "--timeout", "60")
    run("wait", "g", "--lag", "1", "--timeout", "0.1", fails="group g has a lag of 2 (t-0: 2), not 1, after 0.1 s")
    member.commits.set()
    run("wait", "g", "--lag", "0", "--topic", "t", "--timeout", "60")
    run("wait", "g", "--committed", "t:0=2", "--timeout", "60")
    run("wait", "g", "--committed", "t:0=3", "--timeout", "0", fails="t-0 is at 2, not 3")
    run("wait", "g", "--committed", "t=3", fails="'t=3' is not TOPIC:PARTITION=OFFSET")
    run("wait", "g", fails="wait for what?")
    run("wait", "g", "--state", "empty", "--topic", "t", fails="--topic goes with --lag")
    assert run("rebalance", "g") == "g rebalances\n"
    until(lambda: member.assigned == 2, "it has partitions again")
    (found,) = cluster.wait_for_group("g", members=1)
    assert run("expel", "g", found) == f"expelled {found}\n"
    until(lambda: member.assigned == 3, "it has joined again")
