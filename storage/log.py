"""One partition's log: segments in order. append buffers, flush writes, sync makes durable, read slices.

Nothing exists on disk before the first append. Three offsets say how far a batch has come: below end_offset
it is promised, below flushed_offset written (survives kill -9), below synced_offset synced (survives power
loss).
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence

from protocol.errors import ErrorCode, KafkaError
from protocol.record_batch import BatchHeader
from storage import checkpoints
from storage.config import LogConfig
from storage.env import Buffer, Env
from storage.epochs import LeaderEpochs
from storage.errors import StorageError
from storage.recovery import RecoveryReport, recover, remove_segment
from storage.segment import FileSlice, Segment

__all__ = ["FileSlice", "Log", "LogConfig", "RecoveryReport", "StorageError"]


class Log:
    """Open with Log.open."""

    def __init__(self, env: Env, directory: str, config: LogConfig, topic_id: bytes | None = None) -> None:
        self.env = env
        self.directory = directory
        self.topic_id = topic_id
        self.segments: list[Segment] = []
        self.epochs = LeaderEpochs()
        self.report = RecoveryReport()
        self.log_start_offset = 0
        self.end_offset = 0
        self.flushed_offset = 0
        self.synced_offset = 0
        # below this the cleaner has been; what lies behind it is dirty
        self.cleaned_offset = 0
        self._active: Segment | None = None
        self._pending: list[Segment] = []
        self._names_synced = True
        self._broken: str | None = None
        self.config = config

    @staticmethod
    def open(
        env: Env,
        directory: str,
        config: LogConfig | None = None,
        *,
        recovery_point: int = 0,
        log_start_offset: int = 0,
        clean: bool = False,
        topic_id: bytes | None = None,
    ) -> Log:
        """The log of a directory, recovered; clean says that it was closed well and need not be scanned.

        Durable: below the recovery point given (all of it when clean); call sync() to make the rest so.
        """
        log = Log(env, directory, config or LogConfig(), topic_id)
        log.epochs.load(env.files, directory)
        recovered = recover(env, directory, log.config, log.epochs, recovery_point, clean)
        log.segments, log.report = recovered.segments, recovered.report
        first = log.segments[0].base_offset if log.segments else log_start_offset
        end = max(recovered.end_offset, first)
        log.end_offset = log.flushed_offset = end
        log.log_start_offset = min(max(first, log_start_offset), end)
        log.synced_offset = end if clean else min(recovery_point, end)
        log.epochs.cut_back(end + 1)
        log.cleaned_offset = log.log_start_offset
        if log.segments:
            log._activate(log.segments[-1])
        return log

    # -- properties

    @property
    def dirty(self) -> bool:
        return bool(self._pending)

    @property
    def broken(self) -> str | None:
        return self._broken

    @property
    def leader_epoch(self) -> int:
        return self.epochs.latest

    @property
    def size_bytes(self) -> int:
        return sum(segment.size for segment in self.segments)

    @property
    def config(self) -> LogConfig:
        return self._config

    @config.setter
    def config(self, config: LogConfig) -> None:
        self._config = config
        self._interval_bytes = config.index_interval_bytes
        if self._active is not None:
            self._activate(self._active)

    # -- writing

    def append(
        self,
        buffers: Sequence[Buffer],
        *,
        base_offset: int,
        last_offset: int,
        max_timestamp_ms: int,
        size: int,
    ) -> None:
        """Promise one whole batch, already stamped with base offset and leader epoch. No I/O."""
        if base_offset != self.end_offset or self._broken:
            raise self._refusal(base_offset)
        segment = self._active
        if (
            segment is None
            or segment.size + size > segment.max_bytes
            or max_timestamp_ms > segment.roll_after_ms
            or last_offset > segment.max_offset
        ):
            segment = self._segment_for(base_offset, last_offset, max_timestamp_ms, size)
        if not segment.pending:
            self._pending.append(segment)
        segment.pending += buffers
        position = segment.size
        if max_timestamp_ms > segment.max_timestamp:
            segment.max_timestamp = max_timestamp_ms
            segment.max_timestamp_offset = last_offset
        if position - segment.indexed_position > self._interval_bytes:
            segment.add_index_entry(last_offset, position)
        segment.size = position + size
        self.end_offset = last_offset + 1

    def flush(self) -> None:
        """Write all that is pending, one writev a segment.

        Durable: survives kill -9 when this returns.
        Errors:  OSError: what was pending is dropped and the file cut back to what was written before.
        """
        pending = self._pending
        if not pending:
            return
        if self._broken:
            raise StorageError(self._broken)
        try:
            if self.epochs.dirty or not self.segments[0].file.size:
                self._prepare()
            for segment in pending:
                if not segment.file.size:
                    self._names_synced = False
                segment.flush()
        except OSError:
            self._drop_pending()
            raise
        self.flushed_offset = self.end_offset
        if len(pending) > 1 or pending[0] is not self._active:
            self._seal(pending)
        self._pending = []

    def sync(self) -> int:
        """Make durable what is written now; may run in another thread. Returns the offset synced.

        Errors:  OSError: nobody knows what the disk holds; cut back to synced_offset, do not try again.
        """
        target = self.flushed_offset
        if target <= self.synced_offset:
            return self.synced_offset
        segments = list(self.segments)
        for at in range(len(segments) - 1, -1, -1):
            segment = segments[at]
            try:
                if segment.file.size:
                    segment.file.sync()
            except FileNotFoundError:
                if segment in self.segments:
                    raise  # else retention was faster
            if segment.base_offset <= self.synced_offset:
                break
        if not self._names_synced:
            self._names_synced = True  # first: a file made meanwhile clears it again
            try:
                self.env.files.sync_dir(self.directory)
                self.env.files.sync_dir(self.directory.rpartition("/")[0])
            except OSError:
                self._names_synced = False
                raise
        self.synced_offset = target
        return target

    def cut_back(self, offset: int) -> None:
        """Drop every batch that holds or follows offset, on disk too."""
        if self._broken:
            raise StorageError(self._broken)
        self._drop_pending()
        if offset >= self.end_offset:
            return
        files = self.env.files
        try:
            while len(self.segments) > 1 and self.segments[-1].base_offset >= offset:
                segment = self.segments[-1]
                segment.file.close()
                remove_segment(files, self.directory, segment.base_offset)
                self.segments.pop()
                self.end_offset = segment.base_offset
            segment = self.segments[-1]
            position = segment.position_of(offset)
            end_offset = offset
            if position < segment.file.size:
                end_offset = min(offset, next(segment.headers(position))[1].base_offset)
                segment.cut_back(position, end_offset)
        except OSError as error:
            raise self._break(f"could not be cut back to offset {offset}: {error}") from error
        self.end_offset = self.flushed_offset = end_offset
        self.synced_offset = min(self.synced_offset, end_offset)
        self.log_start_offset = min(self.log_start_offset, end_offset)
        self.cleaned_offset = min(self.cleaned_offset, end_offset)
        self.epochs.cut_back(end_offset + 1)  # an epoch that begins just here has not written yet
        self._activate(segment)

    def set_leader_epoch(self, epoch: int) -> None:
        """From the end of the log on, a new leader epoch writes."""
        self.epochs.assign(epoch, self.end_offset)

    def roll(self) -> None:
        """Begin a new segment at the end of the log; the present one is sealed."""
        self.flush()
        if self._active is not None and self._active.size:
            self._seal([self._active, self._new_segment(self.end_offset)])

    # -- reading

    def read(
        self, offset: int, max_bytes: int, *, limit_offset: int, min_one: bool = True
    ) -> FileSlice | None:
        """Whole batches of one segment from the one that holds offset, all below limit_offset.

        None: nothing to read there yet (or the first batch is larger than max_bytes and min_one is False).
        Errors:  OFFSET_OUT_OF_RANGE: before the log's start or behind its end.
        """
        if self._broken:
            raise StorageError(self._broken)
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
            first = max(0, bisect_right(segments, offset, key=_base_offset) - 1)
        for at in range(first, len(segments)):
            segment = segments[at]
            if segment.base_offset >= limit_offset:
                return None
            after = segments[at + 1].base_offset if at + 1 < len(segments) else written
            found = segment.slice(offset, max_bytes, limit_offset, min(after, written), min_one)
            if found is not None or segment.position_of(offset) < segment.file.size:
                return found
        return None

    def batches(self, from_offset: int) -> Iterator[tuple[BatchHeader, memoryview]]:
        """(header, bytes) of every written batch from the one that holds from_offset on, in big reads."""
        segments = self.segments
        at = max(0, bisect_right(segments, from_offset, key=_base_offset) - 1)
        for segment in segments[at:]:
            for _, header, batch in segment.batches(segment.position_of(from_offset)):
                yield header, batch

    def epoch_end_offset(self, epoch: int) -> tuple[int, int]:
        """(epoch, end offset) as OffsetForLeaderEpoch answers."""
        return self.epochs.end_offset(epoch, self.end_offset)

    # -- the end

    def checkpoint(self) -> int:
        """Save indexes and epochs, so that a start after a crash scans only from the returned offset on."""
        if self.segments and self.epochs.dirty:
            self.epochs.save(self.env.files, self.directory)
        if self._active is not None and self._active.size and not self._active.pending:
            self._active.save_index()
        return self.synced_offset

    def close(self, clean: bool = True) -> None:
        """Write what is pending and, when clean, all that makes the next start quick."""
        if clean and not self._broken:
            self.flush()
            self.checkpoint()
        for segment in self.segments:
            segment.file.close()

    def delete(self) -> None:
        """The whole directory goes; a crash in between leaves a *-delete, which a start removes."""
        files = self.env.files
        self._broken = f"{self.directory} was deleted"
        for segment in self.segments:
            segment.file.close()
        if not files.exists(self.directory):
            return
        doomed = f"{self.directory}.{self.env.rng.uuid_bytes().hex()}-delete"
        files.rename(self.directory, doomed)
        files.remove_tree(doomed)

    # -- inside

    def _refusal(self, base_offset: int) -> Exception:
        if self._broken:
            return StorageError(self._broken)
        return ValueError(f"batch at offset {base_offset} does not follow {self.end_offset - 1}")

    def _segment_for(self, base_offset: int, last_offset: int, max_timestamp_ms: int, size: int) -> Segment:
        """The active segment, or a new one when it is full, too old or too far; append's slow path."""
        segment = self._active
        config = self._config
        if segment is not None and not segment.size:
            segment.roll_after_ms = max_timestamp_ms + config.segment_ms  # its first batch fits always
            return segment
        if (
            segment is None
            or segment.size + size > config.segment_bytes
            or max_timestamp_ms > segment.roll_after_ms
            or last_offset > segment.max_offset
        ):
            segment = self._new_segment(base_offset)
            segment.roll_after_ms = max_timestamp_ms + config.segment_ms
        return segment

    def _new_segment(self, base_offset: int) -> Segment:
        segment = Segment(self.env.files, self.directory, base_offset, self._config.segment_bytes)
        self.segments.append(segment)
        self._active = segment
        return segment

    def _activate(self, segment: Segment) -> None:
        """Take a segment with content as the one that is written to, under the present settings."""
        self._active = segment
        segment.max_bytes = self._config.segment_bytes
        first = next(segment.headers(0), None)
        if first is not None:
            segment.roll_after_ms = first[1].max_timestamp + self._config.segment_ms

    def _prepare(self) -> None:
        files = self.env.files
        if not files.exists(self.directory):
            files.makedirs(self.directory)
            if self.topic_id is not None:
                checkpoints.write_partition_metadata(files, self.directory, self.topic_id)
        if self.epochs.dirty:
            self.epochs.save(files, self.directory)

    def _seal(self, segments: Sequence[Segment]) -> None:
        """Indexes of segments that are full. Failing costs nothing: they are made again when needed."""
        for segment in segments:
            if segment is not self._active:
                try:
                    segment.save_index(final=True)
                except OSError:
                    continue

    def _drop_pending(self) -> None:
        """Back to the last state that is on disk as a whole."""
        pending, self._pending = self._pending, []
        if not pending:
            return
        try:
            for segment in reversed(pending):
                if segment.base_offset >= self.flushed_offset and len(self.segments) > 1:
                    segment.file.close()
                    remove_segment(self.env.files, self.directory, segment.base_offset)
                    self.segments.remove(segment)
                elif segment.pending:
                    segment.drop_pending()
                else:  # it was written, one after it was not
                    segment.cut_back(segment.position_of(self.flushed_offset), self.flushed_offset)
        except OSError as error:
            raise self._break(f"could not be cut back after a failed write: {error}") from error
        self.end_offset = self.flushed_offset
        self.epochs.cut_back(self.end_offset + 1)
        self._activate(self.segments[-1])

    def _break(self, why: str) -> StorageError:
        self._broken = f"The log {self.directory} is out of use until it is opened again: it {why}"
        return StorageError(self._broken)


def _base_offset(segment: Segment) -> int:
    return segment.base_offset
