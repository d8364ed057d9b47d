"""What Apache Kafka 4.3.1 answers to requests of groups, each found by comparing random requests with it."""

from __future__ import annotations

from typing import Any

import pytest
from answers_kit import INVALID_REQUEST
from consumer_kit import Groups
from core_broker import Client

from broker.coordinator.groups.streams.topology import SHUTDOWN_APPLICATION
from protocol.errors import ErrorCode
from protocol.messages.classic_group import JoinGroupRequest, JoinGroupRequestProtocol, SyncGroupRequest
from protocol.messages.consumer_group import ConsumerGroupDescribeRequest
from protocol.messages.streams_group import (
    StreamsGroupHeartbeatRequest,
    StreamsGroupHeartbeatRequestSubtopology,
    StreamsGroupHeartbeatRequestTaskIds,
    StreamsGroupHeartbeatRequestTopology,
)

SUBSCRIPTION = b"\0\0\0\0\0\0\xff\xff\xff\xff"


# -- JoinGroup


def join(client: Client, version: int, **fields: Any) -> Any:
    protocols = [JoinGroupRequestProtocol(name="range", metadata=SUBSCRIPTION)]
    defaults = {"group_id": "g", "session_timeout_ms": 6000, "rebalance_timeout_ms": 6000, "protocol_type": "consumer"}
    return client.call(JoinGroupRequest(**{**defaults, "protocols": protocols, **fields}), version)


@pytest.mark.parametrize("version", range(10))
@pytest.mark.parametrize(
    ("fields", "code"),
    [
        ({"member_id": "unknown"}, ErrorCode.UNKNOWN_MEMBER_ID),
        ({"session_timeout_ms": 1}, ErrorCode.INVALID_SESSION_TIMEOUT),
        ({"protocol_type": ""}, ErrorCode.INCONSISTENT_GROUP_PROTOCOL),
        ({"group_id": ""}, ErrorCode.INVALID_GROUP_ID),
    ],
)
def test_refused_join_names_no_protocol(client, version, fields, code):
    answer = join(client, version, **fields)
    assert (answer.error_code, answer.protocol_name) == (code, None if version >= 7 else "")


def test_join_that_waits_and_is_refused_names_no_protocol(client):
    other = Client(client.world)
    member_id = join(client, 9, group_instance_id="i").member_id
    other.send(
        JoinGroupRequest(
            group_id="g",
            session_timeout_ms=6000,
            rebalance_timeout_ms=6000,
            member_id=member_id,
            group_instance_id="i",
            protocol_type="consumer",
            protocols=[JoinGroupRequestProtocol(name="other", metadata=b"")],
        ),
        9,
    )
    other.world.run()
    answers = other.replies()
    assert [(answer.error_code, answer.protocol_name) for answer in answers] == [(23, None)]


@pytest.mark.parametrize("version", [0, 6, 7, 9])
def test_join_without_a_group_id_is_given_its_member_id_back(client, version):
    answer = join(client, version, group_id="", member_id="mine")
    assert (answer.error_code, answer.member_id) == (ErrorCode.INVALID_GROUP_ID, "mine")


def protocols(*names: str) -> list[JoinGroupRequestProtocol]:
    return [JoinGroupRequestProtocol(name=name, metadata=b"%d" % n) for n, name in enumerate(names)]


def chosen(client: Client, *names: str, instance: str = "i") -> tuple[int, str | None]:
    """Error and protocol of a static member's JoinGroup."""
    answer = join(client, 7, protocols=protocols(*names), group_instance_id=instance)
    return answer.error_code, answer.protocol_name


def test_protocol_without_a_name_is_null(client):
    assert chosen(client, "") == (0, None)


def test_protocol_that_a_member_names_twice_is_out_of_the_vote(client):
    assert chosen(client, "range", "rr", "range") == (0, "rr")
    assert chosen(Client(client.world), "range", instance="j") == (ErrorCode.INCONSISTENT_GROUP_PROTOCOL, None)


def test_protocol_that_one_member_names_twice_and_another_not_at_all_is_not_chosen(client):
    """As often as there are members, and yet not every member knows it: Kafka may choose it, and fails then."""
    other = Client(client.world)
    member_id = join(client, 7, protocols=protocols("rr", "range", "range"), group_instance_id="i").member_id
    fields = {"group_id": "g", "session_timeout_ms": 6000, "rebalance_timeout_ms": 6000, "protocol_type": "consumer"}
    other.send(JoinGroupRequest(**fields, protocols=protocols("rr"), group_instance_id="j"), 7)
    other.world.run()
    again = join(client, 7, member_id=member_id, protocols=protocols("range", "range", "rr"), group_instance_id="i")
    assert (again.error_code, again.protocol_name) == (0, "rr")
    assert [answer.protocol_name for answer in other.replies()] == ["rr"]


def test_protocol_that_is_named_twice_and_is_the_only_one_is_chosen(client):
    """Kafka fails, and never answers."""
    assert chosen(client, "range", "range") == (0, "range")


# -- consumer groups


@pytest.mark.parametrize("order", [("range", "uniform"), ("uniform", "range"), ("range", "uniform", None)])
def test_as_many_votes_for_each_assignor_choose_uniform(order):
    groups = Groups()
    groups.make_topic("t", 2)
    for name, assignor in zip("abc", order, strict=False):
        groups.member(name, assignor=assignor).join()
    described = groups.client.call(ConsumerGroupDescribeRequest(group_ids=["g"]), 1).groups[0]
    assert described.assignor_name == "uniform"


# -- streams groups


def beat(client: Client, *subtopologies: StreamsGroupHeartbeatRequestSubtopology, **fields: Any) -> Any:
    """The answer to a streams member that joins."""
    defaults = {"member_epoch": 0, "active_tasks": [], "standby_tasks": [], "warmup_tasks": []}
    if not fields.get("member_epoch"):
        defaults["topology"] = StreamsGroupHeartbeatRequestTopology(subtopologies=list(subtopologies))
    request = StreamsGroupHeartbeatRequest(
        group_id="g", member_id="m", rebalance_timeout_ms=1000, **{**defaults, **fields}
    )
    return client.call(request, 0)


def test_streams_task_of_an_unknown_subtopology_is_refused_even_without_partitions(client):
    subtopology = StreamsGroupHeartbeatRequestSubtopology(subtopology_id="a", source_topics=["t"])
    epoch = beat(client, subtopology).member_epoch
    nothing = {name: [StreamsGroupHeartbeatRequestTaskIds(subtopology_id=name)] for name in "ab"}
    assert beat(client, member_epoch=epoch, active_tasks=nothing["a"]).error_code == 0
    assert beat(client, member_epoch=epoch, standby_tasks=nothing["b"]).error_code == INVALID_REQUEST


def test_streams_shutdown_asked_for_by_a_stranger_of_an_empty_group_is_told_to_the_next_member(client):
    """Kafka notes who asks before it looks whether that is a member."""
    subtopology = StreamsGroupHeartbeatRequestSubtopology(subtopology_id="a", source_topics=["t"])
    assert beat(client, subtopology).error_code == 0
    tasks = {"active_tasks": None, "standby_tasks": None, "warmup_tasks": None}
    assert beat(client, member_epoch=-1, **tasks).error_code == 0
    leave = beat(client, member_epoch=-1, shutdown_application=True, **tasks)
    assert leave.error_code == ErrorCode.UNKNOWN_MEMBER_ID
    assert [status.status_code for status in beat(client, subtopology).status] == [SHUTDOWN_APPLICATION]


def test_streams_topology_that_names_a_subtopology_twice_is_checked_last(client):
    def code(**fields: Any) -> int:
        twice = [StreamsGroupHeartbeatRequestSubtopology(subtopology_id="a", source_topics=["t"], **fields)] * 2
        return int(beat(client, *twice).error_code)

    assert code(source_topic_regex=["x.*"]) == INVALID_REQUEST
    assert code() == ErrorCode.STREAMS_INVALID_TOPOLOGY


# -- What has no id


@pytest.mark.parametrize(
    ("version", "code"), [(4, ErrorCode.INVALID_GROUP_ID), (5, ErrorCode.INCONSISTENT_GROUP_PROTOCOL)]
)
def test_sync_without_group_and_protocol_misses_the_protocol_first(client, version, code):
    assert (
        client.call(SyncGroupRequest(group_id="", protocol_type=None, protocol_name=None), version).error_code == code
    )
    both = SyncGroupRequest(group_id="", protocol_type="consumer", protocol_name="range")
    assert client.call(both, 5).error_code == ErrorCode.INVALID_GROUP_ID
