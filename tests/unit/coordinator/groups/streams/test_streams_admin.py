"""Streams groups as the other APIs see them: described, listed, deleted, expired, met by classic clients."""

from __future__ import annotations

from typing import Any

import pytest
from unit.coordinator.groups.streams.kit import STATELESS, StreamsWorld, as_dict, subtopology, topic_info, topology

from protocol.errors import ErrorCode
from protocol.messages.classic_group import (
    HeartbeatRequest,
    JoinGroupRequest,
    JoinGroupRequestProtocol,
    LeaveGroupRequest,
    MemberIdentity,
    SyncGroupRequest,
)
from protocol.messages.group_admin import DeleteGroupsRequest, DescribeGroupsRequest
from protocol.messages.offsets import OffsetDeleteRequest, OffsetDeleteRequestPartition, OffsetDeleteRequestTopic
from protocol.messages.streams_group import StreamsGroupDescribeRequest, StreamsGroupHeartbeatRequestKeyValue


@pytest.fixture
def world():
    with StreamsWorld({"in": 2}) as made:
        yield made


def test_group_is_described_with_all_that_is_known(world):
    shape = topology(subtopology("0", "in", changelogs=(topic_info("g-log", **{"cleanup.policy": "compact"}),)))
    a = world.member("a", "process", shape=shape, endpoint=("host", 99))
    a.join(rack_id="r", client_tags=[StreamsGroupHeartbeatRequestKeyValue(key="zone", value="z")])
    a.beat()
    found = world.describe()
    assert (found.error_code, found.group_id, found.group_state) == (0, "g", "Stable")
    assert (found.group_epoch, found.assignment_epoch, found.topology.epoch) == (3, 3, 0)
    (shown,) = found.topology.subtopologies
    assert (shown.subtopology_id, shown.source_topics) == ("0", ["in"])
    (log,) = shown.state_changelog_topics
    assert (log.name, log.partitions, log.replication_factor) == ("g-log", 2, 0)
    assert [(c.key, c.value) for c in log.topic_configs] == [("cleanup.policy", "compact")]
    (member,) = found.members
    assert (member.member_id, member.member_epoch, member.process_id) == ("a", 3, "process")
    assert (member.client_id, member.client_host, member.rack_id) == ("client", "/127.0.0.1", "r")
    assert (member.user_endpoint.host, member.user_endpoint.port) == ("host", 99)
    assert [(t.key, t.value) for t in member.client_tags] == [("zone", "z")]
    assert (member.topology_epoch, member.instance_id, member.is_classic) == (0, None, False)
    assert as_dict(member.assignment.active_tasks) == as_dict(member.target_assignment.active_tasks) == {"0": [0, 1]}


def test_topology_is_described_as_it_came_until_it_is_ready():
    with StreamsWorld() as world:
        shape = topology(subtopology("0", "in", changelogs=(topic_info("g-log"),)))
        world.member("a", shape=shape).join()
        (shown,) = world.describe().topology.subtopologies
        assert [(t.name, t.partitions) for t in shown.state_changelog_topics] == [("g-log", 0)]


def test_describe_of_what_is_no_streams_group(world):
    world.commit({"in": [0]}, -1, "", "simple")
    join_classic(world, "classic")
    missing, simple, classic, nameless = world.describe("missing", "simple", "classic", "")
    not_found = ErrorCode.GROUP_ID_NOT_FOUND
    assert (missing.error_code, simple.error_code, classic.error_code) == (not_found, not_found, not_found)
    assert "not found" in missing.error_message
    assert "not a streams group" in simple.error_message
    assert "not a streams group" in classic.error_message
    assert nameless.error_code == ErrorCode.INVALID_GROUP_ID


def test_describe_tells_operations_only_when_asked(world):
    world.member("a").join()
    request = StreamsGroupDescribeRequest(group_ids=["g", "missing"], include_authorized_operations=True)
    found, missing = world.client.call(request, 0).groups
    assert found.authorized_operations == 3400
    assert missing.authorized_operations == -(2**31)
    assert world.describe().authorized_operations == -(2**31)


def test_group_is_listed_with_type_and_state(world):
    a = world.member("a")
    a.join()
    assert world.list() == {"g": ("streams", "Stable", "streams")}
    assert world.list(types=("streams",)) == world.list(states=("stable",)) == world.list()
    assert world.list(types=("classic",)) == world.list(types=("consumer",)) == world.list(states=("Empty",)) == {}
    a.leave()
    assert world.list() == {"g": ("streams", "Empty", "streams")}


def test_group_that_is_not_ready_is_found_by_that_state():
    with StreamsWorld() as world:
        world.member("a").join()
        assert world.list(states=("NotReady",)) == {"g": ("streams", "NotReady", "streams")}


def test_describe_groups_knows_it_not(world):
    world.member("a").join()
    (found,) = world.client.call(DescribeGroupsRequest(groups=["g"]), 6).groups
    assert (found.error_code, found.group_state) == (ErrorCode.GROUP_ID_NOT_FOUND, "Dead")
    (found,) = world.client.call(DescribeGroupsRequest(groups=["g"]), 5).groups
    assert (found.error_code, found.group_state) == (0, "Dead")


# -- deleting ---------------------------------------------------------------------------------------------------------


def delete(world: StreamsWorld) -> int:
    return int(world.client.call(DeleteGroupsRequest(groups_names=["g"]), 2).results[0].error_code)


def test_group_with_members_is_not_deleted(world):
    world.member("a").join()
    assert delete(world) == ErrorCode.NON_EMPTY_GROUP


def test_empty_group_is_deleted_with_its_offsets(world):
    a = world.member("a")
    a.join()
    a.commit(None, {"in": [0]})
    a.leave()
    assert delete(world) == 0
    assert world.list() == {}
    world.restart()
    assert world.list() == {}
    assert a.join().member_epoch == 2, "it begins anew"


def delete_offsets(world: StreamsWorld, topic: str) -> list[int]:
    asked = OffsetDeleteRequestTopic(name=topic, partitions=[OffsetDeleteRequestPartition(partition_index=0)])
    reply = world.client.call(OffsetDeleteRequest(group_id="g", topics=[asked]), 0)
    return [reply.error_code, *(p.error_code for t in reply.topics for p in t.partitions)]


def test_offsets_of_sources_are_not_deleted_while_there_are_members():
    with StreamsWorld({"in": 2, "other": 1}) as world:
        a = world.member("a")
        a.join()
        a.commit(None, {"in": [0], "other": [0]})
        assert delete_offsets(world, "in") == [0, ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC]
        assert delete_offsets(world, "other") == [0, 0]
        a.leave()
        assert delete_offsets(world, "in") == [0, 0]


def test_offsets_expire_once_their_topic_is_not_read():
    day_ms = 86_400_000
    with StreamsWorld({"in": 2, "other": 1}, group_streams_session_timeout_ms=str(20 * day_ms)) as world:
        a = world.member("a")
        a.join()
        a.commit(None, {"in": [0], "other": [0]})
        world.world.leap(8 * day_ms)
        offsets = world.world.broker.groups.of("g").machine.offsets
        assert list(offsets.partitions("g")) == ["in"]
        a.leave()
        world.world.leap(day_ms)
        assert world.list() == {}


# -- classic clients --------------------------------------------------------------------------------------------------


def join_classic(world: StreamsWorld, group: str = "g", member_id: str = "") -> Any:
    request = JoinGroupRequest(
        group_id=group,
        session_timeout_ms=10_000,
        rebalance_timeout_ms=10_000,
        member_id=member_id,
        protocol_type="consumer",
        protocols=[JoinGroupRequestProtocol(name="range", metadata=b"\0\0\0\0\0\0\xff\xff\xff\xff")],
    )
    reply = world.client.call(request, 9)
    if reply.error_code == ErrorCode.MEMBER_ID_REQUIRED:
        return join_classic(world, group, reply.member_id)
    return reply


def test_classic_member_cannot_join_a_group_with_members(world):
    world.member("a").join()
    reply = join_classic(world)
    assert reply.error_code == ErrorCode.INCONSISTENT_GROUP_PROTOCOL


def test_classic_member_replaces_an_empty_group(world):
    a = world.member("a")
    a.join()
    a.leave()
    assert join_classic(world).error_code == 0
    assert world.list()["g"][2] == "classic"
    assert a.join().error_code == ErrorCode.GROUP_ID_NOT_FOUND


def test_classic_requests_meet_nobody_they_know(world):
    world.member("a").join()
    unknown = ErrorCode.UNKNOWN_MEMBER_ID
    assert world.client.call(HeartbeatRequest(group_id="g", generation_id=2, member_id="a"), 4).error_code == unknown
    sync = SyncGroupRequest(
        group_id="g", generation_id=2, member_id="a", protocol_type="consumer", protocol_name="range"
    )
    assert world.client.call(sync, 5).error_code == unknown
    leave = LeaveGroupRequest(group_id="g", members=[MemberIdentity(member_id="a")])
    reply = world.client.call(leave, 5)
    assert [reply.error_code, *(m.error_code for m in reply.members)] == [0, unknown]


def test_streams_member_cannot_join_a_classic_group_with_members(world):
    join_classic(world)
    assert world.member("a").join().error_code == ErrorCode.GROUP_ID_NOT_FOUND


def test_streams_member_replaces_an_empty_classic_group(world):
    joined = join_classic(world)
    leave = LeaveGroupRequest(group_id="g", members=[MemberIdentity(member_id=joined.member_id)])
    assert world.client.call(leave, 5).error_code == 0
    assert world.list()["g"] == ("consumer", "Empty", "classic")
    assert world.member("a").join().member_epoch == 2
    assert world.list()["g"] == ("streams", "Stable", "streams")


def test_streams_member_takes_over_a_group_of_offsets_alone(world):
    world.commit({"in": [0]}, -1, "")
    assert world.member("a").beat(member_epoch=1).error_code == ErrorCode.GROUP_ID_NOT_FOUND
    assert world.member("a", shape=STATELESS).join().error_code == 0
    assert world.world.broker.groups.of("g").machine.offsets.get("g", "in", 0) is not None


def test_streams_member_cannot_join_a_consumer_group(world):
    from protocol.messages.consumer_group import ConsumerGroupHeartbeatRequest

    request = ConsumerGroupHeartbeatRequest(
        group_id="g",
        member_id="c",
        member_epoch=0,
        rebalance_timeout_ms=1000,
        subscribed_topic_names=["in"],
        topic_partitions=[],
    )
    assert world.client.call(request, 1).error_code == 0
    assert world.member("a").join().error_code == ErrorCode.GROUP_ID_NOT_FOUND
    assert world.member("a").leave().error_code == ErrorCode.GROUP_ID_NOT_FOUND


def test_consumer_cannot_join_a_streams_group(world):
    from protocol.messages.consumer_group import ConsumerGroupHeartbeatRequest

    world.member("a").join()
    request = ConsumerGroupHeartbeatRequest(
        group_id="g",
        member_id="c",
        member_epoch=0,
        rebalance_timeout_ms=1000,
        subscribed_topic_names=["in"],
        topic_partitions=[],
    )
    assert world.client.call(request, 1).error_code == ErrorCode.GROUP_ID_NOT_FOUND
