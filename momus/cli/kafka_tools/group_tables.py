"""The tables that `kafka-consumer-groups --describe` prints: offsets, state or members of a group."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from momus.cli.commands import _with_places as with_places
from momus.cli.groups.client import GroupClient
from momus.cli.kafka_tools.options import say
from momus.client.kafka_client import LATEST, Row

NARROWEST = 15
_Partition = tuple[str, int]


TARGETED = ("consumer", "streams")  # types of groups that tell what a member shall have


class Asked(NamedTuple):
    """What of a group is asked for: its state, its members, or else its offsets."""

    state: bool
    members: bool
    verbose: bool


def describe(client: GroupClient, group: str, asked: Asked) -> None:
    """Print one group. Errors: OSError."""
    row = client.describe_group(group)
    row["members"] = [with_places(each, row) for each in row["members"]]
    if row["state"] in ("Dead", None):
        # as Kafka's tool: on standard output, and exit code 0
        text = f"org.apache.kafka.common.errors.GroupIdNotFoundException: Group {group} not found."
        say("", f"Error: Executing consumer group command failed due to {text}")
        return
    if not row["members"]:
        say("", f"Consumer group '{group}' has no active members.", err=True)
    if asked.state:
        _state(client, row, asked)
    elif asked.members:
        _members(row, asked)
    else:
        _offsets(client, row, asked)


def _table(columns: Sequence[tuple[str, int]], rows: Iterable[Sequence[Any]]) -> None:
    """Print rows under a header. Each column has its least width and grows; the last one is not filled up."""
    texts = [[name for name, _ in columns], *([("-" if cell is None else str(cell)) for cell in row] for row in rows)]
    widths = [
        max(least, *(len(row[place]) for row in texts)) if least else 0 for place, (_, least) in enumerate(columns)
    ]
    say("")
    for row in texts:
        say(" ".join(f"{text:{width}}" if width else text for text, width in zip(row, widths, strict=True)))


def _assigned(places: Sequence[str]) -> list[_Partition]:
    """topic-partition texts, taken apart."""
    pairs = (text.rpartition("-") for text in places)
    return [(topic, int(index)) for topic, _, index in pairs if index.isdigit()]


def _offsets(client: GroupClient, group: Row, asked: Asked) -> None:
    owners = {partition: member for member in group["members"] for partition in _assigned(member["has"])}
    committed = {(row["topic"], row["partition"]): row for row in group["offsets"] if row["committed"] >= 0}
    ends = {partition: row.get("end") for partition, row in committed.items()}
    for topic in sorted({topic for topic, _ in owners.keys() - committed.keys()}):
        for partition, last in client._offsets(topic, client.leaders(topic), LATEST).items():
            ends.setdefault((topic, partition), last)
    epochs: dict[_Partition, int | None] = {}
    if asked.verbose:
        for row in client.committed_offsets(group["group"]):
            epochs[row["topic"], row["partition"]] = row["leader_epoch"] if row["leader_epoch"] >= 0 else None
    rows = []
    for topic, partition in sorted(committed.keys() | owners.keys()):
        place = (topic, partition)
        offset: int | None = committed[place]["committed"] if place in committed else None
        end: int | None = ends.get(place)
        lag = None if offset is None or end is None else end - offset
        owner = owners.get(place, {})
        own = [owner.get("member"), owner.get("host"), owner.get("client")]
        epoch = [epochs.get(place)] if asked.verbose else []
        rows.append([group["group"], topic, partition, *epoch, offset, end, lag, *own])
    wide = [("LEADER-EPOCH", 15)] if asked.verbose else []
    offsets = [("CURRENT-OFFSET", 15), ("LOG-END-OFFSET", 15), ("LAG", 15)]
    owner_columns = [("CONSUMER-ID", NARROWEST), ("HOST", NARROWEST), ("CLIENT-ID", 0)]
    if rows:
        _table([("GROUP", NARROWEST), ("TOPIC", NARROWEST), ("PARTITION", 10), *wide, *offsets, *owner_columns], rows)


def _state(client: GroupClient, group: Row, asked: Asked) -> None:
    host, port = client._nodes[group["coordinator"]]
    coordinator = f"{host}:{port}  ({group['coordinator']})"
    strategy = group.get("protocol") or None
    epochs = [_known(group["group_epoch"]), _known(group["assignment_epoch"])] if asked.verbose else []
    wide = [("GROUP-EPOCH", 15), ("TARGET-ASSIGNMENT-EPOCH", 25)] if asked.verbose else []
    head = [("GROUP", NARROWEST), ("COORDINATOR (ID)", 25), ("ASSIGNMENT-STRATEGY", 20), ("STATE", 20)]
    row = [group["group"], coordinator, strategy, group["state"], *epochs, len(group["members"])]
    _table([*head, *wide, ("#MEMBERS", 0)], [row])


def _members(group: Row, asked: Asked) -> None:
    static = any(member["instance"] for member in group["members"])
    head = [("GROUP", NARROWEST), ("CONSUMER-ID", NARROWEST)] + ([("GROUP-INSTANCE-ID", 17)] if static else [])
    head += [("HOST", NARROWEST), ("CLIENT-ID", NARROWEST), ("#PARTITIONS", 15)]
    if asked.verbose:
        head += [("CURRENT-EPOCH", 15), ("CURRENT-ASSIGNMENT", 20), ("TARGET-EPOCH", 15), ("TARGET-ASSIGNMENT", 20)]
    rows = []
    for member in group["members"]:
        partitions = _assigned(member["has"])
        row = [group["group"], member["member"], *([member["instance"] or None] if static else [])]
        row += [member["host"], member["client"], len(partitions)]
        if asked.verbose:
            target = _by_topic(_assigned(member["target"] if group["type"] in TARGETED else ()))
            assigned_at = _known(group["assignment_epoch"]) if target else None
            row += [_known(member["epoch"]), _by_topic(partitions), assigned_at, target]
        rows.append(row)
    _table(head, rows)


def _known(epoch: int) -> int | None:
    return None if epoch < 0 else epoch


def _by_topic(partitions: Sequence[_Partition]) -> str | None:
    """orders:0,1;bills:2, as Kafka's tool writes an assignment."""
    found: dict[str, list[int]] = {}
    for topic, partition in sorted(partitions):
        found.setdefault(topic, []).append(partition)
    return ";".join(f"{topic}:{','.join(map(str, each))}" for topic, each in found.items()) or None
