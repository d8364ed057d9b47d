"""What the broker does of its own accord, seen by clients."""

from __future__ import annotations

import pytest
from core_broker import FLUSHES, Client, World, make_topic
from core_requests import commit_request, committed

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
