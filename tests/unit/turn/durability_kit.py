"""A broker that has something to lose, and what its answers say."""

from __future__ import annotations

from typing import Any

from core_broker import Client, World, make_topic
from core_requests import commit_request


def ready_world(flush: str, **settings: str) -> tuple[World, Client]:
    """A broker with topic t of 4 partitions, and one client whose group g has committed offset 1 everywhere."""
    world = World(flush, **settings)
    client = Client(world)
    make_topic(client, "t", 4)
    answer = client.call(commit_request("g", dict.fromkeys(range(4), 1)), 8)
    assert codes(answer) == {0}
    world.run()
    return world, client


def codes(answer: Any) -> set[int]:
    return {p.error_code for topic in answer.topics for p in topic.partitions}


def manual(world: World) -> World:
    world.auto_sync = False
    return world


def produced(answer: Any) -> int:
    return answer.responses[0].partition_responses[0].error_code
