"""How far the logs of a data directory were synced when the process began, and where that is noted from now on."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import TYPE_CHECKING

from storage.segments.synced_ends import FILE_NAME, NO_TOPIC, UNKNOWN, LogId, SyncedEnds, SyncedMark

if TYPE_CHECKING:
    from storage.files.env import Files
    from storage.log.log import Log


class SyncedEndsOfLogs:
    """The file .momus-synced of a data directory. It is kept at `fsync` alone: there alone replies wait for a sync.

    At the other levels clients are told of what comes after the last sync, too. A start there reads the file of an
    earlier process, and removes it: it would not tell of what is written now.
    """

    def __init__(self, files: Files, data_directory: str, *, is_kept: bool) -> None:
        self._files = files
        self._directory = data_directory
        self._path = f"{data_directory}/{FILE_NAME}"
        self._is_kept = is_kept
        self._ends: SyncedEnds | None = None

    def open(self, *, has_logs: bool) -> None:
        """Before any log is opened. A directory without logs gets the file at once. Errors: OSError."""
        self._ends = SyncedEnds.load(self._files, self._path)
        if self._ends is not None and not self._is_kept:
            self._ends.close()
            self._files.remove(self._path)
            self._files.sync_dir(self._directory)
        elif self._ends is None and self._is_kept and not has_logs:
            self._ends = SyncedEnds.create(self._files, self._path, {})

    def begin(self, topic_ids: Collection[bytes], older: Iterable[LogId], opened: Iterable[Log]) -> None:
        """It is known which topics there are: forget others. In a directory without the file, make it now.

        older    logs that have been there so far, but for that of the metadata.
        opened   that of the metadata, which is open already.
        Errors:  OSError.
        """
        if not self._is_kept:
            return
        if self._ends is not None:
            self._ends.keep(topic_ids)
            return
        self._ends = SyncedEnds.create(self._files, self._path, dict.fromkeys([(NO_TOPIC, 0), *older], UNKNOWN))
        for log in opened:
            log.mark = self.mark(log.topic_id, 0)
            if log.mark is not None:
                log.mark.opened(log.synced_offset)

    def before(self, topic_id: bytes | None, index: int, recovery_point: int) -> int | None:
        """Below this offset a log was synced by an earlier process, and above it nothing was told to a client.

        None: that is unknown.
        """
        end_offset = None if self._ends is None else self._ends.end_of((topic_id or NO_TOPIC, index))
        return None if end_offset is None else max(end_offset, recovery_point)

    def mark(self, topic_id: bytes | None, index: int) -> SyncedMark | None:
        """Where it is noted how far a log is synced. None: nowhere."""
        if self._ends is None or not self._is_kept:
            return None
        return self._ends.mark((topic_id or NO_TOPIC, index))

    def forget(self, topic_id: bytes | None, index: int) -> None:
        """A log was deleted."""
        if self._ends is not None:
            self._ends.forget((topic_id or NO_TOPIC, index))

    def close(self) -> None:
        """Every log is closed, or given up."""
        if self._ends is not None:
            self._ends.close()
