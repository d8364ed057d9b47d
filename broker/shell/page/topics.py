"""The topics view: topics with their sizes, and one topic with its partitions and its configs with their sources."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from broker.asks import configs
from broker.asks.rows import ConfigRow, PartitionRow, TopicDetails, TopicRow, TopicRows
from broker.shell.asking import ask
from broker.shell.control.calls.records import check_answer
from broker.shell.control.routes import Call, RefusedError
from broker.shell.page.windows import number, slices, window
from protocol.errors import KafkaError
from storage.files.errors import StorageError

if TYPE_CHECKING:
    from broker.broker import Broker
    from broker.cluster.topics import Topic
    from broker.shell.cluster_server import ClusterServer

MOST_PARTITIONS: Final = 1000  # in one answer
UNREADABLE: Final = (KafkaError, StorageError, OSError)  # the log is damaged, or its topic is being deleted
SOURCES: Final = {
    1: "topic",
    2: "broker, set at run time",
    3: "cluster, set at run time",
    4: "broker, set at its start",
}


async def list_topics(cluster: ClusterServer, call: Call) -> TopicRows:
    """A window on the topics. Records and bytes are those of all partitions."""
    broker = cluster.broker
    names, offset, total = await window(cluster, call, list(broker.metadata.topics))
    rows: list[TopicRow] = []
    for name in names:
        topic = broker.metadata.topics.get(name)
        if topic is None:  # deleted meanwhile
            continue
        row: TopicRow = {
            "topic": name,
            "internal": topic.internal,
            "partitions": len(topic.partitions),
            "replicas": len(topic.partitions[0].replicas) if topic.partitions else 0,
            "under_replicated": sum(len(each.isr) < len(each.replicas) for each in topic.partitions),
            "records": 0,
            "bytes": 0,
        }
        async for index in slices(cluster, range(len(topic.partitions))):
            start, _, end, size = ends(broker, topic, index, with_stable=False)
            row["records"] += end - start
            row["bytes"] += size
        rows.append(row)
    return {"offset": offset, "total": total, "topics": rows}


def ends(broker: Broker, topic: Topic, index: int, *, with_stable: bool = True) -> tuple[int, int, int, int]:
    """First offset, last stable offset, high watermark and bytes of a partition; zeros where it has no files yet.

    To find the last stable offset may take reading the log: a list goes without. A log that cannot be read (damaged, or
    its topic is being deleted) has zeros too; a client is told why.
    """
    if not broker.partitions.has(topic, index):
        return 0, 0, 0, 0
    try:
        first, end = bounds(broker, topic, index)
        stable = broker.partitions.get(topic, index).last_stable_offset if with_stable else 0
        return first, stable, end, broker.partitions.size(topic.name, index)
    except UNREADABLE:
        return 0, 0, 0, 0


def bounds(broker: Broker, topic: Topic, index: int) -> tuple[int, int]:
    """First offset and high watermark of a partition; zeros where it has no files yet. Errors: UNREADABLE."""
    if not broker.partitions.has(topic, index):
        return 0, 0
    found = broker.partitions.get(topic, index)
    return found.log.log_start_offset, found.high_watermark


async def show_topic(cluster: ClusterServer, call: Call) -> TopicDetails:
    """One topic: its partitions, a window on them, and its configs. Errors: RefusedError."""
    broker, name = cluster.broker, call.words["topic"]
    topic = broker.metadata.topics.get(name)
    if topic is None:
        raise RefusedError(404, f"no such topic: {name:.100}")
    first = number(call, "offset", 0)
    partitions: list[PartitionRow] = []
    async for info in slices(cluster, topic.partitions[first : first + MOST_PARTITIONS]):
        start, stable, end, size = ends(broker, topic, info.index)
        partitions.append(
            {
                "partition": info.index,
                "leader": info.leader,
                "leader_epoch": info.leader_epoch,
                "replicas": info.replicas,
                "isr": info.isr,
                "start": start,
                "stable": stable,
                "end": end,
                "bytes": size,
            }
        )
    return {
        "topic": name,
        "internal": topic.internal,
        "total": len(topic.partitions),
        "offset": first,
        "partitions": partitions,
        "configs": await configs_of(cluster, name),
    }


async def configs_of(cluster: ClusterServer, name: str) -> list[ConfigRow]:
    """The configs of a topic with their sources, its own first. Errors: RefusedError."""
    (result,) = await ask(cluster, configs.describe(configs.TOPIC, [name]))
    check_answer(result.error_code, f"topic {name:.100}", result.error_message)
    return [
        {"name": each.name, "value": each.value or "", "source": SOURCES.get(each.config_source, "default")}
        for each in sorted(result.configs, key=lambda each: (each.config_source != configs.OF_TOPIC, each.name))
    ]
