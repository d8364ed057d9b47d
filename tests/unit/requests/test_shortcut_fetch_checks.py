"""What the shortcut of Fetch has checked for a partition holds until its leader or the client's epochs change."""

from __future__ import annotations

import pytest
from core_broker import Client, World, count_repeats, make_topic
from core_requests import TOPIC, alter_request, fetch_bytes, fetch_request, produce_request
from trio_kit import Trio

from broker.cluster.acls import ALLOW, LITERAL, READ
from broker.cluster.acls import TOPIC as TOPIC_RESOURCE
from broker.config.authorizer_setting import CLASS
from protocol.api import ApiKey
from protocol.errors import ErrorCode
from protocol.messages.acls import AclCreation, CreateAclsRequest
from protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from protocol.messages.reassign import ElectLeadersRequest, ElectLeadersRequestTopicPartitions

LIMITS = {"max_wait_ms": 0, "min_bytes": 1, "max_bytes": 1 << 20}


class Reader:
    """A client with a session of one partition."""

    def __init__(self, client: Client, **partition: int) -> None:
        self.client, self.epoch, self.session_id = client, 0, 0
        self.session_id = client.call(self.request(**partition), 12).session_id
        assert self.session_id

    def request(self, **partition: int) -> FetchRequest:
        topics = [FetchTopic(topic="t", partitions=[FetchPartition(partition_max_bytes=1 << 20, **partition)])]
        return FetchRequest(
            session_id=self.session_id, session_epoch=self.epoch, topics=topics if partition else [], **LIMITS
        )

    def fetch(self, **partition: int) -> list[int]:
        """The errors of the partitions in the reply. Without fields of the partition: nothing has changed."""
        self.epoch += 1
        answer = self.client.call(self.request(**partition), 12)
        assert answer.error_code == 0
        return [each.error_code for topic in answer.responses for each in topic.partitions]


def trio_and_reader(flush: str = "os", **partition: int) -> tuple[Trio, Reader]:
    """A partition with one record that broker 1 leads, and a session with broker 1 that the shortcut serves."""
    trio = Trio([1, 2], flush)
    assert (trio.info.leader, trio.produce(b"v")) == (1, 0)
    reader = Reader(Client(trio.world, 0), partition=0, **partition)
    taken = count_repeats(trio.world, ApiKey.FETCH)
    for _ in range(3):
        assert reader.fetch() == [0]
    assert taken == [False, True, True]
    return trio, reader


def move(trio: Trio, replicas: list[int]) -> None:
    """Let the first of these brokers lead."""
    trio.reassign(replicas)
    assert trio.elect(0) == 0
    assert trio.info.leader == replicas[0]


def test_session_is_not_served_by_a_broker_that_does_not_lead_any_more():
    trio, reader = trio_and_reader()
    move(trio, [2, 1])
    assert [reader.fetch() for _ in range(3)] == [[ErrorCode.NOT_LEADER_OR_FOLLOWER]] * 3


def test_session_with_an_earlier_leader_epoch_is_fenced_when_the_leader_is_back():
    trio, reader = trio_and_reader(current_leader_epoch=0)
    move(trio, [2, 1])
    move(trio, [1, 2])
    assert [reader.fetch() for _ in range(3)] == [[ErrorCode.FENCED_LEADER_EPOCH]] * 3


def test_session_is_not_served_by_a_leader_whose_election_was_lost():
    """The shortcut has checked the leader by metadata whose number must not come again."""
    trio, _ = trio_and_reader("fsync")
    world = trio.world
    move(trio, [2, 1])
    reader = Reader(Client(world, 1), partition=0)
    assert [reader.fetch() for _ in range(3)] == [[0]] * 3
    move(trio, [1, 2])
    trio.reassign([2, 1])
    world.auto_sync = False
    partitions = [ElectLeadersRequestTopicPartitions(topic="t", partitions=[0])]
    trio.clients[1].send(ElectLeadersRequest(election_type=0, topic_partitions=partitions, timeout_ms=1000), 2)
    for _ in range(2):
        reader.epoch += 1
        reader.client.send(reader.request(), 12)
        world.run()
    version = world.broker.metadata.version
    assert (trio.info.leader, reader.client.replies()) == (2, []), "the replies wait for the disk"
    world.sync(fail=True)
    world.auto_sync = True
    world.run()
    assert trio.info.leader == 1
    Client(world).call(alter_request(TOPIC, "t", {"retention.ms": "1"}), 1)
    assert world.broker.metadata.version > version
    assert [reader.fetch() for _ in range(3)] == [[ErrorCode.NOT_LEADER_OR_FOLLOWER]] * 3


@pytest.mark.parametrize("min_bytes", [1, 100])
@pytest.mark.parametrize("in_session", [False, True])
def test_parked_fetch_is_answered_when_the_leader_moves(min_bytes: int, in_session: bool):
    trio, reader = trio_and_reader()
    trio.reassign([2, 1])  # broker 1 leads until an election, which then changes nothing else
    request = fetch_request("t", 0, 1, max_wait_ms=5000, min_bytes=min_bytes)
    if in_session:
        reader.fetch(partition=0, fetch_offset=1)
    taken = count_repeats(trio.world, ApiKey.FETCH)
    for is_known in (False, True):
        if in_session:
            reader.epoch += 1
            request = reader.request()
            request.max_wait_ms, request.min_bytes = 5000, min_bytes
        reader.client.send(request, 12)
        trio.world.run()
        assert (reader.client.replies(), taken[-1]) == ([], is_known)
        if not is_known:
            trio.world.advance(5000)
            assert len(reader.client.replies()) == 1
    assert (trio.elect(0), trio.info.leader) == (0, 2)
    (answer,) = reader.client.replies()
    assert answer.responses[0].partitions[0].error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER


def test_log_that_is_out_of_use_is_opened_again_for_a_repeat():
    client = Client(World("os"))
    make_topic(client)
    client.call(produce_request("t", 0, b"v"), 9)
    broker = client.world.broker
    taken = count_repeats(client.world, ApiKey.FETCH)
    for is_served in (False, True, True):
        answer = client.call(fetch_request("t", 0, 0), 12)
        assert (answer.responses[0].partitions[0].error_code, len(fetch_bytes(answer))) == (0, 69)
        assert taken[-1] is is_served
        broker.partitions.get(broker.metadata.topics["t"], 0).log.give_up("is given up")


def test_partition_that_joins_a_session_is_denied_to_repeats_too():
    world = World("os", authorizer_class_name=CLASS, super_users="User:admin")
    admin, client = Client(world), Client(world)
    admin.connection.principal, client.connection.principal = "User:admin", "User:alice"
    for name in ("t", "u"):
        make_topic(admin, name)
    allowed = AclCreation(
        resource_type=TOPIC_RESOURCE,
        resource_name="t",
        resource_pattern_type=LITERAL,
        principal="User:alice",
        host="*",
        operation=READ,
        permission_type=ALLOW,
    )
    assert admin.call(CreateAclsRequest(creations=[allowed]), 3).results[0].error_code == 0
    reader = Reader(client, partition=0)
    taken = count_repeats(world, ApiKey.FETCH)
    assert [reader.fetch() for _ in range(3)] == [[]] * 3
    assert taken == [False, True, True]
    reader.epoch += 1
    request = reader.request(partition=0)
    request.topics[0].topic = "u"
    assert client.call(request, 12).responses[0].partitions[0].error_code == ErrorCode.TOPIC_AUTHORIZATION_FAILED
    assert [reader.fetch() for _ in range(2)] == [[ErrorCode.TOPIC_AUTHORIZATION_FAILED]] * 2


@pytest.mark.parametrize(
    ("epochs", "code"),
    [
        ({"current_leader_epoch": 9}, ErrorCode.UNKNOWN_LEADER_EPOCH),
        ({"current_leader_epoch": -1, "last_fetched_epoch": 5}, ErrorCode.OFFSET_OUT_OF_RANGE),
    ],
)
def test_epochs_that_a_fetch_names_hold_for_those_that_name_nothing(epochs: dict[str, int], code: ErrorCode):
    client = Client(World("os"))
    make_topic(client)
    client.call(produce_request("t", 0, b"v"), 9)
    reader = Reader(client, partition=0, fetch_offset=1)
    assert [reader.fetch(), reader.fetch()] == [[], []]
    assert reader.fetch(partition=0, fetch_offset=1, **epochs) == [code]
    assert [reader.fetch(), reader.fetch()] == [[code], [code]]
    reader.fetch(partition=0, fetch_offset=1)
    taken = count_repeats(client.world, ApiKey.FETCH)
    assert [reader.fetch(), reader.fetch(), taken] == [[], [], [True, True]]
