"""What the page of a proxy shows of topics, groups and brokers: asked of the upstream cluster, as an admin client does.

Answers have the shapes that they have elsewhere (control/of_cluster/page_*.py); sizes in bytes are 0, for want of a
cheap way to ask.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

from broker.config.addresses import host_port
from broker.shell.control.calls.group_members import describe as describe_group
from broker.shell.control.calls.group_members import share_offsets
from broker.shell.control.calls.groups import fetch_committed
from broker.shell.control.of_cluster.clock import show_clock
from broker.shell.control.of_cluster.lifetime import describe
from broker.shell.control.routes import Call, RefusedError
from broker.shell.local_client import LocalClient
from broker.shell.page.topics import MOST_PARTITIONS, configs_of
from broker.shell.page.windows import number, window
from protocol.api import ApiKey
from protocol.messages.cluster import MetadataRequest, MetadataRequestTopic
from protocol.messages.fetch import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from protocol.messages.group_admin import ListGroupsRequest

if TYPE_CHECKING:
    from broker.asks.rows import GroupDetails, GroupRow, GroupRows, OffsetRow, TopicDetails, TopicRow, TopicRows
    from broker.shell.cluster_server import ClusterServer
    from broker.shell.page.overview import Overview
    from broker.shell.proxy.upstream import Upstream

METADATA_VERSION, OFFSETS_VERSION, GROUPS_VERSION = 12, 7, 5
EARLIEST, LATEST, STABLE = -2, -1, 1  # STABLE: LATEST, of committed records

PartitionKey = tuple[str, int]


async def topics_of(client: LocalClient, names: list[str] | None = None) -> list[Any]:
    """Topics as Metadata tells of them. `names`: of these; None: all."""
    wanted = None if names is None else [MetadataRequestTopic(name=name) for name in names]
    request = MetadataRequest(topics=wanted, allow_auto_topic_creation=False)
    found: list[Any] = (await client.call(request, METADATA_VERSION)).topics
    return [topic for topic in found if not topic.error_code]


async def offsets_of(
    client: LocalClient, topics: list[Any], time_ms: int, isolation: int = 0
) -> dict[PartitionKey, int]:
    """The offset of each partition that has a leader: the first, or the one after the last."""
    by_leader: dict[int, list[ListOffsetsTopic]] = {}
    for topic in topics:
        asked: dict[int, list[ListOffsetsPartition]] = {}
        for each in topic.partitions:
            row = ListOffsetsPartition(partition_index=each.partition_index, timestamp=time_ms)
            asked.setdefault(each.leader_id, []).append(row)
        for leader, rows in asked.items():
            by_leader.setdefault(leader, []).append(ListOffsetsTopic(name=topic.name, partitions=rows))
    found = {}
    for leader, wanted in by_leader.items():
        if leader < 0:
            continue
        request = ListOffsetsRequest(replica_id=-1, isolation_level=isolation, topics=wanted, timeout_ms=0)
        for topic in (await client.call(request, OFFSETS_VERSION, leader)).topics:
            for row in topic.partitions:
                if not row.error_code:
                    found[topic.name, row.partition_index] = row.offset
    return found


async def topic_with_offsets(client: LocalClient, name: str) -> tuple[Any, list[dict[PartitionKey, int]]]:
    """A topic, its partitions in order, and their first, last stable and end offsets. Errors: RefusedError: none."""
    found = await topics_of(client, [name])
    if not found:
        raise RefusedError(404, f"no such topic: {name:.100}")
    found[0].partitions.sort(key=lambda each: each.partition_index)
    asked = ((EARLIEST, 0), (LATEST, STABLE), (LATEST, 0))
    return found[0], [await offsets_of(client, found, time_ms, isolation) for time_ms, isolation in asked]


async def list_topics(cluster: ClusterServer, call: Call) -> TopicRows:
    """A window on the topics; records are those between the first and the last offset of all partitions."""
    client = LocalClient(cluster.broker, cluster.config)
    every = {topic.name: topic for topic in await topics_of(client)}
    names, offset, total = await window(cluster, call, list(every))
    shown = [every[name] for name in names]
    first, end = await offsets_of(client, shown, EARLIEST), await offsets_of(client, shown, LATEST)
    rows: list[TopicRow] = []
    for topic in shown:
        places = [(topic.name, each.partition_index) for each in topic.partitions]
        rows.append(
            {
                "topic": topic.name,
                "internal": topic.is_internal,
                "partitions": len(topic.partitions),
                "replicas": len(topic.partitions[0].replica_nodes) if topic.partitions else 0,
                "under_replicated": sum(len(each.isr_nodes) < len(each.replica_nodes) for each in topic.partitions),
                "records": sum(end.get(place, 0) - first.get(place, 0) for place in places),
                "bytes": 0,
            }
        )
    return {"offset": offset, "total": total, "topics": rows}


async def show_topic(cluster: ClusterServer, call: Call) -> TopicDetails:
    """One topic: its partitions, a window on them, and its configs. Errors: RefusedError."""
    client, name, begin = LocalClient(cluster.broker, cluster.config), call.words["topic"], number(call, "offset", 0)
    topic, (first, stable, end) = await topic_with_offsets(client, name)
    rows = topic.partitions
    return {
        "topic": name,
        "internal": topic.is_internal,
        "total": len(rows),
        "offset": begin,
        "partitions": [
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
            for each in rows[begin : begin + MOST_PARTITIONS]
        ],
        "configs": await configs_of(cluster, name),
    }


async def list_groups(cluster: ClusterServer, call: Call) -> GroupRows:
    """A window on the groups of all brokers. Members, partitions and lag are those of the groups that are shown."""
    client, upstream = LocalClient(cluster.broker, cluster.config), _upstream(cluster)
    found: dict[str, Any] = {}
    for place in list(upstream.places.values()):
        answer = await upstream.ask_at(place, ListGroupsRequest(), GROUPS_VERSION)
        found |= {row.group_id: row for row in answer.groups}
    names, offset, total = await window(cluster, call, found)
    rows: list[GroupRow] = []
    for name in names:
        described = await _details(cluster, client, name)
        lags = [each.get("lag") for each in described["offsets"]]
        row: GroupRow = {
            "group": name,
            "type": described["type"] or found[name].group_type,
            "state": described["state"],
            "members": len(described["members"]),
            "partitions": len(described["offsets"]),
        }
        if None not in lags:
            row["lag"] = sum(each for each in lags if each is not None)
        rows.append(row)
    return {"offset": offset, "total": total, "loading": 0, "groups": rows}


async def show_group(cluster: ClusterServer, call: Call) -> GroupDetails:
    """State, epochs, members with what they have, and offsets with lag; an unknown group is Dead."""
    return await _details(cluster, LocalClient(cluster.broker, cluster.config), call.words["group"])


async def _details(cluster: ClusterServer, client: LocalClient, group: str) -> GroupDetails:
    found = await describe_group(cluster, client, group)
    if found["type"] == "share":
        if _upstream(cluster).serves(ApiKey.DESCRIBE_SHARE_GROUP_OFFSETS):
            found["offsets"] = await share_offsets(cluster, client, group)
        return found
    owners = {each["partition"]: each["member"] for each in found["assignments"]}
    committed = (await fetch_committed(cluster, client, group)).topics
    topics = await topics_of(client, [topic.name for topic in committed]) if committed else []
    ends = await offsets_of(client, topics, LATEST)
    for topic in committed:
        for each in topic.partitions:
            end = ends.get((topic.name, each.partition_index))
            row: OffsetRow = {
                "topic": topic.name,
                "partition": each.partition_index,
                "committed": each.committed_offset,
                "metadata": (each.metadata or "")[:200],
                "committed_ms": -1,
                "member": owners.get(f"{topic.name}-{each.partition_index}", ""),
            }
            if end is not None:
                row |= {"end": end, "lag": max(0, end - each.committed_offset)}
            found["offsets"].append(row)
    found["offsets"].sort(key=lambda each: (each["topic"], each["partition"]))
    return found


async def show_overview(cluster: ClusterServer, call: Call) -> Overview:
    """The brokers and what they lead."""
    client = LocalClient(cluster.broker, cluster.config)
    leads: Counter[int] = Counter()
    in_sync: Counter[int] = Counter()
    partitions = under = 0
    topics = await topics_of(client)
    for each in (each for topic in topics for each in topic.partitions):
        partitions += 1
        leads[each.leader_id] += 1
        in_sync.update(each.isr_nodes)
        under += len(each.isr_nodes) < len(each.replica_nodes)
    up = cluster.broker.nodes.up
    return {
        **describe(cluster),
        "requests": sum(cluster.broker.metrics.counts),
        "topics": len(topics),
        "partitions": partitions,
        "under_replicated": under,
        "clock": await show_clock(cluster, call),
        "nodes": [
            {
                "id": node.node_id,
                "up": node in up,
                "lags": False,
                "paused": False,
                "listeners": ", ".join(f"{name} {host_port(at.host, at.port)}" for name, at in node.listeners.items()),
                "leads": leads[node.node_id],
                "in_sync": in_sync[node.node_id],
            }
            for node in cluster.nodes
        ],
        "features": [],
        "snapshots": [],
    }


def _upstream(cluster: ClusterServer) -> Upstream:
    found: Upstream = cluster.broker.upstream
    return found
