"""What a share group should know of the records of one partition, as a plain model; and the requests of its members."""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from core_broker import Client

from protocol.messages.share_fetch import (
    ShareAcknowledgeRequest,
    ShareAcknowledgeRequestAcknowledgementBatch,
    ShareAcknowledgeRequestAcknowledgePartition,
    ShareAcknowledgeRequestAcknowledgeTopic,
    ShareFetchRequest,
    ShareFetchRequestAcknowledgementBatch,
    ShareFetchRequestFetchPartition,
    ShareFetchRequestFetchTopic,
)
from protocol.record_batch import iter_batches, iter_records

PLAIN, OPEN, COMMITTED, ABORTED = "plain", "open", "committed", "aborted"
GAP, ACCEPT, RELEASE, REJECT = range(4)  # kinds of acknowledgements

Place = tuple[str, int]
Acks = dict[Place, list[tuple[int, int, list[int]]]]  # first and last offset, and one kind for all or one for each


@dataclass
class Row:
    """A record that was written."""

    value: bytes
    fate: str = PLAIN
    producer: str = ""


@dataclass
class Lock:
    """A record is with a member."""

    member: str
    until_ms: int
    delivery: int


class ShareModel:
    """One partition: its records, and what has become of each delivery."""

    def __init__(self) -> None:
        self.rows: dict[int, Row] = {}
        self.start = 0  # of the log, as far as DeleteRecords has moved it
        self.done: set[int] = set()
        self.deliveries: dict[int, int] = {}  # those that have ended
        self.locks: dict[int, Lock] = {}

    # -- records

    def end(self, producer: str, fate: str) -> None:
        """A transaction ends."""
        for row in self.rows.values():
            if row.fate == OPEN and row.producer == producer:
                row.fate = fate

    def delete_below(self, offset: int) -> None:
        """DeleteRecords."""
        self.start = max(self.start, offset)
        for each in [each for each in self.locks if each < offset]:
            del self.locks[each]

    def keep(self, offsets: Container[int]) -> None:
        """The cleaner has removed all others."""
        for offset in [each for each in self.rows if each not in offsets]:
            del self.rows[offset]

    def readable(self, read_committed: bool) -> set[int]:
        """What may be delivered, if it is not done."""
        rows = {offset: row.fate for offset, row in self.rows.items() if offset >= self.start}
        if not read_committed:
            return set(rows)
        stable = min((offset for offset, row in self.rows.items() if row.fate == OPEN), default=None)
        return {at for at, fate in rows.items() if fate != ABORTED and (stable is None or at < stable)}

    # -- deliveries

    def held(self, member: str) -> list[int]:
        """What a member has to acknowledge."""
        return sorted(offset for offset, lock in self.locks.items() if lock.member == member)

    def deliver(self, offset: int, value: bytes | None, lock: Lock, read_committed: bool) -> None:
        """The broker says that a member has this record now: is that right?"""
        assert offset not in self.locks, f"{offset} given to {lock}, it is with {self.locks[offset]}"
        assert offset not in self.done, f"{offset} given to {lock}, it is done"
        if offset in self.rows and offset >= self.start:
            assert value == self.rows[offset].value, f"{offset} is {self.rows[offset]}, given was {value!r}"
            assert offset in self.readable(read_committed), f"{offset} given, it is {self.rows[offset]}"
            before = self.deliveries.get(offset, 0)
            assert lock.delivery == before + 1, f"{offset} given to {lock}, there were {before} deliveries"
        self.locks[offset] = lock

    def acknowledge(self, offset: int, kind: int, limit: int) -> None:
        """A delivery ends."""
        lock = self.locks.pop(offset)
        self.deliveries[offset] = lock.delivery
        if kind != RELEASE or lock.delivery >= limit:
            self.done.add(offset)

    def release(self, offsets: Iterable[int], limit: int) -> None:
        """Members give back what they have."""
        for offset in list(offsets):
            self.acknowledge(offset, RELEASE, limit)

    def expire(self, now_ms: int, limit: int) -> None:
        """Time has passed."""
        self.release([offset for offset, lock in self.locks.items() if lock.until_ms <= now_ms], limit)

    def forget(self, start: int = 0) -> None:
        """The group begins anew, at an offset."""
        self.done, self.deliveries, self.locks = set(range(start)), {}, {}


class Member:
    """A share consumer: its connection, and the epoch of its share session."""

    def __init__(self, group: str, name: str, client: Client) -> None:
        self.group = group
        self.name = name
        self.client = client
        self.epoch = 0


def fetch_of(
    member: Member, ids: Mapping[str, bytes], places: Iterable[Place], acks: Acks, **fields: Any
) -> ShareFetchRequest:
    """ShareFetch of these partitions, with acknowledgements."""
    topics = {name: ShareFetchRequestFetchTopic(topic_id=topic_id, partitions=[]) for name, topic_id in ids.items()}
    for name, index in places:
        said = [
            ShareFetchRequestAcknowledgementBatch(first_offset=first, last_offset=last, acknowledge_types=kinds)
            for first, last, kinds in acks.get((name, index), ())
        ]
        row = ShareFetchRequestFetchPartition(partition_index=index, acknowledgement_batches=said)
        topics[name].partitions.append(row)
    session = {"group_id": member.group, "member_id": member.name, "share_session_epoch": member.epoch}
    return ShareFetchRequest(**session, max_wait_ms=0, min_bytes=1, topics=list(topics.values()), **fields)


def acknowledge_of(member: Member, ids: Mapping[str, bytes], acks: Acks, epoch: int) -> ShareAcknowledgeRequest:
    """ShareAcknowledge."""
    topics = {name: ShareAcknowledgeRequestAcknowledgeTopic(topic_id=ids[name], partitions=[]) for name, _ in acks}
    for (name, index), batches in acks.items():
        said = [
            ShareAcknowledgeRequestAcknowledgementBatch(first_offset=first, last_offset=last, acknowledge_types=kinds)
            for first, last, kinds in batches
        ]
        row = ShareAcknowledgeRequestAcknowledgePartition(partition_index=index, acknowledgement_batches=said)
        topics[name].partitions.append(row)
    session = {"group_id": member.group, "member_id": member.name, "share_session_epoch": epoch}
    return ShareAcknowledgeRequest(**session, topics=list(topics.values()))


def values_of(data: bytes) -> dict[int, bytes | None]:
    """Offset -> value of the records, without those of markers."""
    return {
        record.offset: record.value
        for at, header in iter_batches(data)
        if not header.is_control
        for record in iter_records(data[at : at + header.size])
    }
