"""What a member's topics are, when the client may not describe or create all that it asks for."""

from __future__ import annotations

from typing import Any

import pytest
from core_broker import make_topic
from unit.authorization.acl_kit import Clients, acl

from broker.cluster.acls import CLUSTER, CREATE, DESCRIBE, GROUP, READ
from protocol.errors import ErrorCode
from protocol.messages.consumer_group import ConsumerGroupHeartbeatRequest
from protocol.messages.streams_group import (
    StreamsGroupHeartbeatRequest,
    StreamsGroupHeartbeatRequestSubtopology,
    StreamsGroupHeartbeatRequestTopicInfo,
    StreamsGroupHeartbeatRequestTopology,
)

PREFIXED = 4
CHANGELOGS = ["app-a-changelog", "app-b-changelog"]


@pytest.fixture
def clients() -> Clients:
    made = Clients()
    for name in ("orders", "orders-secret", "other"):
        make_topic(made.admin, name)
    made.make(acl(READ, "g", GROUP))
    return made


def assigned(clients: Clients, user: Any, member: str = "m") -> set[str]:
    """The topics of a member that subscribes to `orders.*`, after the expression is resolved."""
    joining = ConsumerGroupHeartbeatRequest(
        group_id="g",
        member_id=member,
        member_epoch=0,
        rebalance_timeout_ms=60_000,
        subscribed_topic_regex="orders.*",
        topic_partitions=[],
    )
    found = user.call(joining, 1)
    clients.world.run()
    reply = user.call(ConsumerGroupHeartbeatRequest(group_id="g", member_id=member, member_epoch=found.member_epoch), 1)
    topics = clients.world.broker.metadata.topics_by_id
    return {topics[each.topic_id].name for each in (reply.assignment or found.assignment).topic_partitions}


@pytest.mark.parametrize(
    ("rights", "topics"),
    [
        ([], set()),
        ([acl(DESCRIBE, "orders")], {"orders"}),
        ([acl(READ, "orders", pattern=PREFIXED)], {"orders", "orders-secret"}),
        ([acl(DESCRIBE, "*"), acl(DESCRIBE, "orders-secret", permission=2)], {"orders"}),
    ],
)
def test_expression_stands_for_the_topics_that_the_member_may_describe(clients, rights, topics):
    clients.make(*rights)
    assert assigned(clients, clients.alice) == topics
    assert not clients.world.broker.groups.of("g").machine.askers


def test_expression_of_a_super_user_stands_for_all_topics(clients):
    assert assigned(clients, clients.admin) == {"orders", "orders-secret"}


def joining(source: str) -> StreamsGroupHeartbeatRequest:
    """The first heartbeat of a topology with two internal topics."""
    subtopology = StreamsGroupHeartbeatRequestSubtopology(
        subtopology_id="0",
        source_topics=[source],
        source_topic_regex=[],
        state_changelog_topics=[
            StreamsGroupHeartbeatRequestTopicInfo(name=name, partitions=0, replication_factor=0, topic_configs=[])
            for name in CHANGELOGS
        ],
        repartition_sink_topics=[],
        repartition_source_topics=[],
        copartition_groups=[],
    )
    return StreamsGroupHeartbeatRequest(
        group_id="g",
        member_id="m",
        member_epoch=0,
        endpoint_information_epoch=0,
        rebalance_timeout_ms=1000,
        topology=StreamsGroupHeartbeatRequestTopology(epoch=1, subtopologies=[subtopology]),
        active_tasks=[],
        standby_tasks=[],
        warmup_tasks=[],
        process_id="p",
        client_tags=[],
    )


@pytest.mark.parametrize(
    ("rights", "denied"),
    [
        ([], CHANGELOGS),
        ([acl(CREATE, CHANGELOGS[0])], CHANGELOGS[1:]),
        ([acl(CREATE, "app-", pattern=PREFIXED)], []),
        ([acl(CREATE, "kafka-cluster", CLUSTER)], []),
    ],
)
def test_internal_topics_are_made_for_members_who_may_create_all_of_them(clients, rights, denied):
    clients.make(acl(DESCRIBE, "*"), *rights)
    reply = clients.alice.call(joining("orders"), 0)
    assert reply.error_code == 0
    missing = f"Internal topics are missing: {', '.join(CHANGELOGS)}"
    refusal = f"; Unauthorized to CREATE on topics {', '.join(denied)}." if denied else ""
    assert [each.status_detail for each in reply.status] == [missing + refusal]
    made = [name in clients.world.broker.metadata.topics for name in CHANGELOGS]
    assert made == [not denied] * 2


@pytest.mark.parametrize("name", ["__consumer_offsets", "a name"])
def test_topology_with_an_impossible_topic_is_refused_before_who_may_describe_it(clients, name):
    assert clients.alice.call(joining(name), 0).error_code == ErrorCode.STREAMS_INVALID_TOPOLOGY
    assert clients.alice.call(joining("orders"), 0).error_code == ErrorCode.TOPIC_AUTHORIZATION_FAILED
