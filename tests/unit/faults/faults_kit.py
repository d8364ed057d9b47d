"""A broker with faults, one client of it, and the requests that tests send."""

from __future__ import annotations

from typing import Any

from core_broker import Client, World, make_topic
from core_requests import commit_request, committed


class Bench:
    """A broker with a topic, and a client."""

    def __init__(self, flush: str = "os") -> None:
        self.world = World(flush)
        self.admin = Client(self.world)
        self.topic_id = make_topic(self.admin, "t", 3)
        self.client = Client(self.world)
        self.faults = self.world.broker.faults

    def set(self, fault: str, **words: Any) -> Any:
        return self.faults.add({"fault": fault, **words})

    def commit(self, offset: int, group: str = "g", **fields: Any) -> Any:
        return self.client.send(commit_request(group, {0: offset}, **fields), 8)

    def answers(self) -> list[Any]:
        self.world.run()
        return self.client.replies()

    def offset(self, group: str = "g") -> int | None:
        return committed(self.world, group).get(0)


def code_of(answer: Any) -> int:
    return int(answer.topics[0].partitions[0].error_code)
