"""What the broker does of its own accord, seen by clients."""

from __future__ import annotations

import pytest
from core_broker import FLUSHES, Client, World, make_topic
from core_requests import commit_request, committed, produce_request

from protocol.messages.configs import (
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsRequestAlterableConfig,
    IncrementalAlterConfigsRequestAlterConfigsResource,
)
from protocol.messages.topics import DeleteTopicsRequest, DeleteTopicState


def delete(client: Client, name: str) -> None:
    answer = client.call(DeleteTopicsRequest(topics=[DeleteTopicState(name=name)]), 6)
    assert answer.responses[0].error_code == 0


@pytest.mark.parametrize("flush", FLUSHES)
def test_topic_deleted_takes_the_offsets_that_groups_committed_on_it(flush):
    world = World(flush)
    client = Client(world)
    for topic in ("t", "kept"):
        make_topic(client, topic, 2)
        for group in ("a", "b", "c"):
            client.call(commit_request(group, {0: 1, 1: 2}, topic), 8)
    delete(client, "t")
    assert [committed(world, group, "t") for group in "abc"] == [{}] * 3
    assert [committed(world, group, "kept") for group in "abc"] == [{0: 1, 1: 2}] * 3


@pytest.mark.parametrize("topic", ["t", "__consumer_offsets"])
def test_topic_whose_settings_change_rolls_its_open_logs_by_the_new_ones(topic):
    world = World(offsets_topic_num_partitions="1")
    client = Client(world)
    make_topic(client, "t", 1)

    def write() -> int:
        for n in range(20):
            client.call(commit_request("g", {0: n}), 8)
            client.call(produce_request("t", 0, b"%d" % n * 50), 9)
        return len(world.broker.directory.logs[topic, 0].segments)

    before = write()
    small = IncrementalAlterConfigsRequestAlterableConfig(
        name="internal.segment.bytes", config_operation=0, value="500"
    )
    resource = IncrementalAlterConfigsRequestAlterConfigsResource(resource_type=2, resource_name=topic, configs=[small])
    answer = client.call(IncrementalAlterConfigsRequest(resources=[resource], validate_only=False), 1)
    assert answer.responses[0].error_code == 0
    assert (before, write() > 4) == (1, True)


def test_topic_made_anew_keeps_what_is_committed_on_it():
    world = World()
    client = Client(world)
    make_topic(client, "t", 1)
    client.call(commit_request("g", {0: 1}), 8)
    delete(client, "t")
    make_topic(client, "t", 1)
    assert committed(world, "g") == {}
    client.call(commit_request("g", {0: 5}), 8)
    assert committed(world, "g") == {0: 5}
