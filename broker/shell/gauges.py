"""The sizes of logs and groups, under the metric names of common Kafka dashboards."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from broker.broker import Broker

# name, value, tags as (key, value)
Gauge: TypeAlias = tuple[str, float, tuple[tuple[str, object], ...]]


def broker_gauges(broker: Broker) -> Iterator[Gauge]:
    """All gauges. The reader may pause between two, so each step reads the present state.

    Only open partitions are measured: measuring must not open ten thousand logs.
    """
    open_partitions = {(p.topic.name, p.index): p for p in broker.partitions.opened()}
    for shard in broker.groups.shards:
        if shard.machine is None:
            continue
        for group_id in list(shard.machine.group_ids()):
            tagged: tuple[tuple[str, object], ...] = (("consumer_group", group_id),)
            group = shard.machine.groups.get(group_id)
            yield "momus_group_members", len(group.members) if group else 0, tagged
            for topic, indexes in shard.machine.offsets.partitions(group_id).items():
                for index in indexes:
                    committed = shard.machine.offsets.get(group_id, topic, index)
                    if committed is None:
                        continue
                    tags = (*tagged, ("topic", topic), ("partition", index))
                    yield "kafka.consumer_offset", committed.offset, tags
                    # The committed offset is read first, or a group without lag could show a negative one.
                    partition = open_partitions.get((topic, index))
                    if partition is not None:
                        yield "kafka.consumer_lag", partition.high_watermark - committed.offset, tags
    yield from own_gauges(broker)


def own_gauges(broker: Broker) -> Iterator[Gauge]:
    """Those that are not of a group: connections, waits, counts, sizes of logs."""
    open_partitions = {(p.topic.name, p.index): p for p in broker.partitions.opened()}
    yield "momus_connections", len(broker.clients.open), ()
    yield "momus_timers", len(broker.turn.timers), ()
    waits = [wait for connection in broker.clients.open for wait in (connection.fetch_waits or {}).values()]
    yield "momus_parked_requests", len(broker.parked) + sum(wait.parked for wait in waits), ()
    machines = [shard.machine for shard in broker.groups.shards if shard.machine is not None]
    yield "momus_groups", sum(1 for machine in machines for _ in machine.group_ids()), ()
    yield "momus_topics", len(broker.metadata.topics), ()
    for (topic, index), partition in open_partitions.items():
        tags = (("topic", topic), ("partition", index))
        yield "kafka.broker_offset", partition.high_watermark, tags
        yield "momus_log_bytes", partition.log.size_bytes, tags
    for (by, topic, index), held in list(broker.archive.held_bytes.items()):
        yield "momus_archive_held_bytes", held, (("topic", topic), ("partition", index), ("by", by))
    for index, shard in enumerate(broker.groups.shards):
        if shard.log is not None:
            yield "momus_log_bytes", shard.log.size_bytes, (("topic", "__consumer_offsets"), ("partition", index))
