"""A small log of one topic, filled and cleaned, and what it has left."""

from __future__ import annotations

from log_kit import put

from protocol.record_batch import (
    iter_records,
)
from storage.log.log import LogConfig

CONFIG = LogConfig(
    segment_bytes=400,
    index_interval_bytes=100,
    cleanup_policy=frozenset({"compact"}),
    delete_retention_ms=1000,
)
NOW = 50_000


def run(log, now_ms=NOW, **arguments):
    return sum(1 for _ in log.clean(now_ms, **arguments))


def fill_up(log):
    """Roll, so that all that was put can be cleaned."""
    log.flush()
    log.roll()
    put(log, (b"active", b"segment"))
    log.flush()


def records(log):
    return [
        (r.offset, r.key, r.value)
        for header, batch in log.batches(0)
        if not header.is_control
        for r in iter_records(batch)
    ]
