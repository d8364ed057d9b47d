"""Loads a partition's producer state from snapshot, transaction index and log, and saves it.

Differs: A producer whose records were all deleted is known after a clean stop, and after kill -9 if it was
         DeleteRecords: a batch sent again is not appended again. Kafka forgets such producers, and appends it.
         One that has expired (producer.id.expiration.ms) is forgotten by the next check; Kafka does so at a start too.
Source:  Apache Kafka 4.3.1, stopped and started.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from broker.partitions.producer_snapshots import UNTOLD, ProducerSnapshots, encode_steps
from broker.partitions.producer_table import add_to_sequence
from broker.partitions.producers import Producers
from broker.partitions.transaction_index import TransactionIndexFiles
from protocol.record_batch import COMMIT, CONTROL, TRANSACTIONAL, BatchHeader, control_type, iter_records

if TYPE_CHECKING:
    from storage.files.env import Files
    from storage.log.log import Log


class ProducerFiles:
    """The producer files beside one log."""

    __slots__ = ("_index", "_log", "_snapshots")

    def __init__(self, files: Files, log: Log) -> None:
        self._log = log
        self._snapshots = ProducerSnapshots(files, log.directory)
        self._snapshots.remove_after(log.end_offset)  # they include records that a crash lost
        self._index = TransactionIndexFiles(files, log.directory)

    def load(self, *, batches: bool) -> Producers:
        """The state at the end of the flushed log."""
        log = self._log
        producers = Producers(batches=batches)
        offset = log.log_start_offset
        latest = self._snapshots.latest(log.flushed_offset)
        while latest is not None and latest[0] >= offset:
            at, snapshot = latest
            self._index.load(producers.aborted, at)
            told = snapshot.last_aborted_offset
            found = producers.aborted.last_offset
            if told in (UNTOLD, found) or not _is_marker(log, told):  # not: the cleaner or retention has removed it
                offset = at
                producers.load(snapshot.producers)
                break
            self._snapshots.refuse(at, f"the transaction index ends at {found}, not at {told}")
            producers = Producers(batches=batches)
            latest = self._snapshots.latest(log.flushed_offset)
        else:
            self._index.load(Producers().aborted, 0)
        # before the log is replayed, which may open another transaction of the same producer
        for producer_id, first in list(producers.open.items()):
            if first < offset and not _holds_records(log, first, offset, producer_id):
                producers.replay_cleaned(producer_id)
        replay_log(producers, log, offset, log.flushed_offset)
        producers.aborted.drop_before(log.log_start_offset)
        return producers

    def save(self, producers: Producers) -> Iterator[None]:
        """Write the state beside the log, unless it is written already or the log is not flushed.

        The state is that of the first step; the last step makes the file.
        """
        log = self._log
        end = log.end_offset
        if log.dirty or end in self._snapshots.offsets:
            return
        if end == log.log_start_offset and not len(producers.table):
            return  # an empty log needs a file only for producers whose records were deleted
        self._index.save(producers.aborted, [segment.base_offset for segment in log.segments], end)
        data = yield from encode_steps(producers.snapshot(), producers.aborted.last_offset)
        self._snapshots.write(end, data)
        yield

    def remove_after(self, end_offset: int) -> None:
        """The log was cut back: remove snapshots beyond its end."""
        self._snapshots.remove_after(end_offset)

    def remove_before(self, start_offset: int) -> None:
        """The log start offset has moved: remove older snapshots."""
        self._snapshots.remove_before(start_offset)


def _header_at(log: Log, offset: int) -> BatchHeader | None:
    """The header of the batch that begins at an offset."""
    if not log.log_start_offset <= offset < log.flushed_offset:
        return None
    header, _ = next(log.batches(offset), (None, b""))
    return header if header is not None and header.base_offset == offset else None


def _is_marker(log: Log, offset: int) -> bool:
    header = _header_at(log, offset)
    return header is not None and bool(header.attributes & CONTROL) and header.record_count > 0


def _holds_records(log: Log, first: int, end_offset: int, producer_id: int) -> bool:
    """Whether records of a transaction that was open at an offset are left below it.

    If some are, its marker is there too, or there is none yet. If none are, the cleaner may have removed the marker.
    """
    for header, _ in log.batches(max(first, log.log_start_offset)):
        if header.base_offset >= end_offset:
            break
        if header.producer_id == producer_id and header.record_count and not header.attributes & CONTROL:
            return True
    return False


def replay_log(producers: Producers, log: Log, from_offset: int, end_offset: int) -> None:
    """Replay a part of the log."""
    for header, batch in log.batches(from_offset):
        if header.base_offset >= end_offset:
            break
        if header.producer_id >= 0:
            replay_batch(producers, header, batch)


def replay_batch(producers: Producers, header: BatchHeader, batch: bytes | memoryview) -> None:
    """Replay one batch of a producer."""
    if header.attributes & CONTROL:
        for record in iter_records(batch):
            kind = control_type(record.key) if record.key is not None else -1
            if kind in (0, 1) and record.value is not None:
                producers.replay_marker(
                    header.producer_id,
                    header.producer_epoch,
                    int.from_bytes(record.value[2:6], "big", signed=True),
                    record.timestamp,
                    header.base_offset,
                    commit=kind == COMMIT,
                )
        return
    base_sequence = header.base_sequence
    producers.replay(
        header.producer_id,
        header.producer_epoch,
        base_sequence,
        base_sequence if base_sequence < 0 else add_to_sequence(base_sequence, header.last_offset_delta),
        header.base_offset,
        header.last_offset,
        header.max_timestamp,
        transactional=bool(header.attributes & TRANSACTIONAL and header.record_count),  # 0: emptied by the cleaner
    )
