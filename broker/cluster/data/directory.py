"""The data directory: its identity and lock, the paths of logs, and the checkpoints.

Layout, as Kafka's: `meta.properties`, the checkpoints, `.lock`, `__cluster_metadata-0/` and a directory a partition.
"""

from __future__ import annotations

import logging
from collections.abc import Generator, Iterator
from functools import partial
from typing import TYPE_CHECKING

from broker.cluster.data import copies
from broker.cluster.data.identity import DirectoryError, ensure_cluster_id, refuse_strangers
from broker.cluster.data.log_settings import log_config
from broker.cluster.metadata_image import MetadataImage, cut_before
from broker.cluster.topic_names import METADATA_TOPIC
from storage.files import checkpoints
from storage.files.errors import LockedError, StorageError
from storage.files.removal import is_leftover, remove_directory
from storage.log.log import Log, LogConfig
from storage.log.synced_ends import SyncedEndsOfLogs
from storage.segments.recovery import remove_segment
from storage.segments.slices import all_at_once

if TYPE_CHECKING:
    from broker.cluster.metadata import ClusterMetadata
    from broker.cluster.topics import Topic
    from broker.config.settings import BrokerConfig
    from storage.files.env import Env, Files, Lock

logger = logging.getLogger("momus.directory")

WORTH_AN_INDEX_BYTES = 1 << 20  # a start walks over less within a few milliseconds


class DataDirectory:
    """One data directory, locked for as long as the process lives."""

    def __init__(self, env: Env, path: str, config: BrokerConfig, lock: Lock) -> None:
        self.env = env
        self.path = path
        self._config = config
        self._lock = lock
        self.cluster_id = ""
        self.was_clean = self.is_copy = (
            False  # a copy of another directory: every log is whole, and nothing after its recovery point synced
        )
        self._recovery_points: dict[tuple[str, int], int] = {}
        self._log_starts: dict[tuple[str, int], int] = {}
        self._cleaned: dict[tuple[str, int], int] = {}
        self.synced_ends = SyncedEndsOfLogs(env.files, path, is_kept=config.flush == "fsync")
        self._changed: set[str] = set()  # checkpoint files that must be written
        self.logs: dict[tuple[str, int], Log] = {}
        self._ahead: dict[tuple[str, int], Generator[None, None, Log]] = {}  # logs that are not opened yet: see recover
        self.image = MetadataImage(env.files, f"{path}/{METADATA_TOPIC}-0")

    @classmethod
    def open(cls, env: Env, path: str, config: BrokerConfig) -> DataDirectory:
        """Lock the directory; make it if it does not exist. Errors: DirectoryError, OSError."""
        files = env.files
        refuse_strangers(files, path)
        checkpoints.make_directory(files, path)
        try:
            lock = files.lock(f"{path}/{checkpoints.LOCK}")
        except LockedError as error:
            raise DirectoryError(
                f"the data directory {path} is in use by another process: stop that one, or use another --data-dir"
            ) from error
        directory = cls(env, path, config, lock)
        if files.exists(f"{path}/{checkpoints.UNFINISHED}"):
            logger.warning("a reset, restore or fork of %s was cut short: it begins empty", path)
            copies.move_aside(files, path, directory._doomed(), sync=config.flush == "fsync")
        directory.cluster_id = ensure_cluster_id(env, path, config)
        directory._recovery_points = checkpoints.read_offsets(files, f"{path}/{checkpoints.RECOVERY_POINTS}")
        directory._log_starts = checkpoints.read_offsets(files, f"{path}/{checkpoints.LOG_START_OFFSETS}")
        directory._cleaned = checkpoints.read_offsets(files, f"{path}/{checkpoints.CLEANER_OFFSETS}")
        directory.synced_ends.open(has_logs=bool(copies.partitions_in(files, path)))
        directory.was_clean = checkpoints.take_mark(files, path, checkpoints.CLEAN_SHUTDOWN)
        directory.is_copy = checkpoints.take_mark(files, path, checkpoints.COPY)
        return directory

    # -- logs

    def open_metadata_log(self) -> Log:
        """The log of the cluster's metadata, from the offset of its image on."""
        config = LogConfig(segment_bytes=1 << 30, cleanup_policy=frozenset())
        key = (METADATA_TOPIC, 0)
        self.image.find()
        self._log_starts[key] = self.image.offset
        log = all_at_once(self._recovering(*key, config))
        if log.end_offset < self.image.offset:  # the log was truncated by hand: the image has all of it
            for segment in log.segments:
                segment.file.close()
                remove_segment(self.env.files, log.directory, segment.base_offset)
            log = all_at_once(self._recovering(*key, config))
        if log.size_bytes and log.end_offset == self.image.offset:  # a crash before the log was cut
            cut_before(log, self.image.offset, self.env.clock.now_ms())
        return log

    def open_log(self, metadata: ClusterMetadata, topic: Topic, index: int) -> Log:
        """The log of one partition. No file is made before its first batch."""
        key = topic.name, index
        ahead = self._ahead.pop(key, None)
        for _ in ahead or ():  # what is left; nothing, if it could not be opened
            pass
        if ahead is None or key not in self.logs:
            self._remove_other(topic, index)
            return all_at_once(self._opening(metadata, topic, index))
        log = self.logs[key]
        log.config = log_config(metadata, topic)
        log.set_leader_epoch(topic.partitions[index].leader_epoch)
        return log

    def recover(self, metadata: ClusterMetadata, topic: Topic, index: int) -> Iterator[None]:
        """Open a log in slices, before it is needed; `open_log` does what is left. Errors: StorageError, OSError."""
        key = topic.name, index
        if key not in self.logs:
            self._remove_other(topic, index)
            # if another job is at it, they take turns
            yield from self._ahead.setdefault(key, self._opening(metadata, topic, index))

    def _opening(self, metadata: ClusterMetadata, topic: Topic, index: int) -> Generator[None, None, Log]:
        log = yield from self._recovering(topic.name, index, log_config(metadata, topic), topic.topic_id)
        log.set_leader_epoch(topic.partitions[index].leader_epoch)
        return log

    def _remove_other(self, topic: Topic, index: int) -> None:
        """Remove files that a crash has left of an older topic of the same name."""
        path = f"{self.path}/{topic.name}-{index}"
        topic_id = checkpoints.read_partition_metadata(self.env.files, path)
        if topic_id not in (None, topic.topic_id):
            logger.info("removing %s: its topic was deleted", path)
            self.delete(topic.name, index)
            self.write_checkpoints()

    def _recovering(
        self, name: str, index: int, config: LogConfig, topic_id: bytes | None = None
    ) -> Generator[None, None, Log]:
        key = (name, index)
        recovery_point = self._recovery_points.get(key, 0)
        synced_end = self.synced_ends.before(topic_id, index, recovery_point)
        log = yield from Log.opening(
            self.env,
            f"{self.path}/{name}-{index}",
            config,
            recovery_point=recovery_point,
            log_start_offset=self._log_starts.get(key, 0),
            clean=self.was_clean or self.is_copy,
            synced=not self.is_copy,
            topic_id=topic_id,
            may_have_gaps="compact" in config.cleanup_policy or key in self._cleaned,
            synced_end=synced_end,
            mark=self.synced_ends.mark(topic_id, index),
        )
        if log.report.dropped_bytes:
            logger.warning("%s-%d: %s", name, index, log.report)
        if synced_end is not None and log.end_offset < synced_end:
            logger.error("%s-%d ends at offset %d, but below %d it was synced", name, index, log.end_offset, synced_end)
        if recovery_point > log.end_offset:  # truncated by hand: new records are not synced
            self.recovery_point_moved(key, log.end_offset)
            self.write_checkpoints()
        if key in self._cleaned:
            log.cleaned_offset = max(log.cleaned_offset, min(self._cleaned[key], log.end_offset))
            self.cleaned(key, log.cleaned_offset)
        if self._config.flush == "fsync" and log.synced_offset < log.end_offset:
            log.sync()  # after a crash data may be in the page cache alone: sync it before a client sees it
        if log.mark is not None:
            log.mark.opened(log.synced_offset)
        log.before_start_moves = partial(self._log_will_begin, key)
        self.logs[key] = log
        return log

    def configure(self, metadata: ClusterMetadata, topic: Topic) -> None:
        """Apply the topic's present settings to its open logs."""
        config = log_config(metadata, topic)
        for index in range(len(topic.partitions)):
            log = self.logs.get((topic.name, index))
            if log is not None and log.config != config:
                log.config = config

    def exists(self, name: str, index: int) -> bool:
        """Whether a partition has anything on disk."""
        return self.env.files.exists(f"{self.path}/{name}-{index}")

    def size_on_disk(self, name: str, index: int) -> int:
        """Bytes of the segments of a log that is not open."""
        files, path = self.env.files, f"{self.path}/{name}-{index}"
        return sum(files.file_size(f"{path}/{file}") for file in files.listdir(path) if file.endswith(".log"))

    def volume_bytes(self) -> tuple[int, int]:
        """(total, usable) bytes of its volume."""
        return self.env.files.free_bytes(self.path)

    def forget(self, name: str, index: int) -> None:
        """A partition's log was deleted. Call `write_checkpoints` before the name is used again."""
        log = self.logs.pop((name, index), None)
        if log is not None:
            self.synced_ends.forget(log.topic_id, index)
        if (name, index) in self._ahead:
            self._ahead.pop((name, index)).close()
        if self._recovery_points.pop((name, index), None) is not None:
            self._changed.add(checkpoints.RECOVERY_POINTS)
        if self._log_starts.pop((name, index), None) is not None:
            self._changed.add(checkpoints.LOG_START_OFFSETS)
        if self._cleaned.pop((name, index), None) is not None:
            self._changed.add(checkpoints.CLEANER_OFFSETS)

    def delete(self, name: str, index: int) -> None:
        """Remove the files of a partition that is not open."""
        if self.exists(name, index):
            remove_directory(self.env, f"{self.path}/{name}-{index}")
        self.forget(name, index)

    # -- checkpoints

    def recovery_point(self, key: tuple[str, int]) -> int:
        """The offset up to which a log need not be checked after a crash."""
        return self._recovery_points.get(key, 0)

    def recovery_point_moved(self, key: tuple[str, int], offset: int) -> None:
        """A log is synced up to an offset; `write_checkpoints` writes that down for the next start."""
        if self._recovery_points.get(key, 0) != offset:
            self._recovery_points[key] = offset
            self._changed.add(checkpoints.RECOVERY_POINTS)

    def log_start_moved(self, name: str, index: int, offset: int) -> None:
        """A log's start offset has moved; durable when `write_checkpoints` returns."""
        if self._log_starts.get((name, index), 0) != offset:
            self._log_starts[name, index] = offset
            self._changed.add(checkpoints.LOG_START_OFFSETS)

    def _log_will_begin(self, key: tuple[str, int], offset: int) -> None:
        """Note the new start of a log before segments in front of it are removed. A loss of power may bring any of them
        back; by this note a start knows that they were removed. Errors: OSError.
        """
        self.log_start_moved(*key, offset)
        if self._config.flush == "fsync":  # at "os" the next checkpoint has it, at the latest that of a clean stop
            self.write_checkpoints()

    def will_clean(self, key: tuple[str, int]) -> None:
        """Note that a log may have gaps from now on, even if its policy changes before `cleaned`. Errors: OSError."""
        if key not in self._cleaned:
            self._cleaned[key] = 0
            self._changed.add(checkpoints.CLEANER_OFFSETS)
            self.write_checkpoints()

    def cleaned(self, key: tuple[str, int], offset: int) -> None:
        """The cleaner has cleaned below an offset. If this is lost, a start cleans again."""
        if self._cleaned.get(key, 0) != offset:
            self._cleaned[key] = offset
            self._changed.add(checkpoints.CLEANER_OFFSETS)

    def write_checkpoints(self) -> None:
        """Write the checkpoints that have changed. Errors: OSError: not written; the next call tries again."""
        for name, offsets in (
            (checkpoints.RECOVERY_POINTS, self._recovery_points),
            (checkpoints.LOG_START_OFFSETS, self._log_starts),
            (checkpoints.CLEANER_OFFSETS, self._cleaned),
        ):
            if name in self._changed:
                checkpoints.write_offsets(self.env.files, f"{self.path}/{name}", offsets)
                self._changed.discard(name)

    def remove_orphans(self, metadata: ClusterMetadata) -> None:
        """Remove files of topics that were deleted just before a crash.

        A directory with the name of an existing topic is checked when it is opened: there may be 10,000.
        """
        files = self.env.files
        for name in files.listdir(self.path):
            key = copies.partition_of(name)
            if is_leftover(name):
                files.remove_tree(f"{self.path}/{name}")
            elif key is not None and not copies.is_known(metadata, *key):
                topic_id = checkpoints.read_partition_metadata(files, f"{self.path}/{name}")
                if topic_id is not None and topic_id not in metadata.topics_by_id:
                    logger.info("removing %s: its topic was deleted", name)
                    remove_directory(self.env, f"{self.path}/{name}")
        known = [(metadata.topics.get(name), index) for name, index in copies.partitions_in(files, self.path)]
        older = [(topic.topic_id, index) for topic, index in known if topic is not None]
        self.synced_ends.begin(metadata.topics_by_id, older, self.logs.values())
        for key in {*self._recovery_points, *self._log_starts, *self._cleaned}:
            if not copies.is_known(metadata, *key):
                self.forget(*key)  # or a topic made again under this name would begin at the old one's start offset
        self.write_checkpoints()

    def discard(self, place: str | None = None) -> str:
        """Give everything up: close the logs unwritten, and move all files aside, into a folder that may be removed.

        A move is quick; the removal may take long. Returns that folder. It is in `place`, which takes the directory
        itself as well; without a place the directory stays, empty. A start removes what a crash has left there.
        Errors: OSError.
        """
        files = self.env.files
        for log in self.logs.values():
            for segment in log.segments:
                segment.file.close()
        self.logs.clear()
        self.synced_ends.close()
        self._lock.release()
        doomed = self._doomed(place)
        if place is not None:
            files.rename(self.path, doomed)
            return doomed
        is_synced = self._config.flush == "fsync"
        files.write_file_atomic(f"{self.path}/{checkpoints.UNFINISHED}", b"", sync=is_synced)
        copies.move_aside(files, self.path, doomed, sync=is_synced)
        return doomed

    def _doomed(self, place: str | None = None) -> str:
        return copies.new_discarded(self.env.files, place or self.path, self.env.rng)

    def copy_to(self, target: Files, path: str, *, sync: bool = False) -> copies.Copied:
        """Fill another directory with what a start would find here now. No bytes are copied (copies.py).

        Durable: with sync, what is durable here. Errors: OSError.
        """
        for log in self.logs.values():
            if not log.broken and log.size_bytes >= WORTH_AN_INDEX_BYTES:
                log.checkpoint()
        copied = copies.copy_directory(self.env.files, self.path, target, path, sync=sync)
        # The last segment is written to: whoever is first, here or there, goes on with a copy that is not synced.
        points = {key: min(point, copied.last_segments.get(key, 0)) for key, point in self._recovery_points.items()}
        checkpoints.write_offsets(target, f"{path}/{checkpoints.RECOVERY_POINTS}", points, sync=sync)
        if self._config.flush != "fsync":  # else the copy is synced before it is used
            for key, log in self.logs.items():
                log.forget_syncs(copied.last_segments.get(key, 0))
            for key, point in points.items():
                self.recovery_point_moved(key, point)
            self.write_checkpoints()
        unopened = copied.last_segments.keys() - self.logs.keys()
        if not any(log.broken for log in self.logs.values()) and (self.was_clean or self.is_copy or not unopened):
            target.write_file_atomic(f"{path}/{checkpoints.COPY}", b"", sync=sync)
        return copied

    def close(self, deadline_ms: int) -> None:
        """Sync and close every log, and write the recovery points.

        Durable: everything, if the mark of a clean shutdown is written. Logs that are left at the deadline (of the
                 monotonic clock) are only written, and scanned at the next start.
        """
        # a log that is not opened yet is not checked yet after a crash, and not synced in a copy
        whole = self.was_clean or copies.partitions_in(self.env.files, self.path) <= self.logs.keys()
        for key, log in self.logs.items():
            in_time = self.env.clock.monotonic_ms() < deadline_ms
            try:
                if in_time and not log.broken:
                    log.flush()
                    log.sync()
                log.close(clean=in_time or log.dirty)
            except (OSError, StorageError) as error:
                logger.error("%s-%d was not closed cleanly: %s", *key, error)
            whole = whole and not log.broken and log.synced_offset == log.end_offset
            self.recovery_point_moved(key, log.synced_offset)
        self.write_checkpoints()
        if whole:
            checkpoints.mark_clean_shutdown(self.env.files, self.path)
        self.synced_ends.close()
        self._lock.release()
