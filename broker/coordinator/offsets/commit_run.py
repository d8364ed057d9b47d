"""What a commit of offsets writes, plain or in a transaction: the records, and their replay in columns.

A rule makes a PlainCommit (offsets of one topic, no metadata) or a Commit (anything else); the executor appends and
replays it. Recovery replays the same records by `OffsetTable.replay_run` (see replay_run.py), or one by one.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Final

from broker.coordinator.offsets.columns import Committed
from broker.coordinator.offsets.commit_batch import (
    VALUE_HEAD,
    ZERO_ID,
    OneCommit,
    PlainCommit,
    Producer,
    offset_key_prefix,
)
from broker.coordinator.offsets.spans import span_batches
from broker.coordinator.records import offset_value
from broker.turn.decision import Headers, Record
from broker.turn.write import Batch, Span, Write
from protocol.record_batch import TRANSACTIONAL, build_batch

if TYPE_CHECKING:
    from broker.coordinator.runtime import Shard
    from broker.turn.decision import Headers, Record
    from storage.log.log import Log

RUN_PARTITIONS: Final = 2000  # of one topic: a template is kept for each size of commit (see template_of)


class Run:
    """The offsets that a request commits on partitions of one topic, in the order of the request."""

    __slots__ = ("leader_epochs", "offsets", "others", "partitions", "topic", "topic_id")

    def __init__(
        self,
        topic: str,
        topic_id: bytes,
        partitions: Sequence[int] = (),
        offsets: Sequence[int] = (),
        leader_epochs: Sequence[int] = (),
    ) -> None:
        self.topic = topic
        self.topic_id = topic_id
        self.partitions = list(partitions)
        self.offsets = list(offsets)
        self.leader_epochs = list(leader_epochs)
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


class Commit(Write):
    """The offsets that one request commits for one group: all or nothing. `producer`: pending until its marker.

    Shape: one batch; a plain commit that is too large for one takes several, valid only together (spans.py).
    """

    __slots__ = ("group_id", "headers", "producer", "runs")

    def __init__(
        self, group_id: str, headers: Headers = (), producer: Producer | None = None, runs: Sequence[Run] = ()
    ) -> None:
        self.group_id = group_id
        self.headers = headers  # who commits: record headers on the first record
        self.producer = producer
        self.runs = list(runs)

    @property
    def is_empty(self) -> bool:
        """Whether no run has a partition."""
        return not any(run.partitions for run in self.runs)

    def build(self, log: Log, base_offset: int, now_ms: int) -> Batch | Span:
        """See turn/write.py."""
        records = list(self._records(now_ms))
        if self.headers:
            records[0] = (*records[0][:2], self.headers)
        producer_id, producer_epoch = self.producer or (-1, -1)
        leader_epoch, most_bytes = log.leader_epoch, log.config.max_message_bytes
        batch = build_batch(
            records,
            base_offset=base_offset,
            leader_epoch=leader_epoch,
            timestamp_ms=now_ms,
            producer_id=producer_id,
            producer_epoch=producer_epoch,
            attributes=TRANSACTIONAL if producer_id >= 0 else 0,
        )
        if len(batch) > most_bytes and producer_id < 0:
            return span_batches(
                records,
                base_offset=base_offset,
                leader_epoch=leader_epoch,
                timestamp_ms=now_ms,
                max_bytes=most_bytes,
            )
        return (batch,), base_offset + len(records) - 1, now_ms, len(batch)

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

    def replay(self, shard: Shard, base_offset: int, now_ms: int) -> None:
        """See turn/write.py."""
        if self.producer is not None:
            self._replay_pending(shard, self.producer[0], base_offset, now_ms)
            return
        table = shard.machine.offsets
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

    def _replay_pending(self, shard: Shard, producer_id: int, offset: int, now_ms: int) -> None:
        pending = shard.machine.pending
        for run in self.runs:
            for place, partition in enumerate(run.partitions):
                committed = run.committed(place, now_ms)
                pending.replay(producer_id, self.group_id, run.topic, partition, committed, offset)
                offset += 1
        if self.headers:
            pending.replay_sender(producer_id, self.group_id, self.headers)


def commit_of(commit: Commit, encoded_headers: bytes, max_bytes: int) -> Commit | PlainCommit:
    """The same as a PlainCommit, where it is one."""
    runs = [run for run in commit.runs if run.partitions]
    if len(runs) != 1 or runs[0].others:
        return commit
    run = runs[0]
    batch = OneCommit(commit.group_id, run.topic, run.topic_id, run.partitions, encoded_headers)
    if batch.count > RUN_PARTITIONS or batch.most_bytes > max_bytes:
        return commit
    batch.offsets, batch.leader_epochs = run.offsets, run.leader_epochs
    batch.producer, batch.sender = commit.producer, commit.headers
    return batch
