"""One partition's log: what LogWriter writes, read as slices, replayed, searched, retained and compacted."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Generator, Iterator

from protocol.errors import ErrorCode, KafkaError
from protocol.record_batch import BatchHeader
from storage.cleaning import compaction, retention
from storage.cleaning.compaction_plan import LastBatchOf, ProducersInLog
from storage.files.env import Env
from storage.files.errors import StorageError
from storage.files.removal import remove_directory
from storage.log import lookup
from storage.segments.config import LogConfig
from storage.segments.file_slice import FileSlice
from storage.segments.log_writer import LogWriter
from storage.segments.recovery import RecoveryReport, recover, recovering
from storage.segments.segment import base_offset_of
from storage.segments.slices import all_at_once
from storage.segments.synced_ends import SyncedMark

__all__ = ["FileSlice", "Log", "LogConfig", "RecoveryReport", "StorageError"]


class Log(LogWriter):
    """Open with Log.open."""

    @staticmethod
    def open(
        env: Env,
        directory: str,
        config: LogConfig | None = None,
        *,
        recovery_point: int = 0,
        log_start_offset: int = 0,
        clean: bool = False,
        synced: bool = True,
        topic_id: bytes | None = None,
        may_have_gaps: bool = True,
        synced_end: int | None = None,
        mark: SyncedMark | None = None,
    ) -> Log:
        """The log of a directory, recovered; clean says that it was closed well and need not be scanned.

        synced_end: everything below it was synced, and nothing above it was told to a client. None: that is unknown.
        mark:    where it is noted from now on.
        Durable: below the recovery point given (all of it when clean and synced); call sync() to make the rest so.
        """
        return all_at_once(
            Log.opening(
                env,
                directory,
                config,
                recovery_point=recovery_point,
                log_start_offset=log_start_offset,
                clean=clean,
                synced=synced,
                topic_id=topic_id,
                may_have_gaps=may_have_gaps,
                synced_end=synced_end,
                mark=mark,
            )
        )

    @staticmethod
    def opening(
        env: Env,
        directory: str,
        config: LogConfig | None = None,
        *,
        recovery_point: int,
        log_start_offset: int,
        clean: bool,
        synced: bool,
        topic_id: bytes | None,
        may_have_gaps: bool = True,
        synced_end: int | None = None,
        mark: SyncedMark | None = None,
    ) -> Generator[None, None, Log]:
        """The same in slices."""
        log = Log(env, directory, config or LogConfig(), topic_id)
        log.epochs.load(env.files, directory)
        recovered = yield from recovering(
            env, directory, log.config, log.epochs, recovery_point, clean, may_have_gaps, synced_end
        )
        log.segments, log.report = recovered.segments, recovered.report
        first = log.segments[0].base_offset if log.segments else log_start_offset
        end = max(recovered.end_offset, first)
        log.end_offset = log.flushed_offset = end
        log.log_start_offset = min(max(first, log_start_offset), end)
        log.synced_offset = end if clean and synced else min(recovery_point, end)
        log._names_synced = clean and synced
        log.epochs.cut_back(end + 1)
        log.epochs.cut_front(log.log_start_offset)
        log.cleaned_offset = log.log_start_offset
        if log.segments:
            log._activate(log.segments[-1])
        log.mark = mark
        if mark is not None:
            mark.cut(end)  # where it was cut by hand
        return log

    def reopen(self, limit_offset: int) -> None:
        """Take a log that was given up back into use, cut to what its owner knows to be durable.

        Errors:  OSError, StorageError: the disk is as bad as before; it stays out of use.
        """
        for segment in self.segments:
            segment.file.close()
        recovered = recover(
            self.env, self.directory, self.config, self.epochs, limit_offset, False, synced_end=limit_offset
        )
        self.segments, self.report = recovered.segments, recovered.report
        first = self.segments[0].base_offset if self.segments else self.log_start_offset
        self.end_offset = self.flushed_offset = max(recovered.end_offset, first)
        self.synced_offset = min(self.synced_offset, self.end_offset)
        self._pending, self._full, self._active, self.broken = [], [], None, None
        if self.segments:
            self._activate(self.segments[-1])
        self.epochs.cut_back(self.end_offset + 1)
        self.epochs.cut_front(self.log_start_offset)
        self.cut_back(limit_offset)

    # -- reading

    def read(self, offset: int, max_bytes: int, *, limit_offset: int, min_one: bool = True) -> FileSlice | None:
        """Whole batches of one segment from the one that holds offset, all below limit_offset.

        None: nothing to read there yet (or the first batch is larger than max_bytes and min_one is False).
        Errors:  OFFSET_OUT_OF_RANGE: before the log's start or after its end.
        """
        if self.shared_slices is not None:
            return self._read_shared(offset, max_bytes, limit_offset, min_one)
        if self.broken:
            raise StorageError(self.broken)
        written = self.flushed_offset
        if not self.log_start_offset <= offset <= self.end_offset:
            raise KafkaError(
                ErrorCode.OFFSET_OUT_OF_RANGE,
                f"Offset {offset} is not within {self.log_start_offset} to {self.end_offset}",
            )
        if offset >= limit_offset or offset >= written:
            return None
        segments = self.segments
        first = len(segments) - 1
        if offset < segments[first].base_offset:
            first = max(0, bisect_right(segments, offset, key=base_offset_of) - 1)
        for at in range(first, len(segments)):
            segment = segments[at]
            if segment.base_offset >= limit_offset:
                return None
            after = segments[at + 1].base_offset if at + 1 < len(segments) else written
            found = segment.slice(offset, max_bytes, limit_offset, min(after, written), min_one)
            if found is not None or segment.position_of(offset) < segment.file.size:
                return found
        return None

    def _read_shared(self, offset: int, max_bytes: int, limit_offset: int, min_one: bool) -> FileSlice | None:
        shared, self.shared_slices = self.shared_slices, None
        assert shared is not None
        key = (offset, max_bytes, limit_offset, min_one)
        try:
            if key not in shared:
                found = shared[key] = self.read(offset, max_bytes, limit_offset=limit_offset, min_one=min_one)
                if found is not None:
                    found.keeps = True
            return shared[key]
        finally:
            self.shared_slices = shared

    def batches(self, from_offset: int) -> Iterator[tuple[BatchHeader, memoryview]]:
        """(header, bytes) of every written batch from the one that holds from_offset on, in big reads."""
        segments = self.segments
        at = max(0, bisect_right(segments, from_offset, key=base_offset_of) - 1)
        for segment in segments[at:]:
            for _, header, batch in segment.batches(segment.position_of(from_offset)):
                yield header, batch

    def epoch_end_offset(self, epoch: int) -> tuple[int, int]:
        """(epoch, end offset) as OffsetForLeaderEpoch answers."""
        return self.epochs.end_offset(epoch, self.end_offset)

    def offset_for_timestamp(self, timestamp: int) -> tuple[int, int, int] | None:
        """(timestamp, offset, leader epoch) of the first record at least that late."""
        return lookup.offset_for_timestamp(self, timestamp)

    def max_timestamp(self) -> tuple[int, int, int] | None:
        """(timestamp, offset, leader epoch) of the record with the largest timestamp, the first of several."""
        return lookup.max_timestamp(self)

    # -- upkeep

    def delete_records_before(self, offset: int) -> int:
        """Move the start of the log up; retain() gives back the room. Returns the new start.

        Durable: when the caller has written log_start_offset into its checkpoint.
        """
        if offset > self.flushed_offset:
            raise KafkaError(ErrorCode.OFFSET_OUT_OF_RANGE, f"Offset {offset} is after the end {self.flushed_offset}")
        if offset > self.log_start_offset:
            self.log_start_offset = offset
            self.epochs.cut_front(offset)
            self.cleaned_offset = max(self.cleaned_offset, offset)
        return self.log_start_offset

    def retain(
        self, now_ms: int, limit_offset: int | None = None, before: Callable[[], object] | None = None
    ) -> list[int]:
        """Delete segments by start offset, size and time as Kafka does; their base offsets.

        limit_offset is the high watermark: nothing that reaches beyond it is deleted. `before` is called if any goes.
        """
        return retention.retain(self, now_ms, self.flushed_offset if limit_offset is None else limit_offset, before)

    def clean(
        self,
        now_ms: int,
        last_stable_offset: int | None = None,
        *,
        last_batch_of: LastBatchOf | None = None,
        producer_expiration_ms: int | None = None,
        commits: bool = False,
        tombstones_end: int | None = None,
    ) -> Iterator[None]:
        """Compact in slices of a few milliseconds; appends and reads may go on between them.

        last_batch_of, producer_expiration_ms: as ProducersInLog says.
        commits, tombstones_end: as storage.cleaning.compaction.clean says.
        """
        return compaction.clean(
            self,
            now_ms,
            self.flushed_offset if last_stable_offset is None else last_stable_offset,
            ProducersInLog(last_batch_of, producer_expiration_ms),
            commits=commits,
            tombstones_end=tombstones_end,
        )

    def dirty_ratio(self, now_ms: int | None = None, last_stable_offset: int | None = None) -> float:
        """Bytes that cleaning would look at again, as a part of all that it may touch."""
        return compaction.dirty_ratio(self, now_ms, last_stable_offset)

    def is_overdue(self, now_ms: int, last_stable_offset: int | None = None) -> bool:
        """Whether max.compaction.lag.ms asks for a cleaning now."""
        return compaction.is_overdue(self, now_ms, last_stable_offset)

    # -- the end

    def checkpoint(self) -> int:
        """Save indexes and epochs, so that a start after a crash scans only from the returned offset on."""
        if self.segments and self.epochs.dirty:
            self.epochs.save(self.env.files, self.directory)
        if self._active is not None and self._active.index_is_news:
            self._active.save_index()
        return self.synced_offset

    def close(self, clean: bool = True) -> None:
        """Write what is pending and, when clean, all that makes the next start quick."""
        if clean and not self.broken:
            self.flush()
            self.checkpoint()
        for segment in self.segments:
            segment.file.close()

    def delete(self) -> None:
        """The whole directory goes; a crash in between leaves a *-delete, which a start removes."""
        self.broken, self._active = f"{self.directory} was deleted", None
        self.when_compacted = None  # its owner refers to the log: without this circle both are freed at once
        held = [segment.file for segment in self.segments]  # while a file is open, its name goes in no time
        for segment in self.segments:
            segment.give_up_file()
        if not self.env.files.exists(self.directory):
            return
        remove_directory(self.env, self.directory)
        held.clear()
