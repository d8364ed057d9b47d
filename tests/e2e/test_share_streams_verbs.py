"""A member of a share or a streams group is expelled, and such a group rebalances: what heartbeats meet."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from typing import Any

import pytest
from clientwork import until
from cluster_kit import Wire

from momus import Broker, Cluster
from momus.control import ControlError
from protocol.errors import ErrorCode
from protocol.messages.share_group import ShareGroupHeartbeatRequest
from protocol.messages.streams_group import (
    StreamsGroupHeartbeatRequest,
    StreamsGroupHeartbeatRequestSubtopology,
    StreamsGroupHeartbeatRequestTopology,
)

KINDS = ["share", "streams"]


@pytest.fixture(scope="module")
def process() -> Iterator[Broker]:
    with Broker() as broker:
        yield broker


@pytest.fixture
def cluster(process: Broker) -> Iterator[Cluster]:
    intervals = {f"group.{kind}.assignment.interval.ms": 0 for kind in KINDS}
    with process.create_cluster(config={"group.streams.initial.rebalance.delay.ms": 0, **intervals}) as cluster:
        cluster.create_topic("t", 4)
        yield cluster


class Member:
    """A member that sends a heartbeat when it is told to. It owns what it was assigned last."""

    def __init__(self, wire: Wire, kind: str, member_id: str, instance_id: str | None = None) -> None:
        self.member_id, self.epoch = member_id, 0
        self.places: list[Any] = []
        self._wire, self._kind, self._instance_id = wire, kind, instance_id
        until(lambda: self.beat() == 0 and bool(self.places), "it has partitions")

    def beat(self) -> int:
        """The error of a heartbeat."""
        words: dict[str, Any] = {"group_id": "g", "member_id": self.member_id, "member_epoch": self.epoch}
        if self._kind == "share":
            answer = self._wire.call(
                ShareGroupHeartbeatRequest(**words, subscribed_topic_names=None if self.epoch else ["t"]), 1
            )
            if answer.assignment is not None:
                self.places = [(each.topic_id, each.partitions) for each in answer.assignment.topic_partitions]
        else:
            parts = [StreamsGroupHeartbeatRequestSubtopology(subtopology_id="0", source_topics=["t"])]
            request = StreamsGroupHeartbeatRequest(
                **words,
                instance_id=self._instance_id,
                rebalance_timeout_ms=-1 if self.epoch else 60_000,
                topology=None if self.epoch else StreamsGroupHeartbeatRequestTopology(epoch=0, subtopologies=parts),
                process_id=None if self.epoch else self.member_id,
                client_tags=None if self.epoch else [],
                active_tasks=[] if not self.epoch else self.places,
                standby_tasks=[],
                warmup_tasks=[],
            )
            answer = self._wire.call(request, 0)
            if answer.active_tasks is not None:
                self.places = answer.active_tasks
        if not answer.error_code:
            self.epoch = answer.member_epoch
        return int(answer.error_code)


def details(cluster: Cluster) -> Any:
    return cluster.control.ask("GET", f"{cluster.control.prefix}/groups/g/details")


@pytest.mark.parametrize("kind", KINDS)
def test_member_that_is_expelled_meets_unknown_member_id_and_the_other_gets_what_it_had(
    cluster: Cluster, kind: str
) -> None:
    with closing(Wire(cluster.bootstrap_servers)) as wire:
        first, second = Member(wire, kind, "m-1"), Member(wire, kind, "m-2") if kind == "share" else None
        with pytest.raises(ControlError, match="group g has no member m-9; there are m-1"):
            cluster.expel_member("g", "m-9")
        cluster.expel_member("g", "m-1")
        assert first.beat() == ErrorCode.UNKNOWN_MEMBER_ID
        assert [each["member"] for each in details(cluster)["members"]] == (["m-2"] if second else [])
        if second is not None:
            cluster.wait_for_group("g", members=1)
            until(lambda: second.beat() == 0 and sum(len(each[1]) for each in second.places) == 4, "it has all")
        again = Member(wire, kind, "m-3")
        assert again.places


def test_static_member_of_a_streams_group_is_expelled_by_its_instance_id(cluster: Cluster) -> None:
    with closing(Wire(cluster.bootstrap_servers)) as wire:
        member = Member(wire, "streams", "m-1", "one")
        cluster.expel_member("g", "one")
        assert member.beat() == ErrorCode.UNKNOWN_MEMBER_ID
        assert details(cluster)["members"] == []


@pytest.mark.parametrize("kind", KINDS)
def test_rebalance_gives_members_the_next_epoch_and_what_they_had(cluster: Cluster, kind: str) -> None:
    with closing(Wire(cluster.bootstrap_servers)) as wire:
        member = Member(wire, kind, "m-1")
        until(lambda: member.beat() == 0 and member.epoch == details(cluster)["group_epoch"], "it is at rest")
        before, had = member.epoch, repr(member.places)
        assert cluster.rebalance("g") == ["m-1"]
        assert details(cluster)["group_epoch"] == before + 1
        until(lambda: member.beat() == 0 and member.epoch == before + 1, "it has the next epoch")
        assert repr(member.places) == had
        assert cluster.wait_for_group("g", members=1) == ["m-1"]
        cluster.expel_member("g", "m-1")
        with pytest.raises(ControlError, match="group g has no members: there is nothing to rebalance"):
            cluster.rebalance("g")
