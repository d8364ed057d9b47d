"""The handler that says what is different between two clusters of the process, or snapshots of them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple, NotRequired, TypedDict

from broker.shell.cluster_server import DEFAULT_CLUSTER
from broker.shell.control.calls.groups import committed, show_group
from broker.shell.control.calls.records import Record, consume
from broker.shell.control.routes import Call, find_cluster
from broker.shell.page.groups import list_groups
from broker.shell.page.topics import list_topics, show_topic

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from broker.shell.cluster_server import ClusterServer

PAGE: Final = 200  # rows of a list that is told in windows
OF_TOPIC: Final = "topic"  # a setting's source


class _State(NamedTuple):
    """What is compared of one side."""

    topics: dict[tuple[str], int]
    settings: dict[tuple[str, str], str]
    records: dict[tuple[str, int], list[Record]]
    offsets: dict[tuple[str, str, int], int]
    members: dict[tuple[str], list[str]]


class TopicDifference(TypedDict):
    """Partitions of a topic on each side that has it."""

    topic: str
    first: NotRequired[int]
    second: NotRequired[int]


class SettingDifference(TypedDict):
    """A setting of a topic on each side that sets it."""

    topic: str
    name: str
    first: NotRequired[str]
    second: NotRequired[str]


class RecordDifference(TypedDict):
    """Records of a partition on each side, after the last that both have in the same place."""

    topic: str
    partition: int
    first: list[Record]
    second: list[Record]


class OffsetDifference(TypedDict):
    """What a group has committed on each side."""

    group: str
    topic: str
    partition: int
    first: NotRequired[int]
    second: NotRequired[int]


class MemberDifference(TypedDict):
    """Members of a group on each side."""

    group: str
    first: NotRequired[list[str]]
    second: NotRequired[list[str]]


class Difference(TypedDict):
    """What is different between two sides."""

    different: bool
    topics: list[TopicDifference]
    settings: list[SettingDifference]
    records: list[RecordDifference]
    offsets: list[OffsetDifference]
    members: list[MemberDifference]


async def diff(process: Any, call: Call) -> Difference:
    """Compare two sides: clusters as they are now, snapshots as they were. A snapshot has no members.

    process   that of the clusters, in which snapshots are forked.

    Internal topics are left out, but for what groups have committed. Errors: RefusedError: there is no such side; a
    topic was deleted, or a cluster reset, meanwhile.
    """
    first, second = [await _state(process, call.body[side]) for side in ("first", "second")]
    is_of_the_past = any("snapshot" in call.body[side] for side in ("first", "second"))
    found: Difference = {
        "different": False,
        "topics": _rows(("topic",), first.topics, second.topics),
        "settings": _rows(("topic", "name"), first.settings, second.settings),
        "records": _record_rows(first, second),
        "offsets": _rows(("group", "topic", "partition"), first.offsets, second.offsets),
        "members": [] if is_of_the_past else _rows(("group",), first.members, second.members),
    }
    return {**found, "different": any(found.values())}


async def _state(process: Any, side: dict[str, str]) -> _State:
    cluster = find_cluster(process, side.get("cluster", DEFAULT_CLUSTER))
    if "snapshot" not in side:
        return await _state_of(cluster)
    as_it_was = await process.fork(cluster, None, snapshot=side["snapshot"])
    try:
        return await _state_of(as_it_was)
    finally:
        await process.remove(as_it_was.name)


async def _state_of(cluster: ClusterServer) -> _State:
    found = _State({}, {}, {}, {}, {})
    for row in await _all(cluster, list_topics, "topics"):
        name = row["topic"]
        if row["internal"]:
            continue
        found.topics[(name,)] = row["partitions"]
        described = await show_topic(cluster, Call({"topic": name}, {}, {}))
        for each in described["configs"]:
            if each["source"] == OF_TOPIC:
                found.settings[name, each["name"]] = each["value"]
        body: dict[str, Any] = {}
        is_more = True
        while is_more:
            answer = await consume(cluster, Call({"topic": name}, {}, body))
            for record in answer["records"]:
                found.records.setdefault((name, record["partition"]), []).append(record)
            body, is_more = {"offsets": answer["offsets"], "source": answer["source"]}, answer["more"]
    for row in await _all(cluster, list_groups, "groups"):
        group = row["group"]
        asked = Call({"group": group}, {}, {})
        for place in await committed(cluster, asked) if row["type"] != "share" else ():
            found.offsets[group, place["topic"], place["partition"]] = place["offset"]
        if members := (await show_group(cluster, asked))["members"]:
            found.members[(group,)] = sorted(members)
    return found


async def _all(cluster: ClusterServer, ask: Callable[[ClusterServer, Call], Awaitable[Any]], what: str) -> list[Any]:
    rows: list[Any] = []
    while True:
        answer = await ask(cluster, Call({}, {"offset": str(len(rows)), "limit": str(PAGE)}, {}))
        rows += answer[what]
        if len(rows) >= answer["total"] or not answer[what]:
            return rows


def _rows(names: tuple[str, ...], first: dict[Any, Any], second: dict[Any, Any]) -> list[Any]:
    """A row for each key whose value differs, with the values that there are."""
    rows = []
    for key in sorted(first.keys() | second.keys()):
        values = {side: found[key] for side, found in (("first", first), ("second", second)) if key in found}
        if len(values) < 2 or values["first"] != values["second"]:
            rows.append({**dict(zip(names, key, strict=True)), **values})
    return rows


def _record_rows(first: _State, second: _State) -> list[RecordDifference]:
    """Of each partition the records after the last that both have in the same place. Their times do not count."""
    rows: list[RecordDifference] = []
    for topic, partition in sorted(first.records.keys() | second.records.keys()):
        mine, theirs = (side.records.get((topic, partition), []) for side in (first, second))
        same = 0
        while same < min(len(mine), len(theirs)) and _content(mine[same]) == _content(theirs[same]):
            same += 1
        if mine[same:] or theirs[same:]:
            rows.append({"topic": topic, "partition": partition, "first": mine[same:], "second": theirs[same:]})
    return rows


def _content(record: Record) -> Record:
    return {**record, "timestamp_ms": 0}
