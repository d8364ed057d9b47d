"""Moves the offsets of a group without members: says where they would go, or commits that."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, TypedDict

from broker.asks import groups
from broker.asks.topics import offset_at
from broker.base.seek import Facts, target
from broker.shell.asking import Asking
from broker.shell.control.calls.group_members import describe
from broker.shell.control.routes import Call, RefusedError
from broker.shell.page.topics import UNREADABLE, bounds

if TYPE_CHECKING:
    from broker.broker import Broker
    from broker.cluster.topics import Topic
    from broker.coordinator.groups.machine import GroupMachine
    from broker.shell.cluster_server import ClusterServer

WORDS: Final = ("earliest", "latest", "offset", "shift", "time")
WITH_NUMBER: Final = ("offset", "shift", "time")


class MoveRow(TypedDict):
    """Where an offset is (-1: nowhere) and where it goes, with what there is to say about it."""

    topic: str
    partition: int
    before: int
    after: int
    remark: str


class Seek(TypedDict):
    """What was moved, or would be."""

    group: str
    dry_run: bool
    plan: list[MoveRow]


async def seek(cluster: ClusterServer, call: Call) -> Seek:
    """Where each partition goes; unless it is a dry run that is committed, all in one request. Errors: RefusedError."""
    group, body, broker = call.words["group"], call.body, cluster.broker
    word, dry_run = body["to"], body.get("dry_run", False)
    if word not in WORDS or (word in WITH_NUMBER) != ("number" in body):
        raise RefusedError(400, f'"to" takes {", ".join(WORDS)}; "number" goes with {", ".join(WITH_NUMBER)} alone')
    with Asking(cluster) as asking:
        described = await describe(cluster, asking, group)
        if described["members"]:
            raise RefusedError(409, f"group {group:.100} is {described['state']}: stop its members first")
        machine = broker.groups.of(group).machine
        plan: list[MoveRow] = []
        is_share = described["type"] == "share"
        starts = await _starts(asking, group) if is_share else _committed(machine, group)
        for topic, index in _places(broker, starts, body):
            before = starts.get((topic, index), -1)
            after, remark = await _target(broker, asking, topic, index, before, word, body.get("number", 0))
            plan.append({"topic": topic, "partition": index, "before": before, "after": after, "remark": remark})
        if not dry_run and plan:
            after_of = {(row["topic"], row["partition"]): row["after"] for row in plan}
            if is_share:
                await asking.ask(groups.move_share_group(group, after_of))
            else:
                commits = [groups.Commit(*place, offset) for place, offset in after_of.items()]
                for refused in await asking.ask(groups.commit(group, commits)):
                    raise RefusedError(409, f"group {group:.100}: {refused}")
    return {"group": group, "dry_run": dry_run, "plan": plan}


def _committed(machine: GroupMachine | None, group: str) -> dict[tuple[str, int], int]:
    """What a group has committed, by topic and partition."""
    known = {} if machine is None else machine.offsets.partitions(group)
    found = {}
    for topic, indexes in known.items():
        for index in indexes:
            offset = None if machine is None else machine.offsets.get(group, topic, index)
            if offset is not None:
                found[topic, index] = offset.offset
    return found


async def _starts(asking: Asking, group: str) -> dict[tuple[str, int], int]:
    """Where a share group starts in each partition that it knows; -1: that is not settled. Errors: RefusedError."""
    rows = await asking.ask(groups.share_offsets(group))
    return {(row["topic"], row["partition"]): row["committed"] for row in rows}


def _places(broker: Broker, known: dict[tuple[str, int], int], body: dict[str, Any]) -> list[tuple[str, int]]:
    """The partitions that are moved: those named, or all of the topic, or all that are committed."""
    if "topic" not in body:
        if "partitions" in body:
            raise RefusedError(400, '"partitions" goes with "topic"')
        return sorted(known)
    topic = broker.metadata.topics.get(body["topic"])
    if topic is None:
        raise RefusedError(404, f"no such topic: {body['topic']:.100}")
    indexes = body.get("partitions", range(len(topic.partitions)))
    for index in indexes:
        if not 0 <= index < len(topic.partitions):
            raise RefusedError(404, f"{topic.name} has no partition {index}, but 0 to {len(topic.partitions) - 1}")
    return [(topic.name, index) for index in sorted(set(indexes))]


async def _target(
    broker: Broker, asking: Asking, topic_name: str, index: int, before: int, word: str, number: int
) -> tuple[int, str]:
    """Where a partition goes, and what there is to say about it. Errors: RefusedError."""
    topic = broker.metadata.topics.get(topic_name)
    if topic is None or index >= len(topic.partitions):
        raise RefusedError(409, f"{topic_name}-{index} is committed, but not there any more")
    first, end = _bounds(broker, topic, index)
    at_time = None
    if word == "time":
        found = await asking.ask(offset_at(topic_name, index, number))
        at_time = found if found >= 0 else None
    try:
        after, remark = target(word, number, Facts(before if before >= 0 else None, first, end, at_time))
    except ValueError as error:
        raise RefusedError(409, f"{topic_name}-{index}: {error}") from None
    return after, remark or ""


def _bounds(broker: Broker, topic: Topic, index: int) -> tuple[int, int]:
    """Where a partition begins and ends. Errors: RefusedError: its log cannot be read."""
    try:
        return bounds(broker, topic, index)
    except UNREADABLE as error:
        why = str(error) or type(error).__name__
        raise RefusedError(409, f"the log of {topic.name}-{index} cannot be read: {why}") from None
