"""The sizes of logs and groups, under the metric names of common Kafka dashboards."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from broker.broker import Broker
    from broker.coordinator.groups.machine import GroupMachine

# name, value, tags as (key, value)
Gauge: TypeAlias = tuple[str, float, tuple[tuple[str, object], ...]]


def broker_gauges(broker: Broker) -> Iterator[Gauge]:
    """All gauges. The reader may pause between two, so each step reads the present state.

    Only open partitions are measured: measuring must not open ten thousand logs.
    """
    open_partitions = {(p.topic.name, p.index): p for p in broker.partitions.opened()}
    for machine, group_id, members in loaded_groups(broker):
        tagged: tuple[tuple[str, object], ...] = (("consumer_group", group_id),)
        yield "momus_group_members", members, tagged
        for topic, index, committed in commits(machine, group_id):
            tags = (*tagged, ("topic", topic), ("partition", index))
            yield "kafka.consumer_offset", committed, tags
            # The committed offset is read first, or a group without lag could show a negative one.
            partition = open_partitions.get((topic, index))
            if partition is not None:
                yield "kafka.consumer_lag", partition.high_watermark - committed, tags
    yield from own_gauges(broker)


def loaded_groups(broker: Broker) -> Iterator[tuple[GroupMachine, str, int]]:
    """(machine, group id, number of members) of each group that is loaded. The reader may pause between two."""
    for _, shard in broker.groups.shards.existing():
        machine = shard.machine
        if machine is not None:
            for group_id in list(machine.group_ids()):
                group = machine.groups.get(group_id)
                yield machine, group_id, len(group.members) if group else 0


def commits(machine: GroupMachine, group_id: str) -> Iterator[tuple[str, int, int]]:
    """(topic, partition, offset) of what a group has committed, topic by topic. The reader may pause between two."""
    for topic, indexes in list(machine.offsets.partitions(group_id).items()):
        for index in list(indexes):
            committed = machine.offsets.get(group_id, topic, index)
            if committed is not None:
                yield topic, index, committed.offset


def own_gauges(broker: Broker) -> Iterator[Gauge]:
    """Those that are not of a group: connections, waits, counts, sizes of logs. The counts and sizes of a proxy are not
    said: it keeps neither topics nor groups."""
    open_partitions = {(p.topic.name, p.index): p for p in broker.partitions.opened()}
    yield "momus_connections", len(broker.clients.open), ()
    yield (
        "momus_timers",
        len(broker.turn.timers) + (len(broker.turn.waits) if broker.turn.waits is not broker.turn.timers else 0),
        (),
    )
    yield "momus_parked_requests", len(broker.parked), ()
    if broker.upstream is not None:
        return
    machines = [shard.machine for _, shard in broker.groups.shards.existing() if shard.machine is not None]
    yield "momus_groups", sum(1 for machine in machines for _ in machine.group_ids()), ()
    yield "momus_topics", len(broker.metadata.topics), ()
    for (topic, index), partition in open_partitions.items():
        tags = (("topic", topic), ("partition", index))
        yield "kafka.broker_offset", partition.high_watermark, tags
        yield "momus_log_bytes", partition.log.size_bytes, tags
    for (by, topic, index), held in list(broker.archive.held_bytes.items()):
        yield "momus_archive_held_bytes", held, (("topic", topic), ("partition", index), ("by", by))
    for index, shard in broker.groups.shards.existing():
        if shard.log is not None:
            yield "momus_log_bytes", shard.log.size_bytes, (("topic", "__consumer_offsets"), ("partition", index))
