"""What a node answers that neither coordinates the group nor has begun the fetch session, in Kafka's order."""

from __future__ import annotations

import pytest
from core_broker import Client, World, make_topic

from protocol.errors import ErrorCode as E
from protocol.messages.classic_group import JoinGroupRequest, JoinGroupRequestProtocol, SyncGroupRequest
from protocol.messages.cluster import FindCoordinatorRequest
from protocol.messages.consumer_group import ConsumerGroupHeartbeatRequest
from protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from protocol.messages.topics import CreatableReplicaAssignment, CreatableTopic, CreateTopicsRequest
from protocol.messages.transactions import WritableTxnMarker, WritableTxnMarkerTopic, WriteTxnMarkersRequest

JOIN = {"session_timeout_ms": 10_000, "rebalance_timeout_ms": 10_000, "protocol_type": "consumer"}


@pytest.fixture
def world() -> World:
    return World("os", brokers=3)


@pytest.fixture
def stranger(world: World) -> Client:
    """A connection to a node that does not coordinate the group `g`."""
    found = Client(world).call(FindCoordinatorRequest(coordinator_keys=["g"]), 4).coordinators[0].node_id
    return Client(world, next(at for at, node in enumerate(world.broker.nodes.up) if node.node_id != found))


@pytest.mark.parametrize(
    ("fields", "code"),
    [
        ({"member_epoch": 0, "rebalance_timeout_ms": -1, "topic_partitions": []}, E.INVALID_REQUEST),
        ({"member_epoch": 1, "server_assignor": "mine"}, E.UNSUPPORTED_ASSIGNOR),
        ({"member_epoch": 1}, E.NOT_COORDINATOR),
    ],
)
def test_heartbeat_with_wrong_fields_is_refused_for_them(stranger: Client, fields: dict, code: E) -> None:
    request = ConsumerGroupHeartbeatRequest(group_id="g", member_id="m", **fields)
    assert stranger.call(request, 1).error_code == code


@pytest.mark.parametrize(("session_ms", "code"), [(1, E.INVALID_SESSION_TIMEOUT), (10_000, E.NOT_COORDINATOR)])
def test_join_with_a_wrong_session_timeout_is_refused_for_it(stranger: Client, session_ms: int, code: E) -> None:
    protocols = [JoinGroupRequestProtocol(name="range", metadata=b"")]
    request = JoinGroupRequest(
        group_id="g", member_id="m", protocols=protocols, **{**JOIN, "session_timeout_ms": session_ms}
    )
    answer = stranger.call(request, 5)
    assert (answer.error_code, answer.member_id) == (code, "m" if code == E.INVALID_SESSION_TIMEOUT else "")


@pytest.mark.parametrize(("name", "code"), [(None, E.INCONSISTENT_GROUP_PROTOCOL), ("range", E.NOT_COORDINATOR)])
def test_sync_without_its_protocol_is_refused_for_it(stranger: Client, name: str | None, code: E) -> None:
    request = SyncGroupRequest(
        group_id="g", generation_id=1, member_id="m", protocol_type="consumer", protocol_name=name
    )
    assert stranger.call(request, 5).error_code == code


def test_fetch_session_is_known_to_the_node_that_began_it_alone(world: World) -> None:
    one, other = Client(world, 0), Client(world, 1)
    topic_id = make_topic(one, "t", 1)
    leader = world.broker.metadata.topics["t"].partitions[0].leader
    nodes = [node.node_id for node in world.broker.nodes.up]
    one, other = Client(world, nodes.index(leader)), Client(world, (nodes.index(leader) + 1) % len(nodes))
    wanted = [FetchTopic(topic="t", topic_id=topic_id, partitions=[FetchPartition(partition_max_bytes=100)])]
    begun = one.call(FetchRequest(session_epoch=0, topics=wanted), 13)
    assert begun.session_id > 0

    def next_of(client: Client, epoch: int) -> int:
        return client.call(FetchRequest(session_id=begun.session_id, session_epoch=epoch), 13).error_code

    for epoch in (1, 2):  # the second time by the shortcut
        assert next_of(other, epoch) == E.FETCH_SESSION_ID_NOT_FOUND
        assert next_of(one, epoch) == 0
    other.call(FetchRequest(session_id=begun.session_id, session_epoch=-1), 13)  # ends no session of another node
    assert next_of(one, 3) == 0
    one.call(FetchRequest(session_id=begun.session_id, session_epoch=-1), 13)
    assert next_of(one, 4) == E.FETCH_SESSION_ID_NOT_FOUND


@pytest.mark.parametrize(
    ("replicas", "code"), [([1, 0], E.NOT_LEADER_OR_FOLLOWER), ([1], E.UNKNOWN_TOPIC_OR_PARTITION)]
)
def test_marker_for_a_partition_of_other_nodes(world: World, replicas: list[int], code: E) -> None:
    ids = [node.node_id for node in world.broker.nodes.up]
    placed = CreatableReplicaAssignment(partition_index=0, broker_ids=[ids[at] for at in replicas])
    topic = CreatableTopic(name="t", num_partitions=-1, replication_factor=-1, assignments=[placed])
    client = Client(world)
    assert client.call(CreateTopicsRequest(topics=[topic], timeout_ms=1000), 7).topics[0].error_code == 0
    marker = WritableTxnMarker(
        producer_id=5, producer_epoch=0, topics=[WritableTxnMarkerTopic(name="t", partition_indexes=[0])]
    )
    answer = client.call(WriteTxnMarkersRequest(markers=[marker]), 1)
    assert [row.error_code for row in answer.markers[0].topics[0].partitions] == [code]
