"""Which endpoint of a streams application has which state (interactive queries)."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import TYPE_CHECKING

from protocol.messages.streams_group import (
    EndpointToPartitions,
    StreamsGroupHeartbeatResponseEndpoint,
    StreamsGroupHeartbeatResponseTopicPartition,
)

if TYPE_CHECKING:
    from broker.cluster.metadata import ClusterMetadata
    from broker.coordinator.groups.streams.member import Endpoint, TasksTupleWithEpochs
    from broker.coordinator.groups.streams.topology import ConfiguredTopology


def partitions_by_endpoint(
    members: Iterable[tuple[Endpoint | None, TasksTupleWithEpochs]],
    configured: ConfiguredTopology,
    metadata: ClusterMetadata,
) -> list[EndpointToPartitions]:
    """The source partitions of each member's active tasks, and of its standby and warm-up tasks.

    Members without an endpoint are left out, as are topics of which a member has no partition.
    """
    return [
        EndpointToPartitions(
            user_endpoint=StreamsGroupHeartbeatResponseEndpoint(host=endpoint.host, port=endpoint.port),
            active_partitions=_topic_partitions(held.active, configured, metadata),
            standby_partitions=_topic_partitions(_copies(held), configured, metadata),
        )
        for endpoint, held in members
        if endpoint is not None
    ]


def _copies(held: TasksTupleWithEpochs) -> Mapping[str, Collection[int]]:
    if not held.warmup:
        return held.standby
    return {
        subtopology_id: {*held.standby.get(subtopology_id, ()), *held.warmup.get(subtopology_id, ())}
        for subtopology_id in {*held.standby, *held.warmup}
    }


def _topic_partitions(
    tasks: Mapping[str, Collection[int]], configured: ConfiguredTopology, metadata: ClusterMetadata
) -> list[StreamsGroupHeartbeatResponseTopicPartition]:
    subtopologies = configured.subtopologies or {}
    found = []
    for subtopology_id in sorted(tasks.keys() & subtopologies.keys()):
        for name in sorted(set(subtopologies[subtopology_id].sources())):
            topic = metadata.topics.get(name)
            if topic is not None:
                partitions = [p for p in sorted(tasks[subtopology_id]) if p < len(topic.partitions)]
                if partitions:
                    found.append(StreamsGroupHeartbeatResponseTopicPartition(topic=name, partitions=partitions))
    return found
