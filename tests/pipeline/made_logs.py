"""Logs written record by record, so that a test can make each fault there is: what no broker would have written.

Every log is one segment in Kafka's format, at the time its maker says. Nothing here knows the audit.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from broker.coordinator.groups.classic.records import group_key
from broker.coordinator.offsets.commit_batch import offset_key_prefix
from broker.coordinator.offsets.provenance import provenance
from broker.coordinator.transactions.transaction import State, Transaction
from protocol.messages.coordinator_records import (
    ConsumerGroupCurrentMemberAssignmentKey,
    ConsumerGroupCurrentMemberAssignmentValue,
    ConsumerGroupCurrentMemberAssignmentValueTopicPartitions,
    ConsumerGroupMetadataKey,
    ConsumerGroupMetadataValue,
    GroupMetadataValue,
    OffsetCommitValue,
    encode_record,
)
from protocol.record_batch import TRANSACTIONAL, build_batch, control_batch

ABORT, COMMIT = 0, 1
EPOCH_MS = 1_800_000_000_000
OFFSETS, STATES = "__consumer_offsets", "__transaction_state"


class Logs:
    """A data directory in the making. Every append is a millisecond after the one before."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.ends: dict[str, int] = {}
        self._clock = itertools.count(EPOCH_MS)
        self._began: dict[str, int] = {}  # when the open transaction of an id began
        self.now_ms = EPOCH_MS

    def tick(self, ms: int = 1) -> int:
        for _ in range(ms):
            self.now_ms = next(self._clock)
        return self.now_ms

    def append(self, log: str, batch: bytes, count: int) -> int:
        """Append a batch made for the log's end; the offset of its first record."""
        folder = self.directory / log
        folder.mkdir(parents=True, exist_ok=True)
        base = self.ends.get(log, 0)
        segments = sorted(folder.glob("*.log")) or [folder / f"{base:020d}.log"]
        with segments[-1].open("ab") as file:
            file.write(base.to_bytes(8, "big") + batch[8:])  # lies before what the CRC covers
        self.ends[log] = base + count
        return base

    def skip(self, log: str, count: int) -> None:
        """Offsets that are not there, as if the cleaner had been here."""
        self.ends[log] = self.ends.get(log, 0) + count

    def roll(self, log: str) -> None:
        """Begin another segment."""
        (self.directory / log).mkdir(parents=True, exist_ok=True)
        (self.directory / log / f"{self.ends.get(log, 0):020d}.log").touch()

    # -- data

    def data(
        self,
        log: str,
        count: int = 1,
        pid: int = -1,
        epoch: int = -1,
        sequence: int = -1,
        *,
        txn: bool = False,
        leader_epoch: int | None = None,
    ) -> int:
        """A batch of records of a producer."""
        records = [(b"k%d" % n, b"v%d" % n) for n in range(count)]
        batch = build_batch(
            records,
            timestamp_ms=self.tick(),
            producer_id=pid,
            producer_epoch=epoch,
            base_sequence=sequence,
            attributes=TRANSACTIONAL if txn else 0,
        )
        if leader_epoch is not None:
            batch = batch[:12] + leader_epoch.to_bytes(4, "big") + batch[16:]  # before what the CRC covers, too
        return self.append(log, batch, count)

    def marker(self, log: str, pid: int, epoch: int, kind: int = COMMIT) -> int:
        """A transaction marker."""
        batch = control_batch(kind, timestamp_ms=self.tick(), producer_id=pid, producer_epoch=epoch)
        return self.append(log, batch, 1)

    # -- coordinators

    def state(
        self,
        log: str,
        name: str,
        state: State,
        pid: int,
        epoch: int,
        partitions: Mapping[str, Sequence[int]] | None = None,
    ) -> int:
        """A record of a transaction."""
        now_ms = self.tick()
        made = Transaction(name, pid, 60_000).next(state, now_ms)
        made.producer_epoch = epoch
        made.start_ms = -1 if state is State.EMPTY else self._began.setdefault(name, now_ms)
        if state not in (State.ONGOING, State.PREPARE_COMMIT, State.PREPARE_ABORT):
            self._began.pop(name, None)
        if partitions:
            made.add({topic: tuple(indexes) for topic, indexes in partitions.items()})
        return self.append(log, made.batch(1, 0, 0, now_ms), 1)

    def transaction(
        self,
        name: str,
        pid: int,
        epoch: int,
        log: str,
        *,
        kind: int = COMMIT,
        markers: Sequence[tuple[int, int]] | None = None,
        states: str = f"{STATES}-0",
        data_epoch: int | None = None,
        sequence: int = 0,
    ) -> None:
        """A whole transaction (v1: the epoch stays) of two records in one partition; `markers`: other than it has."""
        topic, _, index = log.rpartition("-")
        partitions = {topic: [int(index)]}
        self.state(states, name, State.ONGOING, pid, epoch, partitions)
        self.data(log, 2, pid, epoch if data_epoch is None else data_epoch, sequence, txn=True)
        prepare, complete = (
            (State.PREPARE_COMMIT, State.COMPLETE_COMMIT)
            if kind == COMMIT
            else (State.PREPARE_ABORT, State.COMPLETE_ABORT)
        )
        self.state(states, name, prepare, pid, epoch, partitions)
        for marker_epoch, marker_kind in [(epoch, kind)] if markers is None else markers:
            self.marker(log, pid, marker_epoch, marker_kind)
        self.state(states, name, complete, pid, epoch)

    def commit(
        self,
        log: str,
        group: str,
        offsets: Mapping[int, int],
        *,
        topic: str = "t",
        member: str = "",
        generation: int = -1,
        topic_id: bytes = bytes(16),
        commit_id: int | None = None,
        size: int | None = None,
        client: str | None = None,
        leader_epoch: int = -1,
        pid: int = -1,
        epoch: int = -1,
        sequence: int = -1,
    ) -> int:
        """A commit, or a batch of one that says it is larger."""
        now_ms = self.tick()
        prefix = offset_key_prefix(group, topic)
        said = provenance(member, None, generation, client)
        every: tuple[tuple[str, bytes], ...] = ()
        if size is not None:
            number = self.ends.get(log, 0) if commit_id is None else commit_id
            every = (("txid", number.to_bytes(8, "big")), ("txsize", size.to_bytes(4, "big")))
        records: list[Any] = []
        for partition, offset in offsets.items():
            value = OffsetCommitValue(
                offset=offset, leader_epoch=leader_epoch, commit_timestamp=now_ms, metadata="", topic_id=topic_id
            )
            headers = every if records else (*said, *every)
            records.append((prefix + partition.to_bytes(4, "big"), encode_record(value, 4), headers))
        batch = build_batch(
            records,
            timestamp_ms=now_ms,
            producer_id=pid,
            producer_epoch=epoch,
            base_sequence=sequence,
            attributes=0 if pid < 0 else TRANSACTIONAL,
        )
        return self.append(log, batch, len(records))

    def forget(self, log: str, group: str, partition: int, topic: str = "t") -> int:
        """The tombstone of a committed offset."""
        key = offset_key_prefix(group, topic) + partition.to_bytes(4, "big")
        return self.append(log, build_batch([(key, None)], timestamp_ms=self.tick()), 1)

    def classic_group(self, log: str, group: str, generation: int | None) -> int:
        """A classic group is stable in a generation; None: it is deleted."""
        value = None
        if generation is not None:
            made = GroupMetadataValue(
                protocol_type="consumer",
                generation=generation,
                protocol="range",
                leader="m",
                current_state_timestamp=self.now_ms,
                members=[],
            )
            value = encode_record(made, 3)
        return self.append(log, build_batch([(group_key(group), value)], timestamp_ms=self.tick()), 1)

    def consumer_group(self, log: str, group: str, epoch: int) -> int:
        """A group of the newer protocol has an epoch."""
        key = _key(ConsumerGroupMetadataKey(group_id=group))
        value = encode_record(ConsumerGroupMetadataValue(epoch=epoch), 0)
        return self.append(log, build_batch([(key, value)], timestamp_ms=self.tick()), 1)

    def member(
        self, log: str, group: str, member: str, epoch: int, assigned: Mapping[int, int], topic_id: bytes = bytes(16)
    ) -> int:
        """A member of it has an epoch, and partitions since the epochs given."""
        record = self.member_record(group, member, epoch, assigned, topic_id)
        return self.append(log, build_batch([record], timestamp_ms=self.tick()), 1)

    def member_record(
        self, group: str, member: str, epoch: int, assigned: Mapping[int, int], topic_id: bytes = bytes(16)
    ) -> tuple[bytes, bytes]:
        """The record of that: key and value."""
        key = _key(ConsumerGroupCurrentMemberAssignmentKey(group_id=group, member_id=member))
        parts = ConsumerGroupCurrentMemberAssignmentValueTopicPartitions(
            topic_id=topic_id, partitions=list(assigned), assignment_epochs=list(assigned.values())
        )
        value = ConsumerGroupCurrentMemberAssignmentValue(
            member_epoch=epoch,
            previous_member_epoch=epoch - 1,
            state=0,
            assigned_partitions=[parts],
            partitions_pending_revocation=[],
        )
        return key, encode_record(value, 0)


def _key(message: Any) -> bytes:
    from protocol.codegen import codec

    return message.API_KEY.to_bytes(2, "big") + codec(type(message), 0).encode(message)


def files_of(directory: Path) -> Iterator[Path]:
    """Every segment."""
    return directory.glob("*/*.log")
