"""Handlers of groups, so that a test can look without a client: state, members, committed offsets; wait for a state."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from broker.shell.control.calls.records import LOOK_AGAIN_S
from broker.shell.control.of_cluster.groups import STATES
from broker.shell.control.routes import Call, RefusedError
from broker.shell.control.waiting import Wait
from broker.shell.local_client import LocalClient
from protocol.errors import ErrorCode
from protocol.messages.consumer_group import ConsumerGroupDescribeRequest
from protocol.messages.group_admin import DescribeGroupsRequest, ListGroupsRequest
from protocol.messages.offsets import OffsetFetchRequest, OffsetFetchRequestGroup
from protocol.messages.share_group import ShareGroupDescribeRequest
from protocol.messages.streams_group import StreamsGroupDescribeRequest

if TYPE_CHECKING:
    from broker.shell.cluster_server import ClusterServer

DESCRIBE: Final[dict[str, Any]] = {
    "classic": (DescribeGroupsRequest, "groups", 5),
    "consumer": (ConsumerGroupDescribeRequest, "group_ids", 1),
    "share": (ShareGroupDescribeRequest, "group_ids", 1),
    "streams": (StreamsGroupDescribeRequest, "group_ids", 0),
}
LIST_VERSION: Final = 5
OFFSETS_VERSION: Final = 9  # by topic name


async def show_group(cluster: ClusterServer, call: Call) -> dict[str, Any]:
    """A group's state and members; a group that does not exist is Dead."""
    client = LocalClient(cluster.broker, cluster.config)
    try:
        return await _describe(cluster, client, call.words["group"])
    finally:
        client.close()


async def wait_for_group(cluster: ClusterServer, call: Call) -> dict[str, Any]:
    """Wait until a group has a state, and so many members. Errors: RefusedError."""
    body = call.body
    state, members, timeout_ms = STATES.get(body["state"]), body.get("members"), body.get("timeout_ms", 0)
    if state is None:
        raise RefusedError(400, f'"state" takes one of {", ".join(STATES)}')
    client = LocalClient(cluster.broker, cluster.config)
    try:
        with Wait(cluster, timeout_ms, LOOK_AGAIN_S) as wait:
            while True:
                found = await _describe(cluster, client, call.words["group"])
                reached = found["state"] == state and members in (None, len(found["members"]))
                if reached or wait.is_over:
                    return {**found, "reached": reached}
                await wait.pause()
    finally:
        client.close()


async def _describe(cluster: ClusterServer, client: LocalClient, group: str) -> dict[str, Any]:
    node_id = cluster.broker.groups.coordinator_of(group)
    listed = await client.call(ListGroupsRequest(), LIST_VERSION, node_id)
    for row in listed.groups:
        if row.group_id == group:
            break
    else:
        return {"group": group, "state": "Dead", "type": "", "members": []}
    state, members = row.group_state, list[str]()
    if row.group_type in DESCRIBE:
        request, field, version = DESCRIBE[row.group_type]
        (described,) = (await client.call(request(**{field: [group]}), version, node_id)).groups
        # of the same moment as the members: both answers wait for syncs, and the group may change between them
        state = "Dead" if described.error_code == ErrorCode.GROUP_ID_NOT_FOUND else described.group_state
        members = [member.member_id for member in described.members]
    return {"group": group, "state": state, "type": row.group_type, "members": members}


async def committed(cluster: ClusterServer, call: Call) -> list[dict[str, Any]]:
    """The offsets that a group has committed. Errors: RefusedError."""
    group = call.words["group"]
    client = LocalClient(cluster.broker, cluster.config)
    request = OffsetFetchRequest(groups=[OffsetFetchRequestGroup(group_id=group, topics=None)])
    try:
        answer = await client.call(request, OFFSETS_VERSION, cluster.broker.groups.coordinator_of(group))
    finally:
        client.close()
    row = answer.groups[0]
    if row.error_code:
        raise RefusedError(409, f"group {group}: {ErrorCode(row.error_code).name}")
    return [
        {
            "topic": topic.name,
            "partition": each.partition_index,
            "offset": each.committed_offset,
            "metadata": each.metadata or "",
        }
        for topic in sorted(row.topics, key=lambda topic: str(topic.name))
        for each in sorted(topic.partitions, key=lambda each: int(each.partition_index))
    ]
