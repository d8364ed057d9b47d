"""Looking at groups without a client: committed offsets, states to wait for, the twins to await, and waits that end."""

from __future__ import annotations

import asyncio
import threading
from contextlib import ExitStack
from datetime import UTC, datetime, timedelta

import pytest
from clientwork import until
from cluster_kit import Wire
from confluent_kafka import TopicPartition
from core_requests import commit_request
from handle_kit import consumer_of

from broker.coordinator.groups.classic.states import State as ClassicState
from broker.coordinator.groups.common.group import State
from broker.shell.control.of_cluster.groups import STATES
from momus import Broker
from momus.cluster import ClusterError
from momus.control import ControlError
from momus.handle import WaitTimeoutError
from protocol.messages.consumer_group import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatRequestTopicPartitions,
    ConsumerGroupHeartbeatResponse,
)

AT = datetime(2030, 1, 1, tzinfo=UTC)


def test_group_of_any_name_is_asked_for_by_its_own_name(cluster):
    names = ["ab", "a/b", "a?b", "a b", "a%62", "a#c", "a+b", "ü", ".."]
    cluster.create_topic("t")
    for number, group in enumerate(names):
        consumer = consumer_of(cluster, group)
        consumer.commit(offsets=[TopicPartition("t", 0, number)], asynchronous=False)
        consumer.close()
    assert [cluster.committed(group) for group in names] == [{("t", 0): number} for number in range(len(names))]
    for group in names:
        assert cluster.wait_for_group(group, "empty", timeout=0) == []
    assert cluster.committed("a%63") == {}


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_group_is_waited_for_and_its_offsets_are_told(cluster, protocol):
    cluster.create_topic("t", partitions=2)
    cluster.produce("t", "a", "b", partition=1)
    cluster.wait_for_group("g", "dead", members=0, timeout=0)
    consumer = consumer_of(cluster, "g", **{"group.protocol": protocol})
    consumer.subscribe(["t"])
    seen: list[object] = []
    until(lambda: seen.extend(consumer.consume(2, 0.2)) or len(seen) == 2, "the records are read")
    (member,) = cluster.wait_for_group("g", members=1)
    assert member == consumer.memberid()
    with pytest.raises(WaitTimeoutError, match="stable with 1 member, not stable with 2 members, after 0 s"):
        cluster.wait_for_group("g", members=2, timeout=0)
    consumer.commit(seen[-1], asynchronous=False)
    assert cluster.committed("g") == {("t", 1): 2}
    consumer.close()
    assert cluster.wait_for_group("g", "empty", timeout=60) == []
    assert cluster.committed("nobody") == {}


@pytest.mark.heavy
def test_state_and_members_that_a_wait_compares_are_of_one_moment(process):
    """A group that a second member joins while the answers wait for syncs is not stable with two members."""

    def beat(wire: Wire, **words: object) -> ConsumerGroupHeartbeatResponse:
        return wire.call(ConsumerGroupHeartbeatRequest(rebalance_timeout_ms=60_000, **words), 1)

    def commit(wire: Wire) -> None:
        while not is_over.is_set():
            wire.call(commit_request("other", {0: 1}, "t"), 8)

    is_over = threading.Event()
    with (
        process.create_cluster(flush="fsync", config={"offsets.topic.num.partitions": 1}) as cluster,
        ExitStack() as closing,
    ):
        cluster.create_topic("t", 2)
        cluster.faults.slow_disk(20, topic="__consumer_offsets")
        first, second, third = wires = tuple(Wire(cluster.bootstrap_servers) for _ in range(3))
        committing = threading.Thread(target=commit, args=(third,))
        committing.start()
        closing.callback(lambda: (is_over.set(), committing.join(), [each.socket.close() for each in wires]))
        for number in range(12):
            joins = {"group_id": f"g{number}", "member_epoch": 0, "subscribed_topic_names": ["t"]}
            answer = beat(first, member_id="a" * 22, topic_partitions=[], **joins)
            (given,) = answer.assignment.topic_partitions
            has = [ConsumerGroupHeartbeatRequestTopicPartitions(topic_id=given.topic_id, partitions=given.partitions)]
            beat(first, **{**joins, "member_epoch": answer.member_epoch}, member_id="a" * 22, topic_partitions=has)
            cluster.wait_for_group(f"g{number}", members=1)
            words = {"member_id": "b" * 22, "topic_partitions": [], **joins}
            joining = threading.Timer(0.05 + number * 0.003, beat, (second,), words)
            joining.start()
            with pytest.raises(WaitTimeoutError, match="is reconciling with 2 members"):
                cluster.wait_for_group(f"g{number}", members=2, timeout=0.3)
            joining.join()


def test_group_without_a_coordinator_is_not_dead_and_is_waited_for(process):
    """A test that waited for the end of a group passed while no broker could say that it is there."""
    config = {"offsets.topic.replication.factor": 2, "offsets.topic.num.partitions": 3}
    with process.create_cluster(brokers=3, config=config) as cluster:
        cluster.create_topic("t")
        groups = [f"g{number}" for number in range(12)]
        for group in groups:
            consumer = consumer_of(cluster, group)
            consumer.commit(offsets=[TopicPartition("t", 0, 1)], asynchronous=False)
            consumer.close()
        for node_id in (1, 2):  # those of one of the three partitions
            cluster.stop_broker(node_id)
        path, orphans = f"{cluster.control.prefix}/groups", []
        for group in groups:
            try:
                state = cluster.control.ask("GET", f"{path}/{group}")["state"]
            except ControlError as error:
                assert "has no coordinator: no broker leads __consumer_offsets-" in str(error)  # noqa: PT017  # some have one
                orphans.append(group)
            else:
                assert state == "Empty"
        assert 0 < len(orphans) < len(groups)
        for state in ("dead", "empty"):
            with pytest.raises(WaitTimeoutError, match=f"is unknown .*, not {state}: .* has no coordinator"):
                cluster.wait_for_group(orphans[0], state, timeout=0.1)
        back = threading.Timer(0.3, cluster.start_broker, (2,))
        back.start()
        assert cluster.wait_for_group(orphans[0], "empty", timeout=60) == []
        back.join()


def test_each_state_of_a_group_can_be_waited_for(cluster):
    """A streams group whose topics do not fit its topology is NotReady."""
    assert set(STATES.values()) == {each.value for states in (State, ClassicState) for each in states}
    for state in STATES.keys() - {"dead"}:
        with pytest.raises(WaitTimeoutError, match=f"is dead with 0 members, not {state}, after 0 s"):
            cluster.wait_for_group("nobody", state, timeout=0)


def test_session_of_45_seconds_ends_when_the_clock_is_moved(cluster):
    cluster.create_topic("t")
    consumer = consumer_of(cluster, "g", **{"group.instance.id": "one", "session.timeout.ms": 45_000})
    consumer.subscribe(["t"])
    until(lambda: consumer.poll(0.1) or consumer.assignment(), "it has joined")
    consumer.close()  # a static member does not leave
    cluster.wait_for_group("g", members=1, timeout=0)
    cluster.clock.freeze()
    cluster.clock.advance(seconds=44)
    cluster.wait_for_group("g", members=1, timeout=0)
    cluster.clock.advance(seconds=46)
    cluster.wait_for_group("g", "empty", members=0, timeout=0)


@pytest.mark.heavy
async def test_twins_are_awaited_and_leave_the_loop_free(process):
    cluster = process.create_cluster(at=AT)
    twin = cluster.aio
    await twin.create_topic("t")
    assert await twin.clock.now() == AT
    await twin.clock.advance(hours=1)
    assert cluster.clock.now() == AT + timedelta(hours=1)
    waits = asyncio.create_task(twin.consume("t", 1, timeout=60))
    await asyncio.sleep(0)
    assert await twin.produce("t", b"x") == [(0, 0)]
    assert [r.value for r in await waits] == [b"x"]
    assert twin.name == cluster.name
    fault = await twin.faults.inject_error("Heartbeat", "NOT_COORDINATOR")
    assert await twin.faults.list() == [await fault.state()]
    assert (fault.name, await fault.hits) == ("fault-1", 0)
    waits = asyncio.create_task(fault.wait_until_hit(timeout=60))
    await asyncio.sleep(0)
    assert not waits.done()
    await fault.remove()
    with pytest.raises(ControlError, match="fault-1"):
        await waits
    before = await twin.snapshot("before")
    assert (str(before), await twin.snapshots() != []) == ("before", True)
    async with await before.fork() as fork:
        assert [each.value for each in await fork.consume("t")] == [b"x"]
        await fork.produce("t", "y")
    assert len(await twin.consume("t")) == 1
    await twin.restore(before)
    await before.remove()
    assert await twin.snapshots() == []
    await twin.close()
    with pytest.raises(ControlError, match="no such cluster"):
        cluster.produce("t", "x")


def test_calls_of_the_test_meet_no_fault_and_are_no_connections(cluster):
    cluster.create_topic("t")
    fault = cluster.faults.inject_error(["Produce", "Fetch", "Metadata"], "NOT_LEADER_OR_FOLLOWER")
    assert cluster.produce("t", "x") == [(0, 0)]
    assert [r.value for r in cluster.consume("t", 1)] == [b"x"]
    assert fault.calls == 0
    assert cluster.control.ask("GET", cluster.control.prefix)["connections"] == 0


@pytest.mark.parametrize(("end", "says"), [("reset", "the cluster was reset"), ("close", "the cluster was removed")])
def test_waits_end_when_their_cluster_is_reset_or_removed(cluster, end, says):
    cluster.create_topic("t")
    errors: list[Exception] = []

    def wait(call, *arguments):
        try:
            call(*arguments, timeout=60)
        except ControlError as error:
            errors.append(error)

    threads = [
        threading.Thread(target=wait, args=arguments)
        for arguments in ((cluster.consume, "t", 1), (cluster.wait_for_group, "g"))
    ]
    for thread in threads:
        thread.start()
    until(lambda: cluster.control.ask("GET", cluster.control.prefix)["waits"] == 2, "both wait in the broker")
    getattr(cluster, end)()
    for thread in threads:
        thread.join(60)
    assert [str(error) for error in errors] == [says] * 2


def test_cluster_refuses_what_would_end_its_neighbours(cluster, process):
    for call in (cluster.kill, cluster.stop, cluster.start, cluster.restart):
        with pytest.raises(ClusterError, match="kafka_process_broker"):
            call()
    assert process.running


def test_handle_of_a_process_does_the_same_for_its_first_cluster():
    with Broker(seed=3, brokers=2) as broker:
        first = broker.control.ask("GET", "/_admin/clusters/default")
        assert first["seed"] == 3
        broker.create_topic("t", 2)
        assert broker.produce("t", "x", partition=1) == [(1, 0)]
        broker.reset()
        with pytest.raises(ControlError, match="no topic t"):
            broker.consume("t")
        assert broker.control.ask("GET", "/_admin/clusters/default")["cluster_id"] != first["cluster_id"]
        assert broker.committed("g") == {}
