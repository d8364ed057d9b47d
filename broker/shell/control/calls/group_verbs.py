"""Handlers that change groups, and wait for what they commit: delete, rebalance, expel a member; offsets, lag."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any, Final, TypedDict, TypeVar

from broker.asks.rows import LagRow
from broker.base.context import Context
from broker.coordinator.groups.forced import rebalance as forced
from broker.shell.control.calls.group_members import describe, share_offsets
from broker.shell.control.calls.groups import fetch_committed
from broker.shell.control.calls.records import EARLIEST, LATEST, LOOK_AGAIN_S, leaders_of, offset_at
from broker.shell.control.routes import Call, RefusedError
from broker.shell.control.waiting import Wait
from broker.shell.local_client import LocalClient
from protocol.errors import ErrorCode, KafkaError
from protocol.messages.classic_group import LeaveGroupRequest, MemberIdentity
from protocol.messages.consumer_group import ConsumerGroupHeartbeatRequest
from protocol.messages.group_admin import DeleteGroupsRequest
from protocol.messages.share_group import ShareGroupHeartbeatRequest
from protocol.messages.streams_group import StreamsGroupHeartbeatRequest

if TYPE_CHECKING:
    from broker.asks.rows import GroupDetails
    from broker.shell.cluster_server import ClusterServer

DELETE_VERSION, LEAVE_VERSION = 2, 5
LEAVING_EPOCH: Final = -1
# how a member of such a group leaves: its own heartbeat with the epoch of those who leave
HEARTBEATS: Final[dict[str, tuple[Any, int]]] = {
    "consumer": (ConsumerGroupHeartbeatRequest, 1),
    "share": (ShareGroupHeartbeatRequest, 1),
    "streams": (StreamsGroupHeartbeatRequest, 0),
}
MOST_NAMED: Final = 10
WHY: Final = "a test has expelled it"

Place = tuple[str, int]  # topic and partition
T = TypeVar("T")


class NamedGroup(TypedDict):
    """The id of a group."""

    group: str


class Rebalanced(NamedGroup):
    """A group that rebalances, with its members."""

    members: list[str]


class Expelled(NamedGroup):
    """A member that was expelled."""

    member: str


class WantedRow(TypedDict):
    """What a group has committed (-1: nothing), and what is waited for."""

    topic: str
    partition: int
    offset: int
    wanted: int


class AwaitedOffsets(NamedGroup):
    """Offsets that were waited for."""

    offsets: list[WantedRow]
    met: bool
    why: str


class AwaitedLag(NamedGroup):
    """A lag that was waited for, with the partitions that it is made of."""

    lag: int
    offsets: list[LagRow]
    met: bool
    why: str


async def delete_group(cluster: ClusterServer, call: Call) -> NamedGroup:
    """Delete a group without members, with its offsets. Errors: RefusedError."""
    group = call.words["group"]
    async with _Asked(cluster) as client:
        request = DeleteGroupsRequest(groups_names=[group])
        (row,) = (await client.call(request, DELETE_VERSION, cluster.broker.groups.coordinator_of(group))).results
    _check(group, row.error_code)
    return {"group": group}


async def expel_member(cluster: ClusterServer, call: Call) -> Expelled:
    """Remove a member, as if it had left itself: its next request is refused with UNKNOWN_MEMBER_ID.

    `member`: its id, or the id of a static member. Errors: RefusedError.
    """
    group, wanted = call.words["group"], call.body["member"]
    async with _Asked(cluster) as client:
        found = await _described(cluster, client, group)
        for row in found["members"]:
            if wanted in (row["member"], row["instance"]):
                break
        else:
            ids = ", ".join(each["member"] for each in found["members"])
            raise RefusedError(404, f"group {group:.100} has no member {wanted:.100}; there are {ids or 'none'}")
        member, node_id = row["member"], cluster.broker.groups.coordinator_of(group)
        if found["type"] == "classic":
            leaving = [MemberIdentity(member_id=member, reason=WHY)]
            answer = await client.call(LeaveGroupRequest(group_id=group, members=leaving), LEAVE_VERSION, node_id)
            _check(group, answer.error_code or answer.members[0].error_code)
        else:
            kind, version = HEARTBEATS[found["type"]]
            words = {"group_id": group, "member_id": member, "member_epoch": LEAVING_EPOCH}
            if found["type"] != "share" and row["instance"]:
                words["instance_id"] = row["instance"]
            answer = await client.call(kind(**words), version, node_id)
            _check(group, answer.error_code)
    return {"group": group, "member": member}


async def rebalance(cluster: ClusterServer, call: Call) -> Rebalanced:
    """Start a rebalance; broker/coordinator/groups/forced.py says what that is. Errors: RefusedError."""
    group = call.words["group"]
    async with _Asked(cluster) as client:
        found = await _described(cluster, client, group)
    if not found["members"]:
        raise RefusedError(409, f"group {group:.100} has no members: there is nothing to rebalance")
    broker = cluster.broker
    shard = broker.groups.of(group)
    shard.apply(forced(shard.machine, group, Context(broker.turn.now_ms, broker.turn.env.rng)))
    return {"group": group, "members": [each["member"] for each in found["members"]]}


async def wait_for_offsets(cluster: ClusterServer, call: Call) -> AwaitedOffsets:
    """Wait until a group has committed these offsets, or later ones. Errors: RefusedError."""
    wanted = {(row["topic"], row["partition"]): row["offset"] for row in call.body["offsets"]}

    async def look(client: LocalClient) -> tuple[str, list[WantedRow]]:
        found = await _committed(cluster, client, call.words["group"])
        rows: list[WantedRow] = [
            {"topic": topic, "partition": index, "offset": found.get((topic, index), -1), "wanted": offset}
            for (topic, index), offset in wanted.items()
        ]
        late = [row for row in rows if row["offset"] < row["wanted"]]
        parts = [
            f"{row['topic']}-{row['partition']} is at {_place(row['offset'])}, not {row['wanted']}" for row in late
        ]
        return "; ".join(parts), rows

    why, rows = await _wait(cluster, call, look)
    return {"group": call.words["group"], "offsets": rows, "met": not why, "why": why and _of(call, f": {why}")}


def _of(call: Call, words: str) -> str:
    return f"group {call.words['group']:.100}{words}"


def _place(offset: int) -> str:
    return "none" if offset < 0 else str(offset)


async def wait_for_lag(cluster: ClusterServer, call: Call) -> AwaitedLag:
    """Wait until a group is at most so many records after the ends of its partitions. Errors: RefusedError.

    Its partitions are those that it has committed and those that its members have, all or those of one topic; where
    nothing is committed, all records of the partition count. A group that has none of them is not there yet.
    """
    group, topic, most = call.words["group"], call.body.get("topic"), call.body["lag"]
    if most < 0:
        raise RefusedError(400, '"lag" takes 0 or more')

    async def look(client: LocalClient) -> tuple[str, list[LagRow]]:
        rows = [row for row in await _lags(cluster, client, group) if topic in (None, row["topic"])]
        lag = sum(row["lag"] for row in rows)
        if not rows:
            return await _nothing_there(client, topic), rows
        of = ", ".join(f"{row['topic']}-{row['partition']}: {row['lag']}" for row in rows if row["lag"])
        return "" if lag <= most else f"has a lag of {lag} ({of}), not {most}", rows

    why, rows = await _wait(cluster, call, look)
    lag = sum(row["lag"] for row in rows)
    return {"group": group, "lag": lag, "offsets": rows, "met": not why, "why": why and _of(call, f" {why}")}


async def _wait(
    cluster: ClusterServer, call: Call, look: Callable[[LocalClient], Awaitable[tuple[str, T]]]
) -> tuple[str, T]:
    """Look until there is no "why not", or the time is over. While there is no coordinator or leader, it is not met."""
    async with _Asked(cluster) as client:
        with Wait(cluster, call.body.get("timeout_ms", 0), LOOK_AGAIN_S) as wait:
            while True:
                try:
                    why, found = await look(client)
                    if not why or wait.is_over:
                        return why, found
                except (KafkaError, RefusedError) as error:  # another broker may lead soon
                    if wait.is_over:
                        raise RefusedError(409, str(error) or type(error).__name__) from None
                await wait.pause()


async def _nothing_there(client: LocalClient, topic: str | None) -> str:
    """Why a group has no lag: which partitions it has neither committed nor given to a member."""
    if topic is None:
        return "has committed no offset, and its members have no partition"
    partitions = sorted(await leaders_of(client, topic))
    if not partitions:
        return f"has no partition of {topic:.100}: there is no such topic"
    names = ", ".join(f"{topic:.100}-{each}" for each in partitions[:MOST_NAMED])
    more = f" and {len(partitions) - MOST_NAMED} more" if len(partitions) > MOST_NAMED else ""
    return f"has committed no offset of {names}{more}, and its members have none of them"


async def _lags(cluster: ClusterServer, client: LocalClient, group: str) -> list[LagRow]:
    found = await describe(cluster, client, group)
    if found["type"] == "share":
        shared = await share_offsets(cluster, client, group)
        return [
            {
                "topic": row["topic"],
                "partition": row["partition"],
                "committed": row["committed"],
                "end": row.get("end", 0),
                "lag": row.get("lag", 0),
            }
            for row in shared
        ]
    committed = await _committed(cluster, client, group)
    places = committed | {place: -1 for place in _assigned(found) if place not in committed}
    leaders = {topic: await leaders_of(client, topic) for topic in sorted({topic for topic, _ in places})}
    rows: list[LagRow] = []
    for (topic, index), offset in sorted(places.items()):
        leader = leaders[topic].get(index)
        if leader is None:
            continue  # the topic is gone, and no client reads it
        end = await offset_at(client, topic, index, leader, LATEST)
        first = max(offset, await offset_at(client, topic, index, leader, EARLIEST))
        rows.append({"topic": topic, "partition": index, "committed": offset, "end": end, "lag": max(0, end - first)})
    return rows


def _assigned(found: GroupDetails) -> list[Place]:
    if found["type"] == "streams":
        return []  # its members have tasks; what they read is committed
    places = (each["partition"].rpartition("-") for each in found["assignments"])
    return [(topic, int(index)) for topic, _, index in places]


async def _committed(cluster: ClusterServer, client: LocalClient, group: str) -> dict[Place, int]:
    row = await fetch_committed(cluster, client, group)
    return {
        (topic.name, each.partition_index): each.committed_offset for topic in row.topics for each in topic.partitions
    }


async def _described(cluster: ClusterServer, client: LocalClient, group: str) -> GroupDetails:
    """Errors: RefusedError: there is no such group, or its coordinator does not answer."""
    try:
        found = await describe(cluster, client, group)
    except KafkaError as error:
        raise RefusedError(409, f"group {group:.100}: {error}") from None
    if found["state"] == "Dead":
        raise RefusedError(404, f"there is no group {group:.100}")
    return found


class _Asked:
    """A client of the control plane's own, as a context."""

    def __init__(self, cluster: ClusterServer) -> None:
        self._client = LocalClient(cluster.broker, cluster.config)

    async def __aenter__(self) -> LocalClient:
        return self._client

    async def __aexit__(self, *_: object) -> None:
        self._client.close()


def _check(group: str, code: int) -> None:
    if code:
        raise RefusedError(409, f"group {group:.100}: {ErrorCode(code).name}")
