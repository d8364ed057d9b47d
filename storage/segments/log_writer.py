"""The writing half of a log: append buffers, flush writes, sync makes durable, cut_back takes back.

Three offsets say how far a batch has come: below end_offset it is promised, below flushed_offset written
(survives kill -9), below synced_offset synced (survives power loss). A write that fails leaves the log as it
was before it; when even that cannot be had, the log is out of use until it is opened again.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Sequence

from storage.files import checkpoints
from storage.files.env import Buffer, Env
from storage.files.errors import StorageError
from storage.segments.config import LogConfig
from storage.segments.file_slice import FileSlice
from storage.segments.index import TIME_ENTRY_BYTES
from storage.segments.leader_epochs import LeaderEpochs
from storage.segments.recovery import RecoveryReport, remove_segment, remove_swaps
from storage.segments.rolling import must_roll, seal, set_age
from storage.segments.segment import NEVER, Segment, base_offset_of
from storage.segments.synced_ends import SyncedMark
from storage.segments.transaction_index import Markers


class LogWriter:
    """Segments in order, the last one active. Nothing exists on disk before the first append."""

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
        self.synced_ms = env.clock.steady_ms()  # when it was synced last, or opened
        # how far the clock was then ahead of the one that dates files
        self.ahead_of_files_ms = env.clock.now_ms() - env.files.file_clock_ms()
        # below this the cleaner has been; what follows it is dirty
        self.cleaned_offset = 0
        self.held_tombstones = False  # whether the last cleaning kept some that were due
        # called with base offset, end offset and remaining markers when the cleaner has replaced segments by one
        self.when_compacted: Callable[[int, int, Markers], None] | None = None
        # called with the offset at which the log will begin, before any segment is removed for that
        self.before_start_moves: Callable[[int], object] | None = None
        # what was read while several fetches that wait for the same records look one after the other; None: they do not
        self.shared_slices: dict[tuple[int, int, int, bool], FileSlice | None] | None = None
        self._active: Segment | None = None
        self._pending: list[Segment] = []
        self._full: list[Segment] = []  # followed by another one, their indexes not yet on disk
        self._names_synced = True
        self.mark: SyncedMark | None = None  # where it is noted how far the log is synced
        self.broken: str | None = None  # why the log is out of use
        self.config = config

    # -- properties

    @property
    def dirty(self) -> bool:
        """Whether batches are promised that are not written."""
        return bool(self._pending)

    @property
    def leader_epoch(self) -> int:
        """The epoch that writes now; -1 when none was set."""
        return self.epochs.latest

    @property
    def size_bytes(self) -> int:
        """Bytes of all batches, promised ones included."""
        return sum(segment.size for segment in self.segments)

    @property
    def config(self) -> LogConfig:
        """The settings; new ones hold from the next append on."""
        return self._config

    @config.setter
    def config(self, config: LogConfig) -> None:
        self._config = config
        self._interval_bytes = config.index_interval_bytes
        self.flush_messages = config.flush_messages
        self._max_index_entries = max(1, config.segment_index_bytes // TIME_ENTRY_BYTES - 1)
        if self._active is not None:
            self._activate(self._active)

    # -- writing

    def append(
        self, buffers: Sequence[Buffer], *, base_offset: int, last_offset: int, max_timestamp_ms: int, size: int
    ) -> None:
        """Promise one whole batch, already stamped with base offset and leader epoch. No I/O."""
        if base_offset != self.end_offset:
            raise ValueError(f"batch at offset {base_offset} does not follow {self.end_offset - 1}")
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
        elif segment.max_timestamp < 0:
            segment.undated_written_ms = self.env.clock.now_ms()
        if position - segment.indexed_position > self._interval_bytes:
            segment.add_index_entry(last_offset, position)
            if len(segment.index.offsets) >= self._max_index_entries:
                segment.is_full = True
                segment.roll_after_ms = -NEVER  # the next batch begins a new segment
        segment.size = position + size
        self.end_offset = last_offset + 1

    def append_together(self, batches: Sequence[tuple[bytes, int]], *, max_timestamp_ms: int) -> None:
        """Promise whole batches, (bytes, last offset) each, that are to be in one segment. No I/O."""
        size = sum(len(batch) for batch, _ in batches)
        last_offset = batches[-1][1]
        segment = self._active
        if (
            segment is None
            or segment.size + size > segment.max_bytes
            or max_timestamp_ms > segment.roll_after_ms
            or last_offset > segment.max_offset
        ):
            segment = self._segment_for(self.end_offset, last_offset, max_timestamp_ms, size)
        max_bytes, roll_after_ms = segment.max_bytes, segment.roll_after_ms
        segment.max_bytes = NEVER
        for batch, last_offset in batches:
            segment.roll_after_ms = NEVER  # no batch begins a segment, even when the index is full
            base_offset, size = self.end_offset, len(batch)
            self.append(
                (batch,), base_offset=base_offset, last_offset=last_offset, max_timestamp_ms=max_timestamp_ms, size=size
            )
        segment.max_bytes = max_bytes
        segment.roll_after_ms = -NEVER if segment.is_full else roll_after_ms

    def flush(self) -> None:
        """Write all that is pending, one writev a segment.

        Durable: survives kill -9 when this returns.
        Errors:  OSError: what was pending is dropped and the file cut back to what was written before.
        """
        if self.broken:
            raise StorageError(self.broken)
        pending = self._pending
        if not pending:
            return
        try:
            if self.epochs.dirty:
                self._prepare()
            for segment in pending:
                file = segment.file
                if not file.size:
                    if segment is self.segments[0]:
                        self._prepare()
                    elif self.env.files.syncs:
                        self._sync_files(segment.base_offset)  # or a loss of power could keep this one without them
                    self._names_synced = False
                file.append(segment.pending)  # as Segment.flush: this is done for each write
                segment.pending = []
                segment.flushed_max = segment.max_timestamp, segment.max_timestamp_offset
        except OSError:
            self._drop_pending()
            raise
        self.flushed_offset = self.end_offset
        self._pending = []
        if self._full:
            self._seal()

    def sync(self) -> int:
        """Make durable what is written now; may run in another thread. Returns the offset synced.

        Errors:  OSError: what the disk holds is unknown; cut back to synced_offset, do not try again.
        """
        if self.broken:
            raise StorageError(self.broken)
        target = self.flushed_offset
        if target <= self.synced_offset:
            return self.synced_offset
        cuts = self.mark.cuts if self.mark is not None else 0
        self._sync_files(target)
        if self.mark is not None:
            self.mark.note(target, cuts)
        self.synced_offset = target
        self.synced_ms = self.env.clock.steady_ms()
        return target

    def _sync_files(self, end_offset: int) -> None:
        """Sync all that is written to the segments that begin before an offset."""
        if not self._names_synced and self.topic_id is not None:  # before the data: a start reads whose they are
            checkpoints.sync_partition_metadata(self.env.files, self.directory, self.topic_id)
        segments = list(self.segments)
        first = max(0, bisect_right(segments, self.synced_offset, key=base_offset_of) - 1)
        for segment in segments[first:]:  # upwards: no crash may keep a later one without an earlier one
            try:
                if segment.file.size and segment.base_offset < end_offset:
                    segment.file.sync()
            except FileNotFoundError:
                if segment in self.segments and not segment.is_going:
                    raise  # else retention or the cleaner was faster
        if not self._names_synced:
            self._names_synced = True  # first: a file made meanwhile clears it again
            try:
                self.env.files.sync_dir(self.directory)
                self.env.files.sync_dir(self.directory.rpartition("/")[0])
            except OSError:
                self._names_synced = False
                raise

    def forget_syncs(self, offset: int) -> None:
        """From an offset on, what was synced is about to be copied: a later sync must sync the copy."""
        self.synced_offset = min(self.synced_offset, offset)
        self._names_synced = False

    def cut_back(self, offset: int) -> None:
        """Drop every batch that holds or follows offset, on disk too."""
        if self.broken:
            raise StorageError(self.broken)
        self._drop_pending()
        if offset >= self.end_offset:
            return
        files = self.env.files
        try:
            if self.mark is not None:
                self.mark.cut(offset)
            count = len(self.segments) + remove_swaps(files, self.directory, self.segments)
            while len(self.segments) > 1 and self.segments[-1].base_offset >= offset:
                segment = self.segments.pop()
                segment.retire()
                remove_segment(files, self.directory, segment.base_offset)
                self.end_offset = segment.base_offset
            if len(self.segments) < count:
                files.sync_dir(self.directory)  # before the cut: a power cut must not leave a hole
            segment = self.segments[-1]
            position = segment.position_of(offset)
            end_offset = offset
            if position < segment.file.size:
                end_offset = min(offset, next(segment.headers(position))[1].base_offset)
                segment.cut_back(position, end_offset)
        except OSError as error:
            raise self.give_up(f"could not be cut back to offset {offset}: {error}") from error
        self.end_offset = self.flushed_offset = end_offset
        self.synced_offset = min(self.synced_offset, end_offset)
        self.log_start_offset = min(self.log_start_offset, end_offset)
        self.cleaned_offset = min(self.cleaned_offset, end_offset)
        self.epochs.cut_back(end_offset + 1)  # an epoch that begins just here has not written yet
        self._activate(segment)

    def set_leader_epoch(self, epoch: int) -> None:
        """From the end of the log on, a new leader epoch writes.

        An earlier one goes on where the later one has written nothing and could not be recorded.
        """
        if epoch < self.epochs.latest:
            self.epochs.cut_back(self.end_offset)
        self.epochs.assign(epoch, self.end_offset)

    def roll(self) -> None:
        """Begin a new segment at the end of the log; the present one is sealed."""
        self.flush()
        if self._active is not None and self._active.size:
            self._new_segment(self.end_offset)
            self._seal()

    def not_appended(self, last_offset: int, max_timestamp_ms: int, size: int) -> None:
        """A batch is refused or repeated. If it had needed a new segment, the next batch begins one.

        Kafka makes room for a batch before it asks whether the producer may append it. Source: UnifiedLog.append.
        """
        segment = self._active
        if segment is not None and must_roll(
            segment, self._config, self.env.clock, last_offset, max_timestamp_ms, size
        ):
            segment.is_full = True
            segment.roll_after_ms = -NEVER

    # -- inside

    def _segment_for(self, base_offset: int, last_offset: int, max_timestamp_ms: int, size: int) -> Segment:
        """The active segment, or a new one when it is full, too old or too far; append's slow path."""
        if self.broken:
            raise StorageError(self.broken)
        segment = self._active
        if segment is None or must_roll(segment, self._config, self.env.clock, last_offset, max_timestamp_ms, size):
            segment = self._new_segment(base_offset)
        if not segment.size:  # its first batch fits always
            set_age(segment, self._config, self.env.clock, max_timestamp_ms)
        return segment

    def _new_segment(self, base_offset: int) -> Segment:
        segment = Segment(self.env.files, self.directory, base_offset, self._config.segment_bytes)
        if self._active is not None:
            self._full.append(self._active)
        self.segments.append(segment)
        self._active = segment
        return segment

    def _activate(self, segment: Segment) -> None:
        """Take a segment with content as the one that is written to, under the present settings."""
        self._active = segment
        segment.max_bytes = self._config.segment_bytes
        first = next(segment.headers(0), None)
        if first is not None and (segment.undated_since_ms is None or first[1].max_timestamp >= 0):
            set_age(segment, self._config, self.env.clock, first[1].max_timestamp)
        if segment.is_full or not segment.size:
            segment.roll_after_ms = -NEVER  # the next append takes the slow path

    def _prepare(self) -> None:
        files = self.env.files
        checkpoints.make_partition_directory(files, self.directory, self.topic_id)
        if self.epochs.dirty:
            self.epochs.save(files, self.directory)

    def _seal(self) -> None:
        full, self._full = self._full, []
        seal([segment for segment in full if segment is not self._active and segment in self.segments])

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
            raise self.give_up(f"could not be cut back after a failed write: {error}") from error
        self.end_offset = self.flushed_offset
        self.epochs.cut_back(self.end_offset + 1)
        self._activate(self.segments[-1])

    def give_up(self, why: str) -> StorageError:
        """The log is out of use from here on; the error to raise says so, and so will every other use."""
        self._active = None  # so that `append` looks here
        self.broken = f"The log {self.directory} is out of use until it is opened again: it {why}"
        return StorageError(self.broken)
