"""A streams application without Java: its topology, its heartbeats, and a broker in this process to send them to."""

from __future__ import annotations

from types import TracebackType
from typing import Any

from core_broker import Client, World, make_topic

from broker.coordinator.groups.streams.group import StreamsGroup
from protocol.messages.group_admin import ListGroupsRequest
from protocol.messages.offsets import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from protocol.messages.streams_group import (
    StreamsGroupDescribeRequest,
    StreamsGroupHeartbeatRequest,
    StreamsGroupHeartbeatRequestCopartitionGroup,
    StreamsGroupHeartbeatRequestEndpoint,
    StreamsGroupHeartbeatRequestKeyValue,
    StreamsGroupHeartbeatRequestSubtopology,
    StreamsGroupHeartbeatRequestTaskIds,
    StreamsGroupHeartbeatRequestTopicInfo,
    StreamsGroupHeartbeatRequestTopology,
)

Tasks = dict[str, list[int]]


def topic_info(name: str, partitions: int = 0, **configs: str) -> StreamsGroupHeartbeatRequestTopicInfo:
    """An internal topic; 0 partitions: as many as it takes."""
    return StreamsGroupHeartbeatRequestTopicInfo(
        name=name,
        partitions=partitions,
        topic_configs=[StreamsGroupHeartbeatRequestKeyValue(key=k, value=v) for k, v in configs.items()],
    )


def subtopology(
    subtopology_id: str,
    *sources: str,
    repartition: tuple[Any, ...] = (),
    sinks: tuple[str, ...] = (),
    changelogs: tuple[Any, ...] = (),
    together: tuple[tuple[list[int], list[int]], ...] = (),
    regex: tuple[str, ...] = (),
) -> StreamsGroupHeartbeatRequestSubtopology:
    """One subtopology; `together`: copartition groups as indexes of sources and of repartition topics."""
    return StreamsGroupHeartbeatRequestSubtopology(
        subtopology_id=subtopology_id,
        source_topics=list(sources),
        source_topic_regex=list(regex),
        repartition_source_topics=list(repartition),
        repartition_sink_topics=list(sinks),
        state_changelog_topics=list(changelogs),
        copartition_groups=[
            StreamsGroupHeartbeatRequestCopartitionGroup(source_topics=s, repartition_source_topics=r)
            for s, r in together
        ],
    )


def topology(*subtopologies: Any, epoch: int = 0) -> StreamsGroupHeartbeatRequestTopology:
    """A whole topology."""
    return StreamsGroupHeartbeatRequestTopology(epoch=epoch, subtopologies=list(subtopologies))


def tasks(of: Tasks) -> list[StreamsGroupHeartbeatRequestTaskIds]:
    """Tasks as a request has them."""
    return [StreamsGroupHeartbeatRequestTaskIds(subtopology_id=s, partitions=p) for s, p in of.items()]


def as_dict(task_ids: Any) -> Tasks | None:
    """Tasks as a reply has them."""
    return None if task_ids is None else {t.subtopology_id: t.partitions for t in task_ids}


def statuses(reply: Any) -> list[int]:
    """What a reply that is no error says is wrong."""
    assert reply.error_code == 0, reply.error_message
    return [status.status_code for status in reply.status]


STATELESS = topology(subtopology("0", "in"))


class Member:
    """One stream thread: remembers its epoch and its tasks, and owns what it was last given."""

    def __init__(
        self,
        world: StreamsWorld,
        member_id: str,
        process_id: str,
        *,
        group: str = "g",
        shape: Any = None,
        endpoint: tuple[str, int] | None = None,
        instance: str | None = None,
        version: int = 1,
    ) -> None:
        self.world = world
        self.member_id = member_id
        self.process_id = process_id
        self.group = group
        self.shape = shape
        self.endpoint = endpoint
        self.instance = instance
        self.version = version
        self.epoch = 0
        self.active: Tasks = {}
        self.standby: Tasks = {}
        self.endpoint_epoch = 0

    def join(self, **changes: Any) -> Any:
        """Join, or join again."""
        request = {
            "member_epoch": 0,
            "topology": self.shape,
            "rebalance_timeout_ms": 60_000,
            "process_id": self.process_id,
            "client_tags": [],
            "active_tasks": [],
            "standby_tasks": [],
            "warmup_tasks": [],
        }
        if self.endpoint is not None:
            request["user_endpoint"] = StreamsGroupHeartbeatRequestEndpoint(
                host=self.endpoint[0], port=self.endpoint[1]
            )
        return self.send(**{**request, **changes})

    def beat(self, **changes: Any) -> Any:
        """Say nothing but that the member is alive."""
        return self.send(**{"member_epoch": self.epoch, **changes})

    def ack(self, **changes: Any) -> Any:
        """Say which tasks the member has now."""
        lists = {"active_tasks": tasks(self.active), "standby_tasks": tasks(self.standby), "warmup_tasks": []}
        return self.send(**{"member_epoch": self.epoch, **lists, **changes})

    def leave(self, **changes: Any) -> Any:
        return self.send(**{"member_epoch": -1, **changes})

    def go_for_a_while(self, **changes: Any) -> Any:
        """Leave as a static member that will be back."""
        return self.send(**{"member_epoch": -2, **changes})

    def send(self, **fields: Any) -> Any:
        fields = {"endpoint_information_epoch": self.endpoint_epoch, "instance_id": self.instance, **fields}
        request = StreamsGroupHeartbeatRequest(**{"group_id": self.group, "member_id": self.member_id, **fields})
        reply = self.world.client.call(request, self.version)
        self.world.check()
        if reply.error_code == 0 and request.member_epoch >= 0:
            self.epoch = reply.member_epoch
            self.endpoint_epoch = reply.endpoint_information_epoch
            if reply.active_tasks is not None:
                self.active = as_dict(reply.active_tasks) or {}
                self.standby = as_dict(reply.standby_tasks) or {}
        return reply

    def commit(self, epoch: int | None, partitions: dict[str, list[int]], version: int = 9) -> list[int]:
        """Commit an offset to each of the partitions; the codes in order."""
        return self.world.commit(
            partitions, self.epoch if epoch is None else epoch, self.member_id, self.group, version
        )


class StreamsWorld:
    """A broker, a client, and after every request the proof that the log makes the same state."""

    def __init__(self, topics: dict[str, int] | None = None, **settings: str) -> None:
        self.world = World(**settings)
        self.client = Client(self.world)
        for name, partitions in (topics or {}).items():
            make_topic(self.client, name, partitions)

    def __enter__(self) -> StreamsWorld:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: object, trace: TracebackType | None) -> None:
        if kind is None:
            self.restart()

    def member(self, member_id: str, process_id: str | None = None, **how: Any) -> Member:
        return Member(self, member_id, process_id or f"process-{member_id}", **{"shape": STATELESS, **how})

    def group(self, group_id: str = "g") -> StreamsGroup:
        found = self.world.broker.groups.of(group_id).machine.groups[group_id]
        assert isinstance(found, StreamsGroup)
        return found

    def check(self) -> None:
        """The order of the epochs holds in every group."""
        for shard in self.world.broker.groups.shards:
            for group in shard.machine.groups.values():
                if isinstance(group, StreamsGroup):
                    assert group.inconsistencies() == []

    def restart(self) -> None:
        """A new broker on the same disk is in the same state."""
        before = self.facts()
        self.world = self.world.crash()
        self.client = Client(self.world)
        for shard in self.world.broker.groups.shards:
            shard.require()
        assert self.facts() == before

    def facts(self) -> dict[str, Any]:
        """What the log says of the streams groups and of all offsets."""
        machines = [shard.machine for shard in self.world.broker.groups.shards]
        groups = [group for machine in machines for group in machine.groups.values()]
        found = {group.group_id: group.facts() for group in groups if isinstance(group, StreamsGroup)}
        return {"groups": found, "offsets": [machine.offsets.fingerprint() for machine in machines]}

    def commit(
        self, partitions: dict[str, list[int]], epoch: int, member_id: str, group: str = "g", version: int = 9
    ) -> list[int]:
        request = OffsetCommitRequest(
            group_id=group,
            generation_id_or_member_epoch=epoch,
            member_id=member_id,
            topics=[
                OffsetCommitRequestTopic(
                    name=name,
                    partitions=[
                        OffsetCommitRequestPartition(partition_index=p, committed_offset=1, committed_metadata="")
                        for p in indexes
                    ],
                )
                for name, indexes in partitions.items()
            ],
        )
        return [p.error_code for t in self.client.call(request, version).topics for p in t.partitions]

    def describe(self, *groups: str, version: int = 1, **asked: bool) -> Any:
        request = StreamsGroupDescribeRequest(group_ids=list(groups or ("g",)), **asked)
        found = self.client.call(request, version).groups
        return found if len(groups) > 1 else found[0]

    def list(self, states: tuple[str, ...] = (), types: tuple[str, ...] = ()) -> dict[str, tuple[str, str, str]]:
        request = ListGroupsRequest(states_filter=list(states), types_filter=list(types))
        listed = self.client.call(request, 5).groups
        return {g.group_id: (g.protocol_type, g.group_state, g.group_type) for g in listed}
