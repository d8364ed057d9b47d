"""The one way to commit: appends what shortcuts and handlers have decided, and replays it in columns.

A handler fills a `Commit`; a shortcut calls `commit_run` with the batch that it has prepared. Recovery replays the same
records by `OffsetTable.replay_run` (see replay_run.py), or one by one.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Final

from broker.base.result import Headers, Record
from broker.coordinator.offsets.columns import Committed
from broker.coordinator.offsets.commit_batch import VALUE_HEAD, ZERO_ID, CommitBatch, OneCommit, offset_key_prefix
from broker.coordinator.records import offset_value
from broker.coordinator.runtime import CLOSED
from protocol.record import encode_headers
from storage.files.errors import StorageError

if TYPE_CHECKING:
    from broker.coordinator.offsets.pending import PendingOffsets
    from broker.coordinator.offsets.table import OffsetTable
    from broker.coordinator.runtime import Shard

RUN_PARTITIONS: Final = 2000  # of one topic: a template is kept for each size of commit (see template_of)
Producer = tuple[int, int]  # id and epoch


def commit_run(
    shard: Shard, batch: CommitBatch | OneCommit, offsets: Sequence[int], leader_epochs: Sequence[int], now_ms: int
) -> None:
    """Commit offsets on the partitions of `batch`, one offset and leader epoch for each.

    Shape:   one record batch.
    Units:   now_ms is Unix milliseconds: the commit time.
    Errors:  StorageError: nothing has changed.
    """
    log = shard.log
    base = log.end_offset
    data = batch.build(base, log.epochs.latest, now_ms, offsets, leader_epochs)
    log.append((data,), base_offset=base, last_offset=base + batch.count - 1, max_timestamp_ms=now_ms, size=len(data))
    shard.machine.offsets.replay_run(
        batch.group_id, batch.topic, batch.topic_id, batch.partitions, offsets, leader_epochs, now_ms, dense=batch.dense
    )


def commit_pending_run(
    shard: Shard,
    batch: CommitBatch | OneCommit,
    offsets: Sequence[int],
    leader_epochs: Sequence[int],
    now_ms: int,
    producer: Producer,
) -> None:
    """The same as part of a producer's transaction: the offsets are pending until its marker.

    Errors:  StorageError: nothing has changed.
    """
    log = shard.log
    base = log.end_offset
    data = batch.build(base, log.epochs.latest, now_ms, offsets, leader_epochs, producer)
    log.append((data,), base_offset=base, last_offset=base + batch.count - 1, max_timestamp_ms=now_ms, size=len(data))
    shard.machine.pending.replay_run(
        producer[0],
        batch.group_id,
        batch.topic,
        batch.partitions,
        offsets,
        leader_epochs,
        now_ms,
        base,
        batch.topic_id,
    )


class Run:
    """The offsets that a request commits on partitions of one topic, in the order of the request."""

    __slots__ = ("leader_epochs", "offsets", "others", "partitions", "topic", "topic_id")

    def __init__(self, topic: str, topic_id: bytes) -> None:
        self.topic = topic
        self.topic_id = topic_id
        self.partitions: list[int] = []
        self.offsets: list[int] = []
        self.leader_epochs: list[int] = []
        self.others: dict[int, Committed] = {}  # index in the run -> an offset with metadata, expiry or commit time

    def add(self, partition: int, offset: int, leader_epoch: int) -> None:
        """Add an offset without metadata, expiry or commit time of its own."""
        self.partitions.append(partition)
        self.offsets.append(offset)
        self.leader_epochs.append(leader_epoch)

    def add_other(self, partition: int, committed: Committed) -> None:
        """Add any offset. One with an expiry loses leader epoch and topic id: its record has no fields for them."""
        if committed.expire_timestamp_ms >= 0:
            committed = committed._replace(leader_epoch=-1, topic_id=ZERO_ID)
        self.others[len(self.partitions)] = committed
        self.add(partition, committed.offset, committed.leader_epoch)

    def committed(self, place: int, now_ms: int) -> Committed:
        """One offset of the run."""
        other = self.others.get(place)
        if other is not None:
            return other
        return Committed(self.offsets[place], self.leader_epochs[place], "", now_ms, -1, self.topic_id)


class Commit:
    """The offsets that one request commits for one group: all or nothing."""

    __slots__ = ("group_id", "headers", "runs")

    def __init__(self, group_id: str, headers: Headers = ()) -> None:
        self.group_id = group_id
        self.headers = headers  # who commits: record headers on the first record
        self.runs: list[Run] = []

    def run(self, topic: str, topic_id: bytes = ZERO_ID) -> Run:
        """Add a run at the end."""
        run = Run(topic, topic_id)
        self.runs.append(run)
        return run

    @property
    def is_empty(self) -> bool:
        return not any(run.partitions for run in self.runs)

    def append_to(self, shard: Shard, now_ms: int, producer: Producer | None = None) -> None:
        """Append the records to the shard's log and replay them; in a transaction they are pending.

        Shape:   one batch; a commit that is too large for one takes several, valid only together (spans.py).
        Errors:  StorageError: nothing was appended, and the shard was reloaded.
        """
        if shard.state is CLOSED:
            shard.require()
        runs = [run for run in self.runs if run.partitions]
        if len(runs) == 1 and not runs[0].others:
            run = runs[0]
            batch = OneCommit(self.group_id, run.topic, run.topic_id, run.partitions, encode_headers(self.headers))
            if batch.count <= RUN_PARTITIONS and batch.most_bytes <= shard.log.config.max_message_bytes:
                self._append_run(shard, batch, run, now_ms, producer)
                return
        records = list(self._records(now_ms))
        if self.headers:
            records[0] = (*records[0][:2], self.headers)
        if producer is None:
            offsets: OffsetTable = shard.machine.offsets
            shard.append(records, now_ms, replay=lambda base: self._replay(offsets, now_ms))
        else:
            pending: PendingOffsets = shard.machine.pending
            shard.append(
                records,
                now_ms,
                producer_id=producer[0],
                producer_epoch=producer[1],
                replay=lambda base: self._replay_pending(pending, producer[0], base, now_ms),
            )

    def _append_run(self, shard: Shard, batch: OneCommit, run: Run, now_ms: int, producer: Producer | None) -> None:
        try:
            if producer is None:
                commit_run(shard, batch, run.offsets, run.leader_epochs, now_ms)
            else:
                commit_pending_run(shard, batch, run.offsets, run.leader_epochs, now_ms, producer)
                if self.headers:
                    shard.machine.pending.replay_sender(producer[0], self.group_id, self.headers)
        except StorageError:
            shard.reload()
            raise
        shard.touch()

    def _records(self, now_ms: int) -> Iterator[Record]:
        for run in self.runs:
            prefix = offset_key_prefix(self.group_id, run.topic)
            tags = b"\x00" if run.topic_id == ZERO_ID else b"\x01\x00\x10" + run.topic_id
            for place, partition in enumerate(run.partitions):
                other = run.others.get(place)
                if other is not None:
                    value = offset_value(other)
                else:
                    value = VALUE_HEAD.pack(4, run.offsets[place], run.leader_epochs[place], 1, now_ms) + tags
                yield prefix + partition.to_bytes(4, "big"), value

    def _replay(self, table: OffsetTable, now_ms: int) -> None:
        for run in self.runs:
            if not run.others and run.partitions:
                table.replay_run(
                    self.group_id,
                    run.topic,
                    run.topic_id,
                    run.partitions,
                    run.offsets,
                    run.leader_epochs,
                    now_ms,
                    dense=False,
                )
                continue
            for place, partition in enumerate(run.partitions):
                table.replay(self.group_id, run.topic, partition, run.committed(place, now_ms))

    def _replay_pending(self, pending: PendingOffsets, producer_id: int, base: int, now_ms: int) -> None:
        for run in self.runs:
            for place, partition in enumerate(run.partitions):
                committed = run.committed(place, now_ms)
                pending.replay(producer_id, self.group_id, run.topic, partition, committed, base)
                base += 1
        if self.headers:
            pending.replay_sender(producer_id, self.group_id, self.headers)
