"""A scripted day of a broker, and what its clients saw acknowledged."""

from __future__ import annotations

from dataclasses import dataclass, field

from core_broker import Client, World
from core_requests import commit_request, produce_request

from protocol.messages.classic_group import (
    JoinGroupRequest,
    JoinGroupRequestProtocol,
    SyncGroupRequest,
    SyncGroupRequestAssignment,
)
from protocol.messages.configs import (
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsRequestAlterableConfig,
    IncrementalAlterConfigsRequestAlterConfigsResource,
)
from protocol.messages.offsets import (
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
)
from protocol.messages.topics import (
    CreatableTopic,
    CreatableTopicConfig,
    CreatePartitionsRequest,
    CreatePartitionsTopic,
    CreateTopicsRequest,
    DeleteTopicsRequest,
    DeleteTopicState,
)
from protocol.messages.transactions import InitProducerIdRequest


@dataclass
class Seen:
    """What the client was told, and what it asked for last without having been told."""

    cluster_id: str = ""
    topic_ids: dict[str, bytes] = field(default_factory=dict)
    producer_ids: list[int] = field(default_factory=list)
    topics: dict[str, int] = field(default_factory=dict)  # name -> partitions
    asked_topics: dict[str, int | None] = field(default_factory=dict)  # not acknowledged; None: deletion
    offsets: dict[str, dict[int, int]] = field(default_factory=dict)  # group -> partition -> offset
    asked_offsets: dict[str, dict[int, int | None]] = field(default_factory=dict)
    records: dict[str, list[bytes]] = field(default_factory=dict)  # topic -> values in partition 0
    asked_records: dict[str, list[bytes]] = field(default_factory=dict)
    members: dict[str, tuple[str, int]] = field(default_factory=dict)
    asked_members: set[str] = field(default_factory=set)
    finished: bool = False


def create(client: Client, seen: Seen, name: str, partitions: int, configs: dict[str, str] | None = None) -> None:
    rows = [CreatableTopicConfig(name=key, value=value) for key, value in (configs or {}).items()]
    wanted = CreatableTopic(name=name, num_partitions=partitions, replication_factor=1, configs=rows)
    seen.asked_topics[name] = partitions
    answer = client.call(CreateTopicsRequest(topics=[wanted], timeout_ms=1), 7).topics[0]
    assert answer.error_code == 0
    assert answer.topic_id not in seen.topic_ids.values(), "a topic id came twice"
    seen.topic_ids[name] = answer.topic_id
    seen.topics[name] = seen.asked_topics.pop(name)


def grow(client: Client, seen: Seen, name: str, partitions: int) -> None:
    seen.asked_topics[name] = partitions
    wanted = CreatePartitionsTopic(name=name, count=partitions, assignments=None)
    assert client.call(CreatePartitionsRequest(topics=[wanted], timeout_ms=1), 3).results[0].error_code == 0
    seen.topics[name] = seen.asked_topics.pop(name)


def delete(client: Client, seen: Seen, name: str) -> None:
    seen.asked_topics[name] = None
    wanted = DeleteTopicState(name=name, topic_id=bytes(16))
    assert client.call(DeleteTopicsRequest(topics=[wanted], timeout_ms=1), 6).responses[0].error_code == 0
    del seen.asked_topics[name]
    del seen.topics[name]
    seen.records.pop(name, None)


def produce(client: Client, seen: Seen, name: str, *values: bytes) -> None:
    seen.asked_records[name] = [*seen.records.get(name, []), *values]
    answer = client.call(produce_request(name, 0, *values), 9).responses[0].partition_responses[0]
    assert answer.error_code == 0
    seen.records[name] = seen.asked_records.pop(name)


def commit(client: Client, seen: Seen, group_id: str, offset: int, metadata: str, partitions=range(20)) -> None:
    wanted = dict.fromkeys(partitions, offset)
    seen.asked_offsets[group_id] = {**seen.offsets.get(group_id, {}), **wanted}
    answer = client.call(commit_request(group_id, wanted, "wide", metadata=metadata), 8)
    assert {p.error_code for p in answer.topics[0].partitions} == {0}
    seen.offsets[group_id] = seen.asked_offsets.pop(group_id)


def forget(client: Client, seen: Seen, group_id: str, partitions) -> None:
    kept = {p: offset for p, offset in seen.offsets[group_id].items() if p not in partitions}
    seen.asked_offsets[group_id] = kept
    rows = [OffsetDeleteRequestPartition(partition_index=p) for p in partitions]
    topics = [OffsetDeleteRequestTopic(name="wide", partitions=rows)]
    assert client.call(OffsetDeleteRequest(group_id=group_id, topics=topics), 0).error_code == 0
    seen.offsets[group_id] = seen.asked_offsets.pop(group_id)


def producer_id(client: Client, seen: Seen) -> None:
    answer = client.call(InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=1), 4)
    assert answer.error_code == 0
    assert answer.producer_id not in seen.producer_ids, "a producer id came twice"
    seen.producer_ids.append(answer.producer_id)


def join(client: Client, seen: Seen, group_id: str) -> None:
    seen.asked_members.add(group_id)
    ask = JoinGroupRequest(
        group_id=group_id,
        session_timeout_ms=30_000,
        rebalance_timeout_ms=30_000,
        member_id="",
        group_instance_id="one",
        protocol_type="consumer",
        protocols=[JoinGroupRequestProtocol(name="range", metadata=b"\0\0\0\0\0\0\xff\xff\xff\xff")],
    )
    answer = client.call(ask, 5)
    assert answer.error_code == 0
    sync = SyncGroupRequest(
        group_id=group_id,
        generation_id=answer.generation_id,
        member_id=answer.member_id,
        group_instance_id="one",
        assignments=[SyncGroupRequestAssignment(member_id=answer.member_id, assignment=b"mine")],
    )
    assert client.call(sync, 3).assignment == b"mine"
    seen.members[group_id] = (answer.member_id, answer.generation_id)


def small_segments(client: Client) -> None:
    """So that the log of offsets has several segments by the end."""
    change = IncrementalAlterConfigsRequestAlterableConfig(
        name="internal.segment.bytes", config_operation=0, value="6000"
    )
    resource = IncrementalAlterConfigsRequestAlterConfigsResource(
        resource_type=2, resource_name="__consumer_offsets", configs=[change]
    )
    answer = client.call(IncrementalAlterConfigsRequest(resources=[resource], validate_only=False), 1)
    assert answer.responses[0].error_code == 0, answer.responses[0].error_message


def session(world: World, seen: Seen) -> None:
    """The script. Each step that returns was acknowledged."""
    seen.cluster_id = world.broker.cluster_id
    client = Client(world)
    small_segments(client)
    create(client, seen, "wide", 20)
    create(client, seen, "logs", 1, {"internal.segment.bytes": "1000"})
    for n in range(4):
        commit(client, seen, "fast", n, "")
        commit(client, seen, "slow", n, "m" * 30)
        produce(client, seen, "logs", b"%d" % n * 200, b"x")
    producer_id(client, seen)
    producer_id(client, seen)
    join(client, seen, "members")
    grow(client, seen, "logs", 3)
    forget(client, seen, "slow", [1, 3, 5])
    create(client, seen, "short", 2)
    produce(client, seen, "short", b"old")
    delete(client, seen, "short")
    create(client, seen, "short", 1)
    produce(client, seen, "short", b"new")
    commit(client, seen, "fast", 77, "", [0, 7, 19])
    seen.members.clear()  # its session runs out now
    world.advance(400_000)  # housekeeping
    commit(client, seen, "fast", 99, "")
    seen.finished = True
