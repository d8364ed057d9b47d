"""A broker with a topic, requests whose replies are large, and which replies a client has got."""

from __future__ import annotations

from typing import Any

from core_broker import Client, World, make_topic, split_frames

from protocol.messages.cluster import MetadataRequest
from protocol.messages.offsets import OffsetFetchRequest, OffsetFetchRequestGroup

METADATA = MetadataRequest(topics=None)
ALL = OffsetFetchRequest(groups=[OffsetFetchRequestGroup(group_id="g", topics=None)])


def world_with_topic() -> World:
    world = World("os")
    make_topic(Client(world), "t", 4)
    return world


def correlation_ids(client: Client) -> list[int]:
    return [int.from_bytes(body[:4], "big") for body in split_frames(bytes(client.transport.received))]


def flood(client: Client, request: Any, version: int, count: int) -> None:
    for _ in range(count):
        client.send(request, version)
