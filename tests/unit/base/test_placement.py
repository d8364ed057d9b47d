"""Groups lie where Kafka's own tools look for them."""

from __future__ import annotations

import pytest
from core_broker import Client, World, make_topic
from core_requests import commit_request

from broker.base.placement import java_string_hash, shard_index
from protocol.messages.cluster import FindCoordinatorRequest


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("", 0),
        ("g", 103),
        ("polygenelubricants", -(2**31)),  # the one whose absolute value Java cannot tell
        ("\U0001f600", 0xD83D * 31 + 0xDE00),  # two UTF-16 units, not one code point
        ("é", 0xE9),
        ("\ud800", 0xD800),  # half a pair still has a hash
    ],
)
def test_hash_is_that_of_java_strings(text, value):
    assert java_string_hash(text) == value


@pytest.mark.parametrize(
    ("key", "index"), [("g", 3), ("my-group", 12), ("polygenelubricants", 0), ("ünï-😀", 37), ("tx-1", 20)]
)
def test_index_of_fifty_is_that_of_apache_kafka(key, index):
    assert shard_index(key, 50) == index


def test_index_is_within_the_partitions_for_any_number_of_them():
    for shards in (1, 2, 3, 7, 50, 1000):
        for key in ("", "g", "polygenelubricants", "ünï-😀", "a" * 300):
            assert 0 <= shard_index(key, shards) < shards


def test_commit_lands_in_the_partition_that_the_hash_names():
    world = World("os", offsets_topic_num_partitions="50")
    client = Client(world)
    make_topic(client)
    for group_id, index in (("g", 3), ("my-group", 12), ("polygenelubricants", 0), ("ünï-😀", 37)):
        client.call(commit_request(group_id, {0: 1}), 8)
        assert world.broker.groups.shards[index].log.end_offset == 1
        assert world.files.exists(f"/data/__consumer_offsets-{index}")


def test_coordinator_named_to_clients_is_the_leader_of_the_partition():
    world = World("os", brokers=3, offsets_topic_num_partitions="50")
    client = Client(world)
    partitions = None
    for group_id, index in (("g", 3), ("my-group", 12), ("polygenelubricants", 0), ("ünï-😀", 37)):
        answer = client.call(FindCoordinatorRequest(key_type=0, coordinator_keys=[group_id]), 4)
        partitions = world.broker.metadata.topics["__consumer_offsets"].partitions
        assert answer.coordinators[0].node_id == partitions[index].leader
    assert len({partition.leader for partition in partitions}) == 3
