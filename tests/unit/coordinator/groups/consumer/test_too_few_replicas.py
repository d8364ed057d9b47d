"""Groups while fewer replicas of their log are in sync than min.insync.replicas asks for, and after that.

A request that has to write is told COORDINATOR_NOT_AVAILABLE. Nothing of what it began may be lost: who waits is told
so too, and the group goes on once the replicas are back.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from consumer_kit import Groups
from core_broker import Client
from unit.coordinator.groups.consumer.classic_kit import join_request, subscription
from unit.coordinator.groups.streams.kit import StreamsWorld
from unit.coordinator.share.kit import ShareWorld

from broker.cluster.virtual_nodes import VirtualNodes
from broker.coordinator.groups.consumer import target
from broker.coordinator.groups.consumer.embedded_protocol import read_assignment, write_assignment
from protocol.errors import ErrorCode as E
from protocol.messages.classic_group import (
    JoinGroupRequest,
    LeaveGroupRequest,
    MemberIdentity,
    SyncGroupRequest,
    SyncGroupRequestAssignment,
)
from protocol.messages.cluster import FindCoordinatorRequest
from protocol.messages.group_admin import ListGroupsRequest
from protocol.messages.share_group import ShareGroupHeartbeatRequest

THREE: dict[str, Any] = {
    "brokers": 3,
    "offsets_topic_num_partitions": "1",
    "offsets_topic_replication_factor": "3",
    "min_insync_replicas": "2",
}


def coordinator(groups: Any) -> int:
    """Talk to the coordinator from now on; its node id."""
    found = groups.client.call(FindCoordinatorRequest(coordinator_keys=["g"]), 4).coordinators[0].node_id
    groups.client = client_of(groups.world, found)
    return int(found)


def client_of(world: Any, node_id: int) -> Client:
    return Client(world, [node.node_id for node in world.broker.nodes.up].index(node_id))


@contextmanager
def alone(world: Any, node_id: int) -> Iterator[None]:
    """All other brokers are stopped meanwhile."""
    broker = world.broker
    nodes = VirtualNodes(broker.nodes, broker.metadata_shard, broker.turn, broker.partitions)
    others = [node for node in nodes.all if node.node_id != node_id]
    for change in (nodes.stop, nodes.start):
        for node in others:
            change(node, lambda durable: None)
            world.run()
        if change == nodes.stop:
            yield


class Classics:
    """Two members of the classic protocol that have joined and wait for their assignment, the follower with SyncGroup.
    Each has a connection of its own."""

    def __init__(self, groups: Groups) -> None:
        self.node_id = coordinator(groups)
        self.groups = groups
        self.clients = [client_of(groups.world, self.node_id) for _ in range(2)]
        self.member_ids = [self.ask(n, self.join("")).member_id for n in range(2)]
        self.ask(0, self.join(self.member_ids[0]))
        assert self.ask(1, self.join(self.member_ids[1])) is None
        answer = self.ask(0, self.join(self.member_ids[0]))
        assert self.clients[1].replies()[0].generation_id == answer.generation_id
        self.generation = answer.generation_id
        self.leader = self.member_ids.index(answer.leader)

    def join(self, member_id: str) -> JoinGroupRequest:
        return join_request({"range": subscription("t")}, member_id)

    def ask(self, n: int, request: Any) -> Any:
        """The answer, if there is one yet."""
        self.clients[n].send(request, {11: 9, 13: 5, 14: 5}[request.API_KEY])
        self.groups.world.run()
        answers = self.clients[n].replies()
        return answers[0] if answers else None

    def sync(self, n: int) -> Any:
        plan = {m: write_assignment({"t": (k,)}, 3) for k, m in enumerate(self.member_ids)}
        rows = [SyncGroupRequestAssignment(member_id=m, assignment=assigned) for m, assigned in plan.items()]
        request = SyncGroupRequest(
            group_id="g",
            generation_id=self.generation,
            member_id=self.member_ids[n],
            protocol_type="consumer",
            protocol_name="range",
            assignments=rows if n == self.leader else [],
        )
        return self.ask(n, request)


@pytest.fixture
def groups() -> Iterator[Groups]:
    with Groups({"t": 4}, **THREE) as found:
        yield found


def test_followers_that_wait_for_the_leader_are_told_that_its_assignment_cannot_be_written(groups: Groups) -> None:
    two = Classics(groups)
    leader, follower = two.leader, 1 - two.leader
    assert two.sync(follower) is None
    with alone(groups.world, two.node_id):
        assert two.sync(leader).error_code == E.COORDINATOR_NOT_AVAILABLE
        assert [a.error_code for a in two.clients[follower].replies()] == [E.COORDINATOR_NOT_AVAILABLE]
    for n in range(2):
        assert read_assignment(two.sync(n).assignment)[0] == {"t": (n,)}


def test_last_member_that_leaves_has_left(groups: Groups) -> None:
    two = Classics(groups)
    with alone(groups.world, two.node_id):
        gone = [MemberIdentity(member_id=member_id) for member_id in two.member_ids]
        answer = two.ask(0, LeaveGroupRequest(group_id="g", members=gone))
        assert answer.error_code == E.COORDINATOR_NOT_AVAILABLE
    (listed,) = groups.client.call(ListGroupsRequest(), 5).groups
    assert (listed.group_id, listed.group_state) == ("g", "Empty")


def test_classic_members_that_wait_are_told_of_an_upgrade_that_cannot_be_written(groups: Groups) -> None:
    two = Classics(groups)
    assert two.sync(1 - two.leader) is None
    with alone(groups.world, two.node_id):
        assert groups.member("new").join().error_code == E.COORDINATOR_NOT_AVAILABLE
        answers = two.clients[1 - two.leader].replies()
        assert [a.error_code for a in answers] == [E.COORDINATOR_NOT_AVAILABLE]
    assert groups.member("new").join().error_code == 0


def test_target_that_is_made_between_the_turns_is_made(groups: Groups, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(target, "WORK_AT_ONCE", 0)
    node_id = coordinator(groups)
    (first,) = groups.joined("a")
    second = groups.member("b")
    with alone(groups.world, node_id):
        assert second.join().error_code == E.COORDINATOR_NOT_AVAILABLE
    assert second.join().error_code == 0
    for _ in range(6):
        groups.advance(2000)
        first.beat()
        second.beat()
    assert (first.assigned, second.assigned) == ({"t": [0, 1]}, {"t": [2, 3]})


def test_streams_member_is_told_so_too_and_its_first_assignment_is_made() -> None:
    with StreamsWorld({"in": 2}, **THREE, group_streams_initial_rebalance_delay_ms="3000") as streams:
        node_id = coordinator(streams)
        member = streams.member("m")
        with alone(streams.world, node_id):
            assert member.join().error_code == E.COORDINATOR_NOT_AVAILABLE
        assert member.join().error_code == 0
        streams.world.advance(3001)
        assert member.beat().error_code == 0
        assert member.active == {"0": [0, 1]}


def test_share_member_is_told_so_too_and_gets_its_partitions_later() -> None:
    with ShareWorld({"t": 2}, **THREE) as share:
        node_id = coordinator(share)

        def beat(epoch: int) -> Any:
            names = None if epoch else ["t"]
            request = ShareGroupHeartbeatRequest(group_id="g", member_id="m", member_epoch=epoch)
            request.subscribed_topic_names = names
            return share.client.call(request, 1)

        with alone(share.world, node_id):
            assert beat(0).error_code == E.COORDINATOR_NOT_AVAILABLE
        answer = beat(0)
        assert answer.error_code == 0
        (assigned,) = answer.assignment.topic_partitions
        assert assigned.partitions == [0, 1]
        with alone(share.world, node_id):
            assert beat(-1).error_code == E.COORDINATOR_NOT_AVAILABLE
        (listed,) = share.client.call(ListGroupsRequest(), 5).groups
        assert (listed.group_id, listed.group_state) == ("g", "Empty")
