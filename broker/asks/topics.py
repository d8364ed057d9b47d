"""Asks about topics: where their partitions are and where these begin and end; topics made, deleted, grown."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Final, NamedTuple

from broker.asks.ask import METADATA_VERSION, Ask, Controller, Leader, Node, Question, check
from protocol.errors import ErrorCode
from protocol.messages.cluster import MetadataRequest, MetadataRequestTopic
from protocol.messages.fetch import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from protocol.messages.topics import (
    CreatableTopic,
    CreatableTopicConfig,
    CreatePartitionsRequest,
    CreatePartitionsTopic,
    CreateTopicsRequest,
    DeleteTopicsRequest,
    DeleteTopicState,
)

if TYPE_CHECKING:
    from broker.asks.rows import PartitionRow, TopicRow
    from protocol.messages.cluster import MetadataResponse, MetadataResponseTopic
    from protocol.messages.fetch import ListOffsetsPartitionResponse, ListOffsetsResponse
    from protocol.messages.topics import (
        CreatableTopicResult,
        CreatePartitionsResponse,
        CreatePartitionsTopicResult,
        CreateTopicsResponse,
        DeletableTopicResult,
        DeleteTopicsResponse,
    )

CREATE_VERSION, DELETE_VERSION, GROW_VERSION, OFFSETS_VERSION = 7, 6, 3, 7
EARLIEST, LATEST = -2, -1  # times that ListOffsets takes for the first offset, and the one after the last
COMMITTED: Final = 1  # isolation: LATEST is the last stable offset
TIMEOUT_MS: Final = 10_000
NO_ID: Final = bytes(16)

PartitionKey = tuple[str, int]


def metadata(names: Iterable[str] | None = (), *, create: bool = False) -> Ask[MetadataResponse]:
    """The nodes of a cluster, and topics. names: of these; None: all. create: make them, as for a producer."""
    topics = None if names is None else [MetadataRequestTopic(name=name) for name in names]
    request = MetadataRequest(topics=topics, allow_auto_topic_creation=create)
    answer: MetadataResponse = yield Question(request, METADATA_VERSION)
    return answer


def leaders_of(topic: str, *, create: bool = False) -> Ask[dict[int, int]]:
    """Who leads each partition of a topic; {}: there is no such topic. Errors: AnswerError."""
    (row,) = (yield from metadata([topic], create=create)).topics
    if create and row.error_code == ErrorCode.LEADER_NOT_AVAILABLE:  # it has been made by this request
        (row,) = (yield from metadata([topic])).topics
    if not create and row.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
        return {}
    check(f"topic {topic}", row.error_code)
    return {each.partition_index: each.leader_id for each in row.partitions}


def offset_at(topic: str, partition: int, time_ms: int) -> Ask[int]:
    """The offset of the first record that is not older, or of EARLIEST or LATEST; -1: none. Errors: AnswerError."""
    asked = ListOffsetsPartition(partition_index=partition, timestamp=time_ms)
    request = ListOffsetsRequest(replica_id=-1, topics=[ListOffsetsTopic(name=topic, partitions=[asked])])
    answer: ListOffsetsResponse = yield Question(request, OFFSETS_VERSION, Leader(topic, partition))
    (row,) = answer.topics[0].partitions
    check(f"{topic}-{partition}", row.error_code)
    return row.offset


def offsets_of(
    leaders: Mapping[PartitionKey, int], time_ms: int, isolation: int = 0
) -> Ask[dict[PartitionKey, ListOffsetsPartitionResponse]]:
    """What ListOffsets tells of partitions, all that a node leads by one request; of those without a leader nothing."""
    wanted: dict[int, dict[str, ListOffsetsTopic]] = {}
    for (name, index), leader in leaders.items():
        if leader >= 0:
            topic = wanted.setdefault(leader, {}).setdefault(name, ListOffsetsTopic(name=name, partitions=[]))
            topic.partitions.append(ListOffsetsPartition(partition_index=index, timestamp=time_ms))
    found = dict[PartitionKey, "ListOffsetsPartitionResponse"]()
    for leader, topics in wanted.items():
        request = ListOffsetsRequest(replica_id=-1, isolation_level=isolation, topics=list(topics.values()))
        answer: ListOffsetsResponse = yield Question(request, OFFSETS_VERSION, Node(leader))
        found |= {(topic.name, row.partition_index): row for topic in answer.topics for row in topic.partitions}
    return found


def known_offsets(
    topics: Iterable[MetadataResponseTopic], time_ms: int, isolation: int = 0
) -> Ask[dict[PartitionKey, int]]:
    """The offsets of all partitions of topics that tell one."""
    leaders = {
        (topic.name or "", each.partition_index): each.leader_id for topic in topics for each in topic.partitions
    }
    found = yield from offsets_of(leaders, time_ms, isolation)
    return {place: row.offset for place, row in found.items() if not row.error_code}


class Bounds(NamedTuple):
    """Where partitions begin and end: first, last stable and end offset of each that tells one."""

    start: dict[PartitionKey, int]
    stable: dict[PartitionKey, int]
    end: dict[PartitionKey, int]


def bounds(topics: list[MetadataResponseTopic]) -> Ask[Bounds]:
    """Where the partitions of topics begin and end."""
    start = yield from known_offsets(topics, EARLIEST)
    stable = yield from known_offsets(topics, LATEST, COMMITTED)
    return Bounds(start, stable, (yield from known_offsets(topics, LATEST)))


def there(names: Iterable[str] | None) -> Ask[list[MetadataResponseTopic]]:
    """Those of these topics that are there, their partitions in order; None: all."""
    found = [topic for topic in (yield from metadata(names)).topics if not topic.error_code]
    for topic in found:
        topic.partitions.sort(key=lambda each: each.partition_index)
    return found


def rows_of(topics: list[MetadataResponseTopic]) -> Ask[list[TopicRow]]:
    """A row for each topic; nothing tells bytes cheaply."""
    first = yield from known_offsets(topics, EARLIEST)
    end = yield from known_offsets(topics, LATEST)
    rows: list[TopicRow] = []
    for topic in topics:
        places = [(topic.name or "", each.partition_index) for each in topic.partitions]
        rows.append(
            {
                "topic": topic.name or "",
                "internal": topic.is_internal,
                "partitions": len(topic.partitions),
                "replicas": len(topic.partitions[0].replica_nodes) if topic.partitions else 0,
                "under_replicated": sum(len(each.isr_nodes) < len(each.replica_nodes) for each in topic.partitions),
                "records": sum(end.get(place, 0) - first.get(place, 0) for place in places),
                "bytes": 0,
            }
        )
    return rows


def partitions_of(topic: MetadataResponseTopic) -> Ask[list[PartitionRow]]:
    """A row for each partition of a topic, in order; nothing tells bytes cheaply."""
    first, stable, end = yield from bounds([topic])
    name = topic.name or ""
    return [
        {
            "partition": each.partition_index,
            "leader": each.leader_id,
            "leader_epoch": each.leader_epoch,
            "replicas": each.replica_nodes,
            "isr": each.isr_nodes,
            "start": first.get((name, each.partition_index), 0),
            "stable": stable.get((name, each.partition_index), 0),
            "end": end.get((name, each.partition_index), 0),
            "bytes": 0,
        }
        for each in topic.partitions
    ]


def new_topic(
    name: str, partitions: int = -1, replicas: int = -1, config: Mapping[str, str] | None = None
) -> CreatableTopic:
    """A topic to make. -1: as many as the cluster's setting says."""
    configs = [CreatableTopicConfig(name=key, value=value) for key, value in (config or {}).items()]
    return CreatableTopic(name=name, num_partitions=partitions, replication_factor=replicas, configs=configs)


def create(topics: list[CreatableTopic], *, only_check: bool = False) -> Ask[list[CreatableTopicResult]]:
    """Make topics; a row each."""
    request = CreateTopicsRequest(topics=topics, timeout_ms=TIMEOUT_MS, validate_only=only_check)
    answer: CreateTopicsResponse = yield Question(request, CREATE_VERSION, Controller())
    return answer.topics


def delete(names: Iterable[str] = (), ids: Iterable[bytes] = ()) -> Ask[list[DeletableTopicResult]]:
    """Delete topics with their records; a row each."""
    states = [DeleteTopicState(name=name, topic_id=NO_ID) for name in names]
    states += [DeleteTopicState(name=None, topic_id=topic_id) for topic_id in ids]
    # topic_names: where versions below 6 look
    told = [each.name for each in states if each.name is not None]
    request = DeleteTopicsRequest(topics=states, topic_names=told, timeout_ms=TIMEOUT_MS)
    answer: DeleteTopicsResponse = yield Question(request, DELETE_VERSION, Controller())
    return answer.responses


def grow(names: Iterable[str], partitions: int, *, only_check: bool = False) -> Ask[list[CreatePartitionsTopicResult]]:
    """Raise the number of partitions; a row a topic."""
    topics = [CreatePartitionsTopic(name=name, count=partitions, assignments=None) for name in names]
    request = CreatePartitionsRequest(topics=topics, timeout_ms=TIMEOUT_MS, validate_only=only_check)
    answer: CreatePartitionsResponse = yield Question(request, GROW_VERSION, Controller())
    return answer.results
