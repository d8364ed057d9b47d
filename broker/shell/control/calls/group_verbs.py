"""Handlers that change groups, and wait for what they commit: delete, rebalance, expel a member; offsets, lag."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Final, TypedDict, TypeVar

from broker.asks import groups, topics
from broker.asks.rows import LagRow
from broker.base.context import Context
from broker.coordinator.groups.forced import rebalance as forced
from broker.shell.asking import Asking, ask
from broker.shell.control.calls.group_members import describe
from broker.shell.control.calls.records import LOOK_AGAIN_S, check_answer
from broker.shell.control.routes import Call, RefusedError
from broker.shell.control.waiting import Wait
from protocol.errors import KafkaError

if TYPE_CHECKING:
    from broker.asks.rows import GroupDetails
    from broker.shell.cluster_server import ClusterServer

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
    row = await ask(cluster, groups.delete(group))
    check_answer(row.error_code, f"group {group:.100}")
    return {"group": group}


async def expel_member(cluster: ClusterServer, call: Call) -> Expelled:
    """Remove a member, as if it had left itself: its next request is refused with UNKNOWN_MEMBER_ID.

    `member`: its id, or the id of a static member. Errors: RefusedError.
    """
    group, wanted = call.words["group"], call.body["member"]
    with Asking(cluster) as asking:
        found = await _described(cluster, asking, group)
        for row in found["members"]:
            if wanted in (row["member"], row["instance"]):
                break
        else:
            ids = ", ".join(each["member"] for each in found["members"])
            raise RefusedError(404, f"group {group:.100} has no member {wanted:.100}; there are {ids or 'none'}")
        await asking.ask(groups.remove_member(group, found["type"], row["member"], row["instance"], WHY))
    return {"group": group, "member": row["member"]}


async def rebalance(cluster: ClusterServer, call: Call) -> Rebalanced:
    """Start a rebalance; broker/coordinator/groups/forced.py says what that is. Errors: RefusedError."""
    group = call.words["group"]
    with Asking(cluster) as asking:
        found = await _described(cluster, asking, group)
    if not found["members"]:
        raise RefusedError(409, f"group {group:.100} has no members: there is nothing to rebalance")
    broker = cluster.broker
    shard = broker.groups.of(group)
    shard.apply(forced(shard.machine, group, Context(broker.turn.now_ms, broker.turn.env.rng)))
    return {"group": group, "members": [each["member"] for each in found["members"]]}


async def wait_for_offsets(cluster: ClusterServer, call: Call) -> AwaitedOffsets:
    """Wait until a group has committed these offsets, or later ones. Errors: RefusedError."""
    wanted = {(row["topic"], row["partition"]): row["offset"] for row in call.body["offsets"]}

    async def look(asking: Asking) -> tuple[str, list[WantedRow]]:
        found = await _committed(asking, call.words["group"])
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

    async def look(asking: Asking) -> tuple[str, list[LagRow]]:
        rows = [row for row in await _lags(cluster, asking, group) if topic in (None, row["topic"])]
        lag = sum(row["lag"] for row in rows)
        if not rows:
            return await _nothing_there(asking, topic), rows
        of = ", ".join(f"{row['topic']}-{row['partition']}: {row['lag']}" for row in rows if row["lag"])
        return "" if lag <= most else f"has a lag of {lag} ({of}), not {most}", rows

    why, rows = await _wait(cluster, call, look)
    lag = sum(row["lag"] for row in rows)
    return {"group": group, "lag": lag, "offsets": rows, "met": not why, "why": why and _of(call, f" {why}")}


async def _wait(
    cluster: ClusterServer, call: Call, look: Callable[[Asking], Awaitable[tuple[str, T]]]
) -> tuple[str, T]:
    """Look until there is no "why not", or the time is over. While there is no coordinator or leader, it is not met."""
    with Asking(cluster) as asking, Wait(cluster, call.body.get("timeout_ms", 0), LOOK_AGAIN_S) as wait:
        while True:
            try:
                why, found = await look(asking)
                if not why or wait.is_over:
                    return why, found
            except (KafkaError, RefusedError) as error:  # another broker may lead soon
                if wait.is_over:
                    raise RefusedError(409, str(error) or type(error).__name__) from None
            await wait.pause()


async def _nothing_there(asking: Asking, topic: str | None) -> str:
    """Why a group has no lag: which partitions it has neither committed nor given to a member."""
    if topic is None:
        return "has committed no offset, and its members have no partition"
    partitions = sorted(await asking.ask(topics.leaders_of(topic)))
    if not partitions:
        return f"has no partition of {topic:.100}: there is no such topic"
    names = ", ".join(f"{topic:.100}-{each}" for each in partitions[:MOST_NAMED])
    more = f" and {len(partitions) - MOST_NAMED} more" if len(partitions) > MOST_NAMED else ""
    return f"has committed no offset of {names}{more}, and its members have none of them"


async def _lags(cluster: ClusterServer, asking: Asking, group: str) -> list[LagRow]:
    found = await describe(cluster, asking, group)
    if found["type"] == "share":
        return [
            {
                "topic": row["topic"],
                "partition": row["partition"],
                "committed": row["committed"],
                "end": row.get("end", 0),
                "lag": row.get("lag", 0),
            }
            for row in await asking.ask(groups.share_offsets(group))
        ]
    committed = await _committed(asking, group)
    places = committed | {place: -1 for place in _assigned(found) if place not in committed}
    known = (await asking.ask(topics.metadata(sorted({topic for topic, _ in places})))).topics if places else []
    leaders = {
        (topic.name or "", each.partition_index): each.leader_id
        for topic in known
        for each in topic.partitions
        if (topic.name, each.partition_index) in places  # one that is gone, no client reads
    }
    firsts, ends = [await asking.ask(topics.offsets_of(leaders, at)) for at in (topics.EARLIEST, topics.LATEST)]
    rows: list[LagRow] = []
    for (topic, index), offset in sorted(places.items()):
        if (topic, index) not in leaders:
            continue
        first, end = (found.get((topic, index)) for found in (firsts, ends))
        if first is None or end is None:
            raise RefusedError(409, f"{topic}-{index}: LEADER_NOT_AVAILABLE")
        check_answer(first.error_code or end.error_code, f"{topic}-{index}")
        lag = max(0, end.offset - max(offset, first.offset))
        rows.append({"topic": topic, "partition": index, "committed": offset, "end": end.offset, "lag": lag})
    return rows


def _assigned(found: GroupDetails) -> list[Place]:
    if found["type"] == "streams":
        return []  # its members have tasks; what they read is committed
    places = (each["partition"].rpartition("-") for each in found["assignments"])
    return [(topic, int(index)) for topic, _, index in places]


async def _committed(asking: Asking, group: str) -> dict[Place, int]:
    rows = await asking.ask(groups.committed(group))
    return {(topic.name, each.partition_index): each.committed_offset for topic in rows for each in topic.partitions}


async def _described(cluster: ClusterServer, asking: Asking, group: str) -> GroupDetails:
    """Errors: RefusedError: there is no such group, or its coordinator does not answer."""
    try:
        found = await describe(cluster, asking, group)
    except KafkaError as error:
        raise RefusedError(409, f"group {group:.100}: {error}") from None
    if found["state"] == "Dead":
        raise RefusedError(404, f"there is no group {group:.100}")
    return found
