"""The cluster view: brokers and what they lead, features, clock, snapshots."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, TypedDict

from broker.config.addresses import host_port
from broker.config.features import finalized, supported
from broker.shell.cluster_plan import SnapshotRow
from broker.shell.control.of_cluster.clock import ClockRow, show_clock
from broker.shell.control.of_cluster.lifetime import ClusterRow, describe
from broker.shell.control.routes import Call
from broker.shell.page.windows import slices

if TYPE_CHECKING:
    from broker.shell.cluster_server import ClusterServer


class NodeRow(TypedDict):
    """A broker, where it listens, and of how many partitions it leads or is in sync."""

    id: int
    up: bool
    lags: bool
    paused: bool
    listeners: str
    leads: int
    in_sync: int


class FeatureRow(TypedDict):
    """A feature: its level, and the levels that there are."""

    name: str
    level: int
    lowest: int
    highest: int


class Overview(ClusterRow):
    """A cluster with its brokers and what they lead."""

    requests: int
    topics: int
    partitions: int
    under_replicated: int
    clock: ClockRow
    nodes: list[NodeRow]
    features: list[FeatureRow]
    snapshots: list[SnapshotRow]


async def show_overview(cluster: ClusterServer, call: Call) -> Overview:
    """All that the cluster view shows. Partitions are counted in slices."""
    broker = cluster.broker
    leads: Counter[int] = Counter()
    in_sync: Counter[int] = Counter()
    partitions = under = 0
    topics = list(broker.metadata.topics.values())
    async for info in slices(cluster, (each for topic in topics for each in topic.partitions)):
        partitions += 1
        leads[info.leader] += 1
        in_sync.update(info.isr)
        under += len(info.isr) < len(info.replicas)
    nodes, ranges = cluster.virtual_nodes, supported(broker.api_versions, broker.config.release)
    levels = finalized(broker.metadata.feature_levels, ranges)
    return {
        **describe(cluster),
        "requests": sum(broker.metrics.counts),
        "topics": len(topics),
        "partitions": partitions,
        "under_replicated": under,
        "clock": await show_clock(cluster, call),
        "nodes": [
            {
                "id": node.node_id,
                "up": nodes.is_up(node),
                "lags": nodes.lags(node) and not nodes.is_paused(node),
                "paused": nodes.is_paused(node),
                "listeners": ", ".join(f"{name} {host_port(at.host, at.port)}" for name, at in node.listeners.items()),
                "leads": leads[node.node_id],
                "in_sync": in_sync[node.node_id],
            }
            for node in nodes.all
        ],
        "features": [
            {"name": name, "level": levels.get(name, 0), "lowest": low, "highest": high}
            for name, (low, high) in sorted(ranges.items())
        ],
        "snapshots": cluster.snapshots.all(),
    }
