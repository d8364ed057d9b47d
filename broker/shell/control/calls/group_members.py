"""Members of a group of any type: epochs, what each has, since which epoch, and what it shall have."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, Final

from broker.shell.control.routes import RefusedError
from protocol.codegen import codec
from protocol.errors import ErrorCode, MalformedError
from protocol.messages.consumer_group import ConsumerGroupDescribeRequest
from protocol.messages.consumer_protocol import ConsumerProtocolAssignment
from protocol.messages.group_admin import DescribeGroupsRequest
from protocol.messages.share_group import ShareGroupDescribeRequest
from protocol.messages.share_offsets import DescribeShareGroupOffsetsRequest, DescribeShareGroupOffsetsRequestGroup
from protocol.messages.streams_group import StreamsGroupDescribeRequest

if TYPE_CHECKING:
    from broker.asks.rows import GroupDetails, OffsetRow
    from broker.shell.cluster_server import ClusterServer
    from broker.shell.local_client import LocalClient

DESCRIBE: Final[dict[str, tuple[Any, str, int]]] = {
    "classic": (DescribeGroupsRequest, "groups", 6),
    "consumer": (ConsumerGroupDescribeRequest, "group_ids", 1),
    "share": (ShareGroupDescribeRequest, "group_ids", 1),
    "streams": (StreamsGroupDescribeRequest, "group_ids", 0),
}
SHARE_OFFSETS_VERSION: Final = 1
TASKS: Final = {"active_tasks": "", "standby_tasks": " (standby)", "warmup_tasks": " (warm-up)"}


async def describe(cluster: ClusterServer, client: LocalClient, group: str) -> GroupDetails:
    """group, type, state, epochs, protocol, members, assignments, offsets ([]); a group that does not exist is Dead.

    Errors: RefusedError: it has no coordinator. KafkaError: the coordinator loads. StorageError, OSError.
    """
    kind, node_id = await _kind(cluster, client, group)
    answer: GroupDetails = {
        "group": group,
        "type": "",
        "state": "Dead",
        "group_epoch": -1,
        "assignment_epoch": -1,
        "protocol": "",
        "members": [],
        "assignments": [],
        "offsets": [],
    }
    request, field, version = DESCRIBE[kind]
    (found,) = (await client.call(request(**{field: [group]}), version, node_id)).groups
    if found.error_code == ErrorCode.GROUP_ID_NOT_FOUND:
        return answer
    _check(group, found)
    answer |= {
        "type": kind,
        "state": found.group_state,
        "group_epoch": getattr(found, "group_epoch", -1),
        "assignment_epoch": getattr(found, "assignment_epoch", -1),
        "protocol": found.protocol_data if kind == "classic" else getattr(found, "assignor_name", ""),
    }
    places: Callable[[Any], list[str]] = {"classic": classic_places, "streams": _tasks}.get(kind, _partitions)
    for member in found.members:
        target = getattr(member, "target_assignment", None)
        has = member.member_assignment if kind == "classic" else member.assignment
        _add(answer, member, getattr(member, "member_epoch", -1), places(has), target and places(target))
    if kind == "consumer" and cluster.broker.upstream is None:
        _add_epochs(cluster, answer)
    return answer


async def _kind(cluster: ClusterServer, client: LocalClient, group: str) -> tuple[str, int | None]:
    """The kind of a group, and who coordinates it. Errors: as describe."""
    if cluster.broker.upstream is not None:  # another cluster, which tells by what it answers
        for kind in ("consumer", "share", "streams"):
            request, field, version = DESCRIBE[kind]
            if cluster.broker.upstream.serves(request.API_KEY):
                (found,) = (await client.call(request(**{field: [group]}), version)).groups
                if not found.error_code:
                    return kind, None
        return "classic", None
    groups = cluster.broker.groups
    node_id, shard = groups.coordinator_of(group), groups.of(group)
    if all(node.node_id != node_id for node in cluster.broker.nodes.up):
        raise RefusedError(409, f"group {group:.100} has no coordinator: no broker leads {shard.name}")
    shard.require()
    return getattr(shard.machine.groups.get(group), "group_type", "classic"), node_id


def _add(answer: GroupDetails, member: Any, epoch: int, has: list[str], target: list[str] | None) -> None:
    answer["members"].append(
        {
            "member": member.member_id,
            "instance": getattr(member, "instance_id", None) or getattr(member, "group_instance_id", None) or "",
            "client": member.client_id,
            "host": member.client_host,
            "epoch": epoch,
            "has": len(has),
            "target": len(has if target is None else target),
        }
    )
    coming = [] if target is None else [place for place in target if place not in has]
    for place in [*has, *coming]:
        state = "to come" if place in coming else "has" if target is None or place in target else "to give up"
        answer["assignments"].append(
            {
                "partition": place,
                "member": member.member_id,
                "client": member.client_id,
                "since_epoch": -1,
                "state": state,
            }
        )


def _add_epochs(cluster: ClusterServer, answer: GroupDetails) -> None:
    """The epoch at which each partition was assigned, which no request tells."""
    machine = cluster.broker.groups.of(answer["group"]).machine
    group = None if machine is None else machine.groups.get(answer["group"])
    topics = cluster.broker.metadata.topics_by_id
    since = {
        (f"{topics[topic_id].name}-{index}", member_id): epoch
        for member_id, member in ({} if group is None else group.members).items()
        for topic_id, epochs in member.current.assigned.items()
        if topic_id in topics
        for index, epoch in epochs.items()
    }
    for row in answer["assignments"]:
        row["since_epoch"] = since.get((row["partition"], row["member"]), -1)


def _partitions(assignment: Any) -> list[str]:
    return [f"{topic.topic_name}-{index}" for topic in assignment.topic_partitions for index in topic.partitions]


def _tasks(assignment: Any) -> list[str]:
    """Task ids as Kafka Streams writes them: 0_1."""
    return [
        f"{task.subtopology_id}_{index}{mark}"
        for name, mark in TASKS.items()
        for task in getattr(assignment, name)
        for index in task.partitions
    ]


def classic_places(data: bytes) -> list[str]:
    """What a classic consumer's assignment says; nothing where it is none of a consumer."""
    if len(data) < 2:
        return []
    try:
        version = min(int.from_bytes(data[:2], "big"), 3)
        found = codec(ConsumerProtocolAssignment, version).decode(data, 2)[0]
    except (MalformedError, ValueError, IndexError, LookupError):
        return []
    return [f"{topic.topic}-{index}" for topic in found.assigned_partitions for index in topic.partitions]


async def share_offsets(cluster: ClusterServer, client: LocalClient, group: str) -> list[OffsetRow]:
    """The start offsets of a share group, with their lag. Errors: RefusedError."""
    asked = DescribeShareGroupOffsetsRequestGroup(group_id=group, topics=None)
    node_id = cluster.broker.groups.coordinator_of(group)
    request = DescribeShareGroupOffsetsRequest(groups=[asked])
    (found,) = (await client.call(request, SHARE_OFFSETS_VERSION, node_id)).groups
    _check(group, found)
    rows: Iterable[tuple[Any, Any]] = ((topic, each) for topic in found.topics for each in topic.partitions)
    answer: list[OffsetRow] = []
    for topic, each in sorted(rows, key=lambda row: (row[0].topic_name, row[1].partition_index)):
        row: OffsetRow = {
            "topic": topic.topic_name,
            "partition": each.partition_index,
            "committed": each.start_offset,
            "metadata": "",
            "committed_ms": -1,
            "member": "",
        }
        if each.lag >= 0:
            row |= {"end": each.start_offset + each.lag, "lag": each.lag}
        answer.append(row)
    return answer


def _check(group: str, found: Any) -> None:
    if found.error_code:
        raise RefusedError(409, f"group {group:.100}: {ErrorCode(found.error_code).name}")
