"""What is different between two clusters, or snapshots of them: topics, records, offsets, members, settings.

before = broker.snapshot()
...                                          # the program under test
assert momus.diff(before, broker).records == {("orders", 0): ([], [b"one coffee"])}
"""

from __future__ import annotations

from typing import Any, NamedTuple, TypeAlias

from momus.kit.words import quoted

TYPE_CHECKING = False
if TYPE_CHECKING:
    from momus.cluster import Forkable, Snapshot
    from momus.record import Record

    Side: TypeAlias = Forkable | Snapshot

OF_TOPIC = "topic"
SHOWN = 5  # records of a partition, as text
_PAGE = 200


class Difference(NamedTuple):
    """What one side has and the other has not, as pairs (first, second); all empty where both are the same.

        difference = momus.diff(before, broker)
        assert not difference, difference          # the text says what is different

    topics    topic -> its partitions; None: there is no such topic.
    settings  (topic, key) -> its value, where it is not the default; None: it is the default there.
    records   (topic, partition) -> the records after the last that both have in the same place: what one side has
              more, or has in another way. Their times do not count.
    offsets   (group, topic, partition) -> what is committed; None: nothing is.
    members   group -> the ids of its members, sorted.
    """

    topics: dict[str, tuple[int | None, int | None]]
    settings: dict[tuple[str, str], tuple[str | None, str | None]]
    records: dict[tuple[str, int], tuple[list[Record], list[Record]]]
    offsets: dict[tuple[str, str, int], tuple[int | None, int | None]]
    members: dict[str, tuple[list[str], list[str]]]

    def __bool__(self) -> bool:
        return any(self._asdict().values())

    def __str__(self) -> str:
        lines = [f"topic {name}: {_many(a)}, then {_many(b)}" for name, (a, b) in self.topics.items()]
        lines += [f"{topic} {key}: {a}, then {b}" for (topic, key), (a, b) in self.settings.items()]
        for (topic, index), sides in self.records.items():
            for word, found in zip(("first", "second"), sides, strict=True):
                lines += [f"{topic}-{index}: only the {word} has {_text(each)}" for each in found[:SHOWN]]
                lines += [f"{topic}-{index}: and {len(found) - SHOWN} more"] if len(found) > SHOWN else []
        lines += [
            f"group {group} at {topic}-{index}: {a}, then {b}" for (group, topic, index), (a, b) in self.offsets.items()
        ]
        lines += [f"members of {group}: {a}, then {b}" for group, (a, b) in self.members.items()]
        return "\n".join(lines) or "no difference"


class _State(NamedTuple):
    """What is compared of one side."""

    topics: dict[str, int]
    settings: dict[tuple[str, str], str]
    records: dict[tuple[str, int], list[Record]]
    offsets: dict[tuple[str, str, int], int]
    members: dict[str, list[str]]


def diff(first: Side, second: Side) -> Difference:
    """Compare two sides: clusters as they are now, snapshots as they were. A snapshot has no members.

    Internal topics are left out, but for what groups have committed. Errors: ControlError: a topic was deleted, or a
    cluster reset, meanwhile.
    """
    one, other = (each.cluster if isinstance(each, str) else each for each in (first, second))
    if one.control.address == other.control.address:
        sides = {"first": _side(first), "second": _side(second)}
        return difference_of(one.control.ask("POST", "/_admin/diff", sides))
    a, b = _state(first), _state(second)
    records = {}
    for place in sorted(a.records.keys() | b.records.keys()):
        mine, theirs = a.records.get(place, []), b.records.get(place, [])
        same = 0
        while same < min(len(mine), len(theirs)) and _content(mine[same]) == _content(theirs[same]):
            same += 1
        if mine[same:] or theirs[same:]:
            records[place] = mine[same:], theirs[same:]
    is_of_the_past = any(isinstance(each, str) for each in (first, second))
    members = {} if is_of_the_past else _pairs(a.members, b.members, [])
    return Difference(
        _pairs(a.topics, b.topics, None),
        _pairs(a.settings, b.settings, None),
        records,
        _pairs(a.offsets, b.offsets, None),
        members,
    )


def difference_of(answer: Any) -> Difference:
    """What the control plane has answered."""
    from momus.record import record_of  # 4 ms, of typing

    def pairs(what: str, *names: str) -> dict[Any, Any]:
        rows = answer[what]
        return {tuple(row[name] for name in names): (row.get("first"), row.get("second")) for row in rows}

    return Difference(
        {name: sides for (name,), sides in pairs("topics", "topic").items()},
        pairs("settings", "topic", "name"),
        {
            (topic, index): ([record_of(topic, each) for each in first], [record_of(topic, each) for each in second])
            for (topic, index), (first, second) in pairs("records", "topic", "partition").items()
        },
        pairs("offsets", "group", "topic", "partition"),
        {group: (first or [], second or []) for (group,), (first, second) in pairs("members", "group").items()},
    )


def _side(side: Side) -> dict[str, str]:
    """A side as the control plane is asked for it."""
    if isinstance(side, str):
        return {"cluster": side.cluster.control.cluster, "snapshot": str(side)}
    return {"cluster": side.control.cluster}


def _content(record: Record) -> Record:
    """All but its time, which differs wherever a program has run twice."""
    return record._replace(timestamp_ms=0)


def _pairs(a: dict[Any, Any], b: dict[Any, Any], absent: Any) -> dict[Any, Any]:
    return {
        key: (a.get(key, absent), b.get(key, absent))
        for key in sorted(a.keys() | b.keys())
        if a.get(key, absent) != b.get(key, absent)
    }


def _state(side: Side) -> _State:
    if isinstance(side, str):
        with side.fork() as as_it_was:
            return _state_of(as_it_was)
    return _state_of(side)


def _state_of(cluster: Forkable) -> _State:
    found = _State({}, {}, {}, {}, {})
    for row in _all(cluster, "topics"):
        name = row["topic"]
        if row["internal"]:
            continue
        described: Any = cluster.control.ask("GET", f"{cluster.control.prefix}/topics/{quoted(name)}")
        found.topics[name] = row["partitions"]
        own = [each for each in described["configs"] if each["source"] == OF_TOPIC]
        found.settings.update({(name, each["name"]): each["value"] for each in own})
        for record in cluster.consume(name):
            found.records.setdefault((name, record.partition), []).append(record)
    for row in _all(cluster, "groups"):
        group = row["group"]
        for (topic, index), offset in cluster.committed(group).items() if row["type"] != "share" else ():
            found.offsets[group, topic, index] = offset
        described = cluster.control.ask("GET", f"{cluster.control.prefix}/groups/{quoted(group)}")
        if described["members"]:
            found.members[group] = sorted(described["members"])
    return found


def _all(cluster: Forkable, what: str) -> list[dict[str, Any]]:
    """All rows of a list that is told in windows."""
    rows: list[dict[str, Any]] = []
    while True:
        path = f"{cluster.control.prefix}/{what}?offset={len(rows)}&limit={_PAGE}"
        answer: Any = cluster.control.ask("GET", path)
        rows += answer[what]
        if len(rows) >= answer["total"] or not answer[what]:
            return rows


def _many(partitions: int | None) -> str:
    return "none" if partitions is None else f"{partitions} partitions"


def _text(record: Record) -> str:
    value = record.value if record.value is None or len(record.value) < 80 else record.value[:77] + b"..."
    return f"offset {record.offset}, key {record.key!r}, value {value!r}"
