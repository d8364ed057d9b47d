"""What a run of tests has created: removed by its list, and kept on it where the cluster refuses."""

from __future__ import annotations

import asyncio
import json
from types import SimpleNamespace
from typing import Any

import pytest

from broker.asks.ask import Places, routed
from broker.shell.asking import answer_of
from broker.shell.proxy.created import Created
from protocol.api import ApiKey
from protocol.errors import ErrorCode
from protocol.messages.cluster import Coordinator, FindCoordinatorResponse, MetadataResponse, MetadataResponseTopic
from protocol.messages.group_admin import (
    DeletableGroupResult,
    DeleteGroupsResponse,
    ListedGroup,
    ListGroupsResponse,
)
from protocol.messages.topics import (
    CreatableTopicResult,
    CreateTopicsResponse,
    DeletableTopicResult,
    DeleteTopicsResponse,
)
from storage.files.env import SystemFiles

PLACE = ("node", 9092)
REFUSED = ErrorCode.POLICY_VIOLATION


class Cluster:
    """An upstream cluster with topics by id and groups; it refuses to remove what is in `refused`."""

    def __init__(self) -> None:
        self.cluster_id = "c"
        self.places = {1: PLACE}
        self.topics: dict[bytes, str] = {}
        self.groups: set[str] = set()
        self.refused: set[str] = set()
        self.is_silent = False

    def create(self, created: Created, name: str) -> None:
        topic_id = (len(self.topics) + 1).to_bytes(16, "big")
        self.topics[topic_id] = name
        rows = [CreatableTopicResult(name=name, topic_id=topic_id)]
        created.answered(CreateTopicsResponse(topics=rows))

    async def answer(self, ask: Any) -> Any:
        return await answer_of(routed(ask, Places()), self._ask)

    async def _ask(self, request: Any, version: int, node_id: int | None) -> Any:
        if self.is_silent:
            raise TimeoutError
        if request.API_KEY == ApiKey.FIND_COORDINATOR:
            found = [Coordinator(key=key, node_id=1, host=PLACE[0], port=PLACE[1]) for key in request.coordinator_keys]
            return FindCoordinatorResponse(coordinators=found)
        if request.API_KEY in (ApiKey.LIST_GROUPS, ApiKey.DELETE_GROUPS):
            assert node_id == 1
            return self._of_groups(request)
        if request.API_KEY == ApiKey.METADATA:
            rows = [MetadataResponseTopic(name=name, topic_id=topic_id) for topic_id, name in self.topics.items()]
            return MetadataResponse(topics=rows)
        found = []
        for each in request.topics:
            code = ErrorCode.NONE
            if self.topics.get(each.topic_id) in self.refused:
                code = REFUSED
            elif self.topics.pop(each.topic_id, None) is None:
                code = ErrorCode.UNKNOWN_TOPIC_ID
            found.append(DeletableTopicResult(topic_id=each.topic_id, error_code=code))
        return DeleteTopicsResponse(responses=found)

    def _of_groups(self, request: Any) -> Any:
        if request.API_KEY == ApiKey.LIST_GROUPS:
            return ListGroupsResponse(groups=[ListedGroup(group_id=name) for name in sorted(self.groups)])
        rows = []
        for name in request.groups_names:
            code = ErrorCode.NON_EMPTY_GROUP if name in self.refused else ErrorCode.NONE
            self.groups -= set() if code else {name}
            rows.append(DeletableGroupResult(group_id=name, error_code=code))
        return DeleteGroupsResponse(results=rows)


@pytest.fixture
def world(tmp_path):
    cluster = Cluster()
    runs: list[Created] = []

    def begin(run: str) -> Created:
        runs.append(Created(SystemFiles(), f"{tmp_path}/{run}", cluster))  # type: ignore[arg-type]  # as Upstream
        return runs[-1]

    return SimpleNamespace(cluster=cluster, begin=begin, folder=tmp_path)


def killed(run: Created) -> None:
    """Its process has died: the system has dropped the lock."""
    run._lock.release()


def listed(world: Any, run: str) -> list[str]:
    return list(json.loads((world.folder / run / "topics.json").read_text())["topics"].values())


def test_what_cannot_be_removed_stays_on_the_list_and_later_runs_try_it_again(world):
    cluster, dead = world.cluster, world.begin("dead")
    for name in ("stays-dead", "goes-dead"):
        cluster.create(dead, name)
    killed(dead)
    cluster.refused = {"stays-dead"}
    for name in ("second", "third"):
        run = world.begin(name)
        asyncio.run(run.remove_of_dead())
        assert listed(world, "dead") == ["stays-dead"]
        left = asyncio.run(run.remove())["left"]
        assert left[:1] == ["topic stays-dead: POLICY_VIOLATION (of run dead)"]
        run.close()
    cluster.refused.clear()
    run = world.begin("fourth")
    asyncio.run(run.remove_of_dead())
    assert cluster.topics == {}
    assert asyncio.run(run.remove())["left"] == []
    run.close()
    assert list(world.folder.iterdir()) == []


def test_a_group_that_is_in_use_keeps_the_list_of_its_run(world):
    cluster, dead = world.cluster, world.begin("dead")
    cluster.groups = {"used-dead", "other"}
    cluster.refused = {"used-dead"}
    assert asyncio.run(dead.remove()) == {"removed": [], "left": ["group used-dead: NON_EMPTY_GROUP"]}
    dead.close()
    cluster.refused.clear()
    run = world.begin("next")
    asyncio.run(run.remove_of_dead())
    assert cluster.groups == {"other"}
    assert [each.name for each in world.folder.iterdir()] == ["next"]


def test_a_cluster_that_does_not_answer_leaves_the_list_as_it_is(world):
    cluster, dead = world.cluster, world.begin("dead")
    cluster.create(dead, "a-dead")
    killed(dead)
    cluster.is_silent = True
    run = world.begin("next")
    asyncio.run(run.remove_of_dead())
    assert listed(world, "dead") == ["a-dead"]
    assert asyncio.run(run.remove())["left"][-2:] == [
        "topics a-dead: TimeoutError (of run dead)",
        "groups at node:9092: TimeoutError (of run dead)",
    ]


def test_the_list_of_another_cluster_stays(world):
    killed(world.begin("dead"))
    world.cluster.cluster_id = "another"
    world.cluster.groups = {"g-dead"}
    asyncio.run(world.begin("next").remove_of_dead())
    assert world.cluster.groups == {"g-dead"}
    assert (world.folder / "dead").exists()


def test_a_topic_made_by_a_request_is_told_of_and_keeps_no_list(world):
    run = world.begin("run")
    world.cluster.topics[b"x" * 16] = "auto-run"
    (left,) = asyncio.run(run.remove())["left"]
    assert left.startswith("topic auto-run: made by a request for it")
    run.close()
    assert list(world.folder.iterdir()) == []
