"""Who had which partition of a group, from when to when: from the log that the group is kept in, whatever its type.

A member of a consumer, share or streams group has a record of what it holds, written whenever that changes; a classic
group has one of all its members for each generation. What the log's cleaner has dropped is not known: who holds a
partition since before then is told with the time of the oldest record that is left.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from typing import TYPE_CHECKING, Any, Final, TypedDict

from broker.asks.groups import TASKS, classic_places
from broker.cluster.topic_names import OFFSETS_TOPIC
from broker.coordinator.records import GROUP_METADATA
from broker.shell.control.routes import Call, RefusedError
from broker.shell.page.topics import UNREADABLE
from broker.shell.page.windows import number
from protocol.errors import KafkaError
from protocol.messages.coordinator_records import decode_record
from protocol.record_batch import iter_batches, iter_records

if TYPE_CHECKING:
    from collections.abc import Callable

    from broker.shell.cluster_server import ClusterServer

PIECE_BYTES: Final = 1 << 20
MOST_ROWS: Final = 2000
USUAL: Final = 200
OF_MEMBERS: Final = frozenset({5, 10, 19})  # record types: what a member said of itself
OF_HOLDINGS: Final = frozenset({8, 14, 22})  # and what it holds
TYPES: Final = (GROUP_METADATA, *OF_MEMBERS, *OF_HOLDINGS)


class OwnerRow(TypedDict):
    """Who had a partition, and when; `until_ms` is -1 where it has it now."""

    partition: str
    member: str
    client: str
    epoch: int
    since_ms: int
    until_ms: int


class OwnerRows(TypedDict):
    """Stretches of time, the newest first."""

    group: str
    owners: list[OwnerRow]


async def show_owners(cluster: ClusterServer, call: Call) -> OwnerRows:
    """Stretches of time, newest first. Errors: RefusedError."""
    group, limit = call.words["group"], number(call, "limit", USUAL, MOST_ROWS, 1)
    owners = Owners(lambda topic_id: getattr(cluster.broker.metadata.topics_by_id.get(topic_id), "name", ""))
    async for key, value, at_ms in _records(cluster, group):
        owners.add(*decode_record(key, value), at_ms)
    return {"group": group, "owners": owners.rows()[:limit]}


async def _records(cluster: ClusterServer, group: str) -> AsyncIterator[tuple[bytes, bytes | None, int]]:
    """Key, value and time of the records that tell of the group's members. Errors: RefusedError."""
    broker = cluster.broker
    topic, index = broker.metadata.topics.get(OFFSETS_TOPIC), broker.groups.index_of(group)
    if topic is None or not broker.partitions.has(topic, index):
        return
    name = group.encode()
    heads = tuple(kind.to_bytes(2, "big") + len(name).to_bytes(2, "big") + name for kind in TYPES)
    try:
        partition = broker.partitions.get(topic, index)
        position, end = partition.log_start_offset, partition.high_watermark
        while position < end and (found := partition.log.read(position, PIECE_BYTES, limit_offset=end)) is not None:
            data, start = found.read(), position
            position = found.end_offset
            if any(head in data for head in heads):  # most pieces are commits and nothing else
                for place, header in iter_batches(data):
                    batch = data[place : place + header.size]
                    for record in iter_records(batch) if any(head in batch for head in heads) else ():
                        if record.offset >= start and record.key is not None and record.key.startswith(heads):
                            yield record.key, record.value, record.timestamp
            await asyncio.sleep(0)
            if cluster.broker is not broker:
                raise RefusedError(409, "the cluster was reset")
            position = max(position, partition.log_start_offset)
    except KafkaError as error:
        raise RefusedError(409, f"group {group:.100}: {error}") from None
    except UNREADABLE as error:
        raise RefusedError(500, f"group {group:.100}: {error}") from None


class Owners:
    """Follows the records of one group. Pure.

    topic_name   finds the name of a topic by its id; "" for one that is no more.
    """

    def __init__(self, topic_name: Callable[[bytes], str]) -> None:
        self._topic_name = topic_name
        self._clients: dict[str, str] = {}
        self._held: dict[tuple[str, str, bool], OwnerRow] = {}  # (partition, member, is classic) -> its stretch
        self._past: list[OwnerRow] = []

    def add(self, key: Any, value: Any, at_ms: int) -> None:
        """Take the next record, decoded; a value of None deletes."""
        kind = key.API_KEY
        if kind == GROUP_METADATA:
            members = () if value is None else value.members
            self._clients |= {each.member_id: each.client_id for each in members}
            held = {
                (place, each.member_id, True): value.generation
                for each in members
                for place in classic_places(each.assignment)
            }
            self._hold({**{each: -1 for each in self._held if each[2] and each not in held}, **held}, at_ms)
        elif kind in OF_MEMBERS:
            if value is not None:
                self._clients[key.member_id] = value.client_id
        elif kind in OF_HOLDINGS:
            held = {} if value is None else dict(self._places(key.member_id, value))
            gone = {each: -1 for each in self._held if each[1:] == (key.member_id, False) and each not in held}
            self._hold({**gone, **held}, at_ms)

    def rows(self) -> list[OwnerRow]:
        """Stretches, the newest first; of one moment by partition."""
        rows = [*self._past, *self._held.values()]
        rows.sort(key=lambda row: row["partition"])
        rows.sort(key=lambda row: row["since_ms"], reverse=True)
        return rows

    def _hold(self, held: dict[tuple[str, str, bool], int], at_ms: int) -> None:
        """Begin and end stretches; -1: it is held no more."""
        for each, epoch in held.items():
            place, member, _ = each
            if epoch < 0:
                self._past.append({**self._held.pop(each), "until_ms": at_ms})
            elif each not in self._held:
                self._held[each] = {
                    "partition": place,
                    "member": member,
                    "client": self._clients.get(member, ""),
                    "epoch": epoch,
                    "since_ms": at_ms,
                    "until_ms": -1,
                }

    def _places(self, member: str, value: Any) -> Iterator[tuple[tuple[str, str, bool], int]]:
        """What a member holds, and the epoch at which it was given to it; what it must give back is still held."""
        for name in ("assigned_partitions", "partitions_pending_revocation"):
            for topic in getattr(value, name, ()):
                known = self._topic_name(topic.topic_id) or topic.topic_id.hex()
                epochs = getattr(topic, "assignment_epochs", None) or [value.member_epoch] * len(topic.partitions)
                for index, epoch in zip(topic.partitions, epochs, strict=True):
                    yield (f"{known}-{index}", member, False), epoch
        for name, mark in TASKS.items():
            for task in (*getattr(value, name, ()), *getattr(value, f"{name}_pending_revocation", ())):
                for index in task.partitions:
                    yield (f"{task.subtopology_id}_{index}{mark}", member, False), value.member_epoch
