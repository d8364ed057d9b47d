"""Recovery points: every minute what was written is synced in a thread, and its end noted for the next start.

Without them a start after kill -9 would scan everything written since the last clean stop.
"""

from __future__ import annotations

import logging
from collections.abc import Generator, Iterator
from typing import TYPE_CHECKING

from storage.files.errors import StorageError

if TYPE_CHECKING:
    from broker.cluster.data.directory import DataDirectory
    from storage.files.env import Files
    from storage.log.log import Log

logger = logging.getLogger("momus.checkpointing")


class Checkpointing:
    """The rounds of one broker."""

    def __init__(self, directory: DataDirectory, files: Files, *, fsync: bool) -> None:
        self._directory = directory
        self._files = files
        self._fsync = fsync
        self._failed: set[Log] = set()  # a failed sync is never tried again: a later success proves nothing

    def round(self) -> Iterator[None]:
        """Sync and note every log that has grown, one at a time, to leave the disk to clients."""
        directory = self._directory
        for key, log in list(directory.logs.items()):
            reached = log.synced_offset if self._fsync else log.flushed_offset
            if reached <= directory.recovery_point(key) or log.broken or log in self._failed:
                continue
            if not self._fsync and not (yield from self._sync(key, log)):
                continue
            if directory.logs.get(key) is log and not log.broken:  # neither deleted nor out of use meanwhile
                try:
                    log.checkpoint()
                except OSError as error:
                    logger.error("%s-%d: cannot write its indexes: %s", *key, error)
                    continue
                directory.recovery_point_moved(key, min(log.synced_offset, log.flushed_offset))
            yield
        directory.write_checkpoints()

    def sync_old(self, now_ms: int) -> Iterator[None]:
        """Sync every log that has records which are not synced after flush.ms. `now_ms`: by the steady clock."""
        for key, log in list(self._directory.logs.items()):
            old = log.synced_offset < log.flushed_offset and now_ms - log.synced_ms >= log.config.flush_ms
            if old and not log.broken and log not in self._failed:
                yield from self._sync(key, log)

    def _sync(self, key: tuple[str, int], log: Log) -> Generator[None, None, bool]:
        sync = _Sync(log)
        is_done = self._files.start(sync.run)
        while not is_done():
            yield
        if sync.error is not None:
            logger.error("%s-%d: sync failed, not tried again: %s", *key, sync.error)
            self._failed.add(log)
        return sync.error is None


class _Sync:
    """Syncs a log in a thread and keeps the error."""

    def __init__(self, log: Log) -> None:
        self._log = log
        self.error: Exception | None = None

    def run(self) -> None:
        """Log.sync without raising."""
        try:
            self._log.sync()
        except (OSError, StorageError) as error:
            self.error = error
