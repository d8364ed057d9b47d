"""A log on disk, written batch by batch by the broker's own log, and cleaned by its cleaner."""

from __future__ import annotations

from pathlib import Path

from protocol.record_batch import TRANSACTIONAL, build_batch, control_batch
from storage.files.env import system_env
from storage.log.log import Log, LogConfig

NOW_MS = 1_700_000_000_000


class Written:
    """A log on disk, batch by batch."""

    def __init__(self, path: Path, segment_bytes: int = 2000) -> None:
        config = LogConfig(segment_bytes=segment_bytes, cleanup_policy=frozenset({"compact"}))
        self.log = Log.open(system_env(), str(path / "t-0"), config)

    def put(self, *records: tuple[bytes | None, bytes | None], producer_id: int = -1) -> None:
        batch = build_batch(
            records,
            base_offset=self.log.end_offset,
            timestamp_ms=NOW_MS,
            producer_id=producer_id,
            producer_epoch=0 if producer_id >= 0 else -1,
            base_sequence=0 if producer_id >= 0 else -1,
            attributes=TRANSACTIONAL if producer_id >= 0 else 0,
        )
        self._append(batch, len(records))

    def end(self, producer_id: int, kind: int) -> None:
        batch = control_batch(
            kind,
            base_offset=self.log.end_offset,
            leader_epoch=0,
            timestamp_ms=NOW_MS,
            producer_id=producer_id,
            producer_epoch=0,
            coordinator_epoch=0,
        )
        self._append(batch, 1)

    def _append(self, batch: bytes, count: int) -> None:
        offset = self.log.end_offset
        self.log.append(
            (batch,), base_offset=offset, last_offset=offset + count - 1, max_timestamp_ms=NOW_MS, size=len(batch)
        )
        self.log.flush()

    def closed_bytes(self) -> int:
        return sum(segment.size for segment in self.log.segments[:-1])
