"""The groups view: groups of all types with members and lag, one group with its offsets and dead-letter queue."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final, TypedDict

from broker.asks import groups
from broker.asks.rows import DeadLetters, GroupDetails, GroupRow, GroupRows, OffsetRow
from broker.cluster.topic_names import OFFSETS_TOPIC
from broker.coordinator.share.dead_letters.addressee import has_queue, objection, queue_of, wants_copies
from broker.coordinator.share.in_flight import ARCHIVING
from broker.coordinator.share.state import Key
from broker.handlers.group_admin import listed
from broker.shell.asking import Asking, ask
from broker.shell.control.calls.group_members import describe
from broker.shell.control.routes import Call, RefusedError
from broker.shell.metrics.gauges import commits
from broker.shell.page.topics import UNREADABLE, bounds
from broker.shell.page.windows import number, slices, window

MOST_OFFSETS: Final = 100_000  # that one look at the lag of all groups reads: about a second of work, in slices
MOST_LAGGING, MOST_SHOWN = 10, 100


class LaggingRow(TypedDict):
    """A group, and how many records it is after the ends of what it has committed."""

    group: str
    state: str
    lag: int


class Lagging(TypedDict):
    """Groups with lag, the largest first; `looked_at` of `total` groups, where their offsets are very many."""

    groups: list[LaggingRow]
    looked_at: int
    total: int


if TYPE_CHECKING:
    from broker.broker import Broker
    from broker.coordinator.groups.machine import GroupMachine
    from broker.shell.cluster_server import ClusterServer


async def list_groups(cluster: ClusterServer, call: Call) -> GroupRows:
    """A window on the groups; lag is that of all partitions that a group has committed, if all ends are known."""
    found, loading = await _all_groups(cluster)
    names, offset, total = await window(cluster, call, found)
    rows: list[GroupRow] = []
    for name in names:
        machine, state, kind = found[name]
        group = machine.groups.get(name)
        lags = await _lags(cluster, machine, name, kind)
        row: GroupRow = {
            "group": name,
            "type": kind,
            "state": state,
            "members": 0 if group is None else len(group.members),
            "partitions": len(lags),
        }
        if None not in lags:
            row["lag"] = sum(each for each in lags if each is not None)
        rows.append(row)
    return {"offset": offset, "total": total, "loading": loading, "groups": rows}


async def _all_groups(cluster: ClusterServer) -> tuple[dict[str, tuple[GroupMachine, str, str]], int]:
    """Group -> its machine, state and type; and how many logs of groups are loading, or cannot be read."""
    broker = cluster.broker
    found: dict[str, tuple[GroupMachine, str, str]] = {}
    loading = 0
    for index, made in enumerate(broker.groups.shards.made):
        if (made is None or made.machine is None) and not broker.directory.exists(OFFSETS_TOPIC, index):
            continue  # no record was written to it
        shard = broker.groups.shards[index]
        try:
            shard.require()
        except UNREADABLE:
            loading += 1
            continue
        machine = shard.machine  # a shard that moves in between has none for a moment
        async for name, _, state, kind in slices(cluster, list(listed(machine, shard.log.end_offset))):
            found[name] = machine, state, kind
    return found, loading


async def _lags(cluster: ClusterServer, machine: GroupMachine, group: str, kind: str) -> list[int | None]:
    """The lag of each partition that a group has committed; None where the end is not known."""
    lags = list[int | None]()
    if kind == "share":
        lags.extend(await _share_lags(cluster, group))
    async for topic, index, committed in slices(cluster, commits(machine, group)):
        end = end_of(cluster.broker, topic, index)
        lags.append(None if end is None else max(0, end - committed))
    return lags


async def _share_lags(cluster: ClusterServer, group: str) -> list[int | None]:
    """The lag of each partition of a share group, which commits nothing; None where it is not known."""
    try:
        return [row.get("lag") for row in await ask(cluster, groups.share_offsets(group))]
    except (RefusedError, *UNREADABLE):
        return [None]


def end_of(broker: Broker, topic: str, index: int) -> int | None:
    """The high watermark of a partition. None: there is no such partition, or its log cannot be read."""
    found = broker.metadata.topics.get(topic)
    if found is None or index >= len(found.partitions):
        return None
    try:
        return bounds(broker, found, index)[1]
    except UNREADABLE:
        return None


async def show_group(cluster: ClusterServer, call: Call) -> GroupDetails:
    """State, epochs, members with what they have and shall have, and offsets with lag; an unknown group is Dead.

    Of a share group also `dead_letters`: the queue, why it cannot be written to, and of each offset how many records
    are on their way there (`archiving`).
    """
    name, broker = call.words["group"], cluster.broker
    with Asking(cluster) as asking:
        described = await describe(cluster, asking, name)
        described["assignments"].sort(key=lambda each: (_natural(each["partition"]), each["state"]))
        if described["type"] == "share":
            described["offsets"] = await asking.ask(groups.share_offsets(name))
            described["dead_letters"] = _dead_letters(broker, name, described["offsets"])
            return described
    owners = {each["partition"]: each["member"] for each in described["assignments"]}
    machine = broker.groups.of(name).machine
    offsets = described["offsets"]
    async for topic, index, committed in slices(cluster, () if machine is None else commits(machine, name)):
        found = machine.offsets.get(name, topic, index)
        if found is None:
            continue
        end = end_of(broker, topic, index)
        row: OffsetRow = {
            "topic": topic,
            "partition": index,
            "committed": committed,
            "metadata": found.metadata[:200],
            "committed_ms": found.commit_timestamp_ms,
            "member": owners.get(f"{topic}-{index}", ""),
        }
        if end is not None:
            row |= {"end": end, "lag": max(0, end - committed)}
        offsets.append(row)
    known = {(each["topic"], each["partition"]) for each in offsets}
    for place, member in groups.held_partitions(owners).items():
        if place not in known and place[0] in broker.metadata.topics:
            offsets.append(groups.not_committed(place, member, end_of(broker, *place)))
    offsets.sort(key=lambda each: (each["topic"], each["partition"]))
    return described


async def show_lagging(cluster: ClusterServer, call: Call) -> Lagging:
    """The groups that are furthest after the ends of what they have committed, and how many groups were looked at."""
    most, left = number(call, "limit", MOST_LAGGING, MOST_SHOWN, 1), MOST_OFFSETS
    found, rows = (await _all_groups(cluster))[0], list[LaggingRow]()
    for name, (machine, state, kind) in found.items():
        if left <= 0:
            break
        lags = await _lags(cluster, machine, name, kind)
        left -= 1 + len(lags)
        rows.append({"group": name, "state": state, "lag": sum(each for each in lags if each is not None)})
    return furthest(rows, most, len(found))


def furthest(rows: list[LaggingRow], most: int, total: int) -> Lagging:
    """Those with a lag, the largest first."""
    found = sorted((each for each in rows if each["lag"]), key=lambda each: (-each["lag"], each["group"]))
    return {"groups": found[:most], "looked_at": len(rows), "total": total}


def _natural(place: str) -> list[tuple[bool, int, str]]:
    """A key by which "orders-2" comes before "orders-10"."""
    return [
        (part.isdecimal(), int(part) if part.isdecimal() else 0, part) for part in re.split(r"([0-9]+)", place) if part
    ]


def _dead_letters(broker: Broker, group: str, offsets: list[OffsetRow]) -> DeadLetters:
    """The queue of a share group ("": none) and what keeps letters from it; each offset gets `archiving`."""
    metadata = broker.metadata
    for row in offsets:
        topic = metadata.topics.get(row["topic"])
        key = Key(group, b"" if topic is None else topic.topic_id, row["partition"])
        try:
            state = broker.share.coordinator.state(key)
        except UNREADABLE:
            state = None
        stretches = () if state is None else state.batches
        row["archiving"] = sum(last - first + 1 for first, last, found, _ in stretches if found == ARCHIVING)
    queue = queue_of(metadata, group)
    if not queue:
        return {"queue": "", "exists": False, "copies": False, "why_not": ""}
    why_not = objection(metadata, group) if has_queue(metadata, group) else "share.version is below 2"
    return {
        "queue": queue,
        "exists": queue in metadata.topics,
        "copies": wants_copies(metadata, group),
        "why_not": why_not or "",
    }
