"""A simple group whose last offset is gone stays, Empty, until the next check of expired offsets, as in Kafka."""

from __future__ import annotations

import pytest
from core_broker import Client, World, make_topic
from core_requests import commit_request
from stepped_kit import let_load_at_once
from txn_kit import Producer

from broker.coordinator.offsets import imaging
from protocol.errors import ErrorCode
from protocol.messages.classic_group import JoinGroupRequest, JoinGroupRequestProtocol
from protocol.messages.consumer_group import ConsumerGroupHeartbeatRequest
from protocol.messages.group_admin import DeleteGroupsRequest, DescribeGroupsRequest, ListGroupsRequest
from protocol.messages.offsets import OffsetDeleteRequest, OffsetDeleteRequestPartition, OffsetDeleteRequestTopic
from protocol.messages.topics import DeleteTopicsRequest

SETTINGS = {"offsets_topic_num_partitions": "1"}
CHECK_MS = 600_000  # offsets.retention.check.interval.ms
TOO_LONG = "x" * 4097
NOT_FOUND = ErrorCode.GROUP_ID_NOT_FOUND


@pytest.fixture
def client() -> Client:
    client = Client(World("os", **SETTINGS))
    make_topic(client, partitions=2)
    return client


def commit(client: Client, partition: int = 0, group_id: str = "g", **fields: object) -> int:
    answer = client.call(commit_request(group_id, {partition: 5}, **fields), 8)
    return int(answer.topics[0].partitions[0].error_code)


def delete_offset(client: Client, partition: int = 0) -> int:
    row = OffsetDeleteRequestTopic(name="t", partitions=[OffsetDeleteRequestPartition(partition_index=partition)])
    return int(client.call(OffsetDeleteRequest(group_id="g", topics=[row]), 0).error_code)


def delete_group(client: Client) -> int:
    return int(client.call(DeleteGroupsRequest(groups_names=["g"]), 2).results[0].error_code)


def told(client: Client) -> str:
    """The group's state, which DescribeGroups and ListGroups agree about."""
    described = client.call(DescribeGroupsRequest(groups=["g"]), 6).groups[0]
    listed = {group.group_id: group.group_state for group in client.call(ListGroupsRequest(), 5).groups}
    assert described.group_state == listed.get("g", "Dead")
    assert described.error_code == (NOT_FOUND if described.group_state == "Dead" else 0)
    return str(described.group_state)


def emptied(client: Client) -> None:
    """A simple group whose only offset was deleted."""
    assert commit(client) == 0
    assert delete_offset(client) == 0


def test_group_whose_last_offset_is_deleted_stays_until_it_is_deleted(client):
    emptied(client)
    assert told(client) == "Empty"
    assert delete_offset(client) == 0
    assert delete_group(client) == 0
    assert told(client) == "Dead"
    assert delete_group(client) == delete_offset(client) == NOT_FOUND


def test_group_whose_last_offset_is_deleted_is_gone_at_the_next_check(client):
    emptied(client)
    client.world.advance(CHECK_MS - 1000)
    assert told(client) == "Empty"
    client.world.advance(1000)
    assert told(client) == "Dead"
    assert delete_group(client) == NOT_FOUND


def test_check_leaves_a_group_that_has_committed_again(client):
    emptied(client)
    assert commit(client, 1) == 0
    client.world.advance(CHECK_MS + 1)
    assert told(client) == "Empty"
    assert delete_offset(client, 1) == 0
    assert delete_group(client) == 0
    assert told(client) == "Dead"


def test_group_of_an_aborted_transaction_stays(client):
    producer = Producer(client)
    producer.init()
    assert producer.send_offsets({0: 1}) == {0: 0}
    assert producer.end(commit=False) == 0
    assert told(client) == "Empty"
    assert delete_group(client) == 0
    assert told(client) == "Dead"


def test_group_of_a_deleted_topic_stays(client):
    assert commit(client) == 0
    client.call(DeleteTopicsRequest(topic_names=["t"], timeout_ms=1000), 5)
    assert told(client) == "Empty"
    client.world.advance(CHECK_MS + 1)
    assert told(client) == "Dead"


def test_group_of_a_refused_commit_is_there_for_writers_at_once_and_for_readers_after_the_next_write(client):
    """Kafka's coordinator reads what is committed; a group without a record becomes that with the next record."""
    assert commit(client, metadata=TOO_LONG) == ErrorCode.OFFSET_METADATA_TOO_LARGE
    assert told(client) == "Dead"
    assert commit(client, generation_id_or_member_epoch=1) == ErrorCode.UNKNOWN_MEMBER_ID
    assert commit(client, group_id="other") == 0
    assert told(client) == "Empty"
    assert delete_group(client) == 0
    assert told(client) == "Dead"
    assert commit(client, generation_id_or_member_epoch=1) == ErrorCode.ILLEGAL_GENERATION


def test_group_of_a_refused_commit_can_be_deleted_at_once(client):
    assert commit(client, metadata=TOO_LONG) == ErrorCode.OFFSET_METADATA_TOO_LARGE
    assert delete_group(client) == 0
    assert delete_group(client) == NOT_FOUND


def test_group_of_a_refused_transactional_commit_is_there(client):
    producer = Producer(client)
    producer.init()
    request = producer.offsets_request({0: 1})
    request.topics[0].partitions[0].committed_metadata = TOO_LONG
    answer = client.call(request, 5).topics[0].partitions[0]
    assert answer.error_code == ErrorCode.OFFSET_METADATA_TOO_LARGE
    assert told(client) == "Dead"
    assert producer.end(commit=False) == 0
    assert told(client) == "Empty"


def test_group_of_a_refused_commit_is_gone_at_the_next_check_and_after_a_restart(client):
    assert commit(client, metadata=TOO_LONG) == ErrorCode.OFFSET_METADATA_TOO_LARGE
    again = Client(client.world.crash())
    assert delete_group(again) == NOT_FOUND
    assert commit(again, metadata=TOO_LONG) == ErrorCode.OFFSET_METADATA_TOO_LARGE
    again.world.advance(CHECK_MS + 1)
    assert delete_group(again) == NOT_FOUND


def test_refused_commit_of_no_known_partition_makes_no_group(client):
    assert commit(client, 9, metadata=TOO_LONG) == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert delete_group(client) == NOT_FOUND


def test_restart_finds_the_group_until_the_first_check(client):
    """As in Kafka: the records of its offset make the group, and only the tombstone of a check takes it away."""
    emptied(client)
    again = Client(client.world.crash())
    assert told(again) == "Empty"
    again.world.advance(CHECK_MS + 1)
    assert told(again) == "Dead"
    assert told(Client(again.world.crash())) == "Dead"


def test_restart_does_not_find_a_simple_group_that_was_deleted(client):
    assert commit(client) == 0
    assert delete_group(client) == 0
    assert told(client) == "Dead"
    assert told(Client(client.world.crash())) == "Dead"


def test_image_holds_the_group(client, monkeypatch):
    monkeypatch.setattr(imaging, "LEAST_RECORDS", 1)
    let_load_at_once(monkeypatch, 0)
    for group_id in ("g", "ünï\0"):
        assert commit(client, group_id=group_id) == 0
        row = OffsetDeleteRequestTopic(name="t", partitions=[OffsetDeleteRequestPartition(partition_index=0)])
        assert client.call(OffsetDeleteRequest(group_id=group_id, topics=[row]), 0).error_code == 0
    shard = client.world.broker.groups.shards[0]
    for _ in imaging.take_image(shard):
        client.world.run()
    again = Client(client.world.crash())
    assert told(again) == "Empty"
    restarted = again.world.broker.groups.shards[0]
    assert restarted.image_offset == shard.log.end_offset
    assert restarted.machine.offsets.emptied == {"g", "ünï\0"}
    assert delete_group(again) == 0
    assert told(Client(again.world.crash())) == "Dead"


def test_group_that_is_joined_afterwards_is_that_group_alone(client):
    emptied(client)
    protocols = [JoinGroupRequestProtocol(name="range", metadata=b"\0\0\0\0\0\0\xff\xff\xff\xff")]
    request = JoinGroupRequest(
        group_id="g",
        session_timeout_ms=6000,
        rebalance_timeout_ms=6000,
        protocol_type="consumer",
        protocols=protocols,
        group_instance_id="i",
    )
    assert client.call(request, 5).error_code == 0
    assert told(client) == "CompletingRebalance"
    assert [group.group_id for group in client.call(ListGroupsRequest(), 5).groups] == ["g"]
    assert delete_group(client) == ErrorCode.NON_EMPTY_GROUP


def test_consumer_group_made_of_it_is_gone_when_it_is_deleted(client):
    emptied(client)
    member = {"group_id": "g", "member_id": "m", "rebalance_timeout_ms": 5000}
    request = ConsumerGroupHeartbeatRequest(**member, subscribed_topic_names=["t"], topic_partitions=[])
    assert client.call(request, 1).error_code == 0
    assert client.call(ConsumerGroupHeartbeatRequest(**member, member_epoch=-1), 1).error_code == 0
    assert commit(client) == delete_offset(client) == 0
    assert delete_group(client) == 0
    assert told(client) == "Dead"
    assert told(Client(client.world.crash())) == "Dead"
