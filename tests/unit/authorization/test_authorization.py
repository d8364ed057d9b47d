"""ACLs as requests make them, and what they refuse: sessions, parked requests, restarts, the log and the journal."""

from __future__ import annotations

import logging
from typing import Any

import pytest
from acl_kit import ANY, DENY, Clients, acl, code_of_produce
from core_broker import Client, make_topic
from core_requests import commit_request, fetch_request, produce_request

from broker.authorization.authorizer import Authorizer
from broker.authorization.table import RULES
from broker.cluster.acls import CLUSTER, DESCRIBE, GROUP, READ, TOPIC, WRITE, Acls
from broker.cluster.metadata import ClusterMetadata
from broker.config.authorizer_setting import CLASS
from broker.config.settings import BrokerConfig, ConfigError
from broker.shell.cluster_plan import ClusterPlan
from protocol.api import ApiKey
from protocol.errors import ErrorCode
from protocol.messages.acls import (
    DescribeAclsRequest,
)
from protocol.messages.classic_group import JoinGroupRequest, JoinGroupRequestProtocol
from protocol.messages.cluster import DescribeClusterRequest, MetadataRequest, MetadataRequestTopic
from protocol.messages.offsets import OffsetFetchRequest, OffsetFetchRequestGroup, OffsetFetchRequestTopics
from protocol.messages.share_fetch import (
    ShareFetchRequest,
    ShareFetchRequestFetchPartition,
    ShareFetchRequestFetchTopic,
)
from protocol.messages.share_group import ShareGroupHeartbeatRequest


@pytest.fixture
def clients() -> Clients:
    made = Clients()
    make_topic(made.admin)
    return made


def test_acls_are_made_once_described_and_deleted(clients):
    assert clients.make(acl(READ), acl(READ), acl(WRITE), acl(READ)) == [0] * 4
    described = clients.admin.call(DescribeAclsRequest(**ANY, permission_type=1)).resources
    assert [(each.resource_name, [one.operation for one in each.acls]) for each in described] == [("t", [READ, WRITE])]
    assert clients.drop(operation=WRITE) == 1
    assert clients.drop() == 1
    assert clients.drop() == 0


@pytest.mark.parametrize(
    "wrong",
    [
        acl(READ, "other", CLUSTER),
        acl(READ, ""),
        acl(READ, kind=9),
        acl(READ, pattern=5),
        acl(99),
        acl(READ, permission=4),
        acl(READ, principal="alice"),
    ],
)
def test_acl_that_is_wrong_is_refused_alone(clients, wrong):
    assert clients.make(wrong, acl(WRITE)) == [ErrorCode.INVALID_REQUEST, 0]


@pytest.mark.parametrize(
    ("name", "pattern_type", "n"), [("orders", 3, 1), ("orders", 2, 3), ("orders", 1, 1), (None, 4, 1), ("o", 4, 1)]
)
def test_filter_finds_by_name_prefix_or_whatever_covers(clients, name, pattern_type, n):
    clients.make(acl(READ, "orders"), acl(READ, "o", pattern=4), acl(READ, "*"), acl(READ, "logs"))
    assert clients.drop(resource_name_filter=name, pattern_type_filter=pattern_type) == n


def test_acls_survive_a_restart(clients):
    clients.make(acl(WRITE), acl(READ))
    clients.drop(operation=READ)
    again = clients.world.restart()
    client = Client(again)
    client.connection.principal = "User:alice"
    assert code_of_produce(client) == 0
    assert len(again.broker.metadata.acls) == 1
    again.check_replay()


def test_image_of_the_metadata_has_the_acls(clients):
    clients.make(acl(WRITE), acl(READ))
    state = clients.world.broker.metadata
    image = ClusterMetadata(state.config, state.node_ids)
    for value in state.image_records():
        image.replay(None, value)
    assert image.acls.by_id == state.acls.by_id
    assert [*image.acls.about(TOPIC, "t")] == [*state.acls.about(TOPIC, "t")]


@pytest.mark.parametrize("version", [3, 9, 13])
def test_denied_part_of_a_produce_is_refused_and_the_rest_written(clients, version):
    topic_id = make_topic(clients.admin, "u")
    clients.make(acl(WRITE, "u"))
    request = produce_request("t", 0, b"x")
    request.topic_data += produce_request("u", 0, b"y").topic_data
    request.topic_data[1].topic_id = topic_id
    request.topic_data[0].topic_id = clients.world.broker.metadata.topics["t"].topic_id
    answer = clients.alice.call(request, version)
    codes = {(each.name or each.topic_id): each.partition_responses[0].error_code for each in answer.responses}
    assert sorted(codes.values()) == [0, ErrorCode.TOPIC_AUTHORIZATION_FAILED]


def test_denied_produce_without_acks_closes_the_connection(clients):
    clients.alice.send(produce_request("t", 0, b"x", acks=0), 9)
    clients.world.run()
    assert clients.alice.closed


def test_acl_that_goes_is_obeyed_by_the_next_request(clients):
    """On a connection whose requests shortcuts serve."""
    clients.make(acl(WRITE, "*"), acl(WRITE, "*", 5))
    assert [code_of_produce(clients.alice) for _ in range(3)] == [0] * 3
    clients.drop()
    assert code_of_produce(clients.alice) == ErrorCode.TOPIC_AUTHORIZATION_FAILED
    clients.make(acl(WRITE, "t"))
    assert code_of_produce(clients.alice) == 0
    clients.make(acl(WRITE, "t", permission=DENY, principal="User:*"))
    assert code_of_produce(clients.alice) == ErrorCode.TOPIC_AUTHORIZATION_FAILED


def test_star_as_a_prefix_allows_names_that_begin_with_a_star_alone(clients):
    clients.make(acl(WRITE, "*", pattern=4), acl(WRITE, "*", 5, pattern=4))
    assert [code_of_produce(clients.alice) for _ in range(2)] == [ErrorCode.TOPIC_AUTHORIZATION_FAILED] * 2


def test_denial_of_one_topic_ends_the_shortcut_of_who_may_write_all(clients):
    clients.make(acl(WRITE, "*"), acl(WRITE, "*", 5))
    assert [code_of_produce(clients.alice) for _ in range(3)] == [0] * 3
    clients.make(acl(WRITE, "t", permission=DENY))
    assert code_of_produce(clients.alice) == ErrorCode.TOPIC_AUTHORIZATION_FAILED


@pytest.mark.parametrize("version", [11, 12, 17])
def test_fetch_session_is_checked_each_time(clients, version):
    clients.make(acl(READ, "*"))
    code_of_produce(clients.admin)
    topic_id = clients.world.broker.metadata.topics["t"].topic_id
    first = fetch_request("t", 0, 0, session_id=0)
    first.session_epoch, first.topics[0].topic_id = 0, topic_id
    answer = clients.alice.call(first, version)
    assert answer.responses[0].partitions[0].error_code == 0
    clients.drop()
    nothing = fetch_request("t", 0, 0, session_id=answer.session_id)
    nothing.session_epoch, nothing.topics = 1, []
    answer = clients.alice.call(nothing, version)
    assert answer.responses[0].partitions[0].error_code == ErrorCode.TOPIC_AUTHORIZATION_FAILED
    assert not answer.responses[0].partitions[0].records


def test_fetch_that_waits_tells_at_its_end_what_is_denied(clients):
    make_topic(clients.admin, "u")
    clients.make(acl(READ, "u"))
    request = fetch_request("t", 0, 0, max_wait_ms=500)
    request.topics += fetch_request("u", 0, 0).topics
    clients.alice.send(request, 12)
    clients.world.run()
    assert not clients.alice.replies()
    clients.world.clock.advance(500)
    clients.world.run()
    found = {each.topic: each.partitions[0].error_code for each in clients.alice.replies()[0].responses}
    assert found == {"t": ErrorCode.TOPIC_AUTHORIZATION_FAILED, "u": 0}


def test_share_session_is_checked_each_time(clients):
    clients.make(acl(READ, "*"), acl(READ, "g", 3))
    code_of_produce(clients.admin)
    topic_id = clients.world.broker.metadata.topics["t"].topic_id

    def read(epoch: int, *indexes: int) -> Any:
        parts = [ShareFetchRequestFetchPartition(partition_index=each) for each in indexes]
        topics = [ShareFetchRequestFetchTopic(topic_id=topic_id, partitions=parts)] if parts else []
        request = ShareFetchRequest(
            group_id="g",
            member_id="m",
            share_session_epoch=epoch,
            max_bytes=1 << 20,
            max_records=9,
            batch_size=9,
            topics=topics,
        )
        return clients.alice.call(request, 1)

    clients.alice.call(ShareGroupHeartbeatRequest(group_id="g", member_id="m", subscribed_topic_names=["t"]), 1)
    assert read(0, 0).responses[0].partitions[0].error_code == 0
    code_of_produce(clients.admin)
    clients.drop(resource_name_filter="*")
    for indexes in ((), (0,)):
        answer = read(1 + len(indexes), *indexes)
        found = [(each.topic_id, one.error_code, one.records) for each in answer.responses for one in each.partitions]
        assert found == [(topic_id, ErrorCode.TOPIC_AUTHORIZATION_FAILED, b"")]


def test_member_that_may_not_read_the_group_is_refused(clients):
    request = JoinGroupRequest(
        group_id="g",
        session_timeout_ms=10_000,
        rebalance_timeout_ms=10_000,
        member_id="",
        protocol_type="consumer",
        protocols=[JoinGroupRequestProtocol(name="range", metadata=b"")],
    )
    assert clients.alice.call(request, 5).error_code == ErrorCode.GROUP_AUTHORIZATION_FAILED
    clients.make(acl(READ, "g", 3))
    assert clients.alice.call(request, 5).error_code == ErrorCode.MEMBER_ID_REQUIRED


def test_commit_for_a_denied_topic_changes_nothing(clients):
    clients.make(acl(READ, "g", 3))
    answer = clients.alice.call(commit_request("g", {0: 5}), 8)
    assert answer.topics[0].partitions[0].error_code == ErrorCode.TOPIC_AUTHORIZATION_FAILED


def test_topic_is_made_on_demand_by_who_may_create_it(clients):
    request = MetadataRequest(topics=[MetadataRequestTopic(name="new")], allow_auto_topic_creation=True)
    clients.make(acl(DESCRIBE, "new"))
    assert clients.alice.call(request, 8).topics[0].error_code == ErrorCode.TOPIC_AUTHORIZATION_FAILED
    assert "new" not in clients.world.broker.metadata.topics
    clients.make(acl(5, "new"))
    assert clients.alice.call(request, 8).topics[0].error_code == 0


def test_old_metadata_request_for_denied_topics_does_not_become_one_for_all(clients):
    request = MetadataRequest(topics=[MetadataRequestTopic(name="t")])
    clients.make(acl(DESCRIBE, "u"))
    answer = clients.alice.call(request, 0)
    assert [(each.name, each.error_code) for each in answer.topics] == [("t", ErrorCode.TOPIC_AUTHORIZATION_FAILED)]


def test_denial_is_logged_and_journaled_in_kafkas_words(clients, caplog):
    clients.world.broker.keep_journal(1 << 20)
    clients.make(acl(WRITE, "t", permission=DENY))
    with caplog.at_level(logging.INFO, "momus.authorizer"):
        code_of_produce(clients.alice)
        clients.alice.call(commit_request("g", {0: 5}), 8)
    texts = [record.getMessage() for record in caplog.records if record.name == "momus.authorizer"]
    assert texts == [
        "Principal = User:alice is Denied operation = WRITE from host = 127.0.0.1 on resource = Topic:LITERAL:t for"
        " request = Produce with resourceRefCount = 1 based on rule MatchingAcl(acl=StandardAcl[resourceType=TOPIC,"
        " resourceName=t, patternType=LITERAL, principal=User:alice, host=*, operation=WRITE, permissionType=DENY])",
        "Principal = User:alice is Denied operation = READ from host = 127.0.0.1 on resource = Group:LITERAL:g for"
        " request = OffsetCommit with resourceRefCount = 1 based on rule DefaultDeny",
    ]
    notes = [note for each in clients.world.broker.clients.journal._notes.values() for note in each.values()]
    assert texts == notes


@pytest.mark.parametrize(("default", "code"), [("true", 0), ("false", 29), ("", 29)])
def test_default_is_for_resources_without_acls(default, code):
    clients = Clients(allow_everyone_if_no_acl_found=default)
    make_topic(clients.admin)
    assert code_of_produce(clients.alice) == code
    clients.make(acl(READ, principal="User:bob"))
    assert code_of_produce(clients.alice) == ErrorCode.TOPIC_AUTHORIZATION_FAILED


@pytest.mark.parametrize(
    "properties",
    [
        {"authorizer.class.name": "my.Authorizer"},
        {"authorizer.class.name": CLASS, "super.users": "admin"},
        {"authorizer.class.name": CLASS, "allow.everyone.if.no.acl.found": "perhaps"},
    ],
)
def test_authorizer_that_cannot_be_does_not_start(properties):
    with pytest.raises(ConfigError):
        ClusterPlan("default", properties, data_dir="/nowhere", listen=None, flush="memory")


@pytest.mark.parametrize(
    ("rules", "expected"),
    [
        ([], False),
        ([acl(WRITE, "a")], True),
        ([acl(2, "a")], True),
        ([acl(READ, "a")], False),
        ([acl(WRITE, "a"), acl(WRITE, "a", permission=DENY)], False),
        ([acl(WRITE, "ab"), acl(WRITE, "a", pattern=4, permission=DENY)], False),
        ([acl(WRITE, "b", pattern=4), acl(WRITE, "b", permission=DENY)], True),
        ([acl(WRITE, "*"), acl(WRITE, "a", pattern=4, permission=DENY)], True),
        ([acl(WRITE, "*"), acl(WRITE, "*", permission=DENY)], False),
        ([acl(WRITE, "a", host="10.0.0.1")], False),
    ],
)
def test_idempotent_producers_need_a_topic_that_they_may_write(rules, expected):
    acls = Acls()
    clients = Clients()
    clients.make(*rules)
    acls = clients.world.broker.metadata.acls
    authorizer = Authorizer(BrokerConfig.load({}), lambda: acls)
    assert authorizer.may_any("User:alice", "127.0.0.1", WRITE, TOPIC) is expected


def test_api_without_a_rule_is_refused_to_everybody(clients: Clients, monkeypatch: pytest.MonkeyPatch) -> None:
    request = DescribeClusterRequest()
    assert clients.alice.call(request).error_code == ErrorCode.NONE
    monkeypatch.delitem(RULES, ApiKey.DESCRIBE_CLUSTER)
    for client in (clients.alice, clients.admin):
        answer = client.call(request)
        assert answer.error_code == ErrorCode.CLUSTER_AUTHORIZATION_FAILED
        assert answer.error_message == "DescribeCluster has no rule of authorization: it is refused to everybody"


@pytest.mark.parametrize("topic_id", [bytes(16), bytes(range(16))])
def test_id_that_no_topic_has_is_unknown_and_not_forbidden(clients, topic_id):
    """Kafka looks ids up before it asks for rights; an id of zeros is not the topic without a name."""
    assert clients.make(acl(READ, "g", GROUP), acl(DESCRIBE, "g", GROUP)) == [0, 0]
    request = commit_request("g", {0: 5})
    request.topics[0].topic_id = topic_id
    answer = clients.alice.call(request, 10)
    assert answer.topics[0].partitions[0].error_code == ErrorCode.UNKNOWN_TOPIC_ID
    wanted = [OffsetFetchRequestTopics(topic_id=topic_id, partition_indexes=[0])]
    fetched = clients.alice.call(OffsetFetchRequest(groups=[OffsetFetchRequestGroup(group_id="g", topics=wanted)]), 10)
    assert fetched.groups[0].topics[0].partitions[0].error_code == ErrorCode.UNKNOWN_TOPIC_ID
