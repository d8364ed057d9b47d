"""Small logs and batches for the tests of storage."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from protocol.record_batch import build_batch, iter_records
from storage.files.env import Env
from storage.files.sim_env import sim_env
from storage.log.log import Log, LogConfig

DIRECTORY = "/data/topic-0"
SMALL = LogConfig(segment_bytes=1000, index_interval_bytes=100)
ONE_SEGMENT = LogConfig(index_interval_bytes=100)


def durable_env(seed: int = 0) -> Env:
    """An env whose data directory itself a power cut cannot take away."""
    env = sim_env(seed)
    env.files.makedirs("/data")
    env.files.sync_dir("")
    return env


def put(log: Log, *records, timestamp_ms: int = 1000, **fields) -> bytes:
    """Append one batch of (key, value) records; nothing is written yet."""
    base = log.end_offset
    batch = build_batch(
        records or [(b"k", b"v" * 20)],
        base_offset=base,
        leader_epoch=max(0, log.leader_epoch),
        timestamp_ms=timestamp_ms,
        **fields,
    )
    last = base + max(1, len(records)) - 1
    log.append([batch], base_offset=base, last_offset=last, max_timestamp_ms=timestamp_ms, size=len(batch))
    return batch


def filled(env: Env, batches: int, config: LogConfig = SMALL, directory: str = DIRECTORY) -> Log:
    """A log of so many written batches of two records each, times rising by 10."""
    log = Log.open(env, directory, config)
    for n in range(batches):
        put(log, (b"key%d" % n, b"value" * 3), (b"odd%d" % n, None), timestamp_ms=1000 + 10 * n)
        log.flush()
    return log


def content(log: Log, from_offset: int = 0) -> bytes:
    return b"".join(bytes(batch) for _, batch in log.batches(from_offset))


def live(log: Log) -> dict[bytes | None, bytes]:
    """What the log says, read from the beginning: last value of each key, tombstones applied."""
    state: dict[bytes | None, bytes] = {}
    for header, batch in log.batches(0):
        if header.is_control:
            continue
        for record in iter_records(batch):
            if record.value is None:
                state.pop(record.key, None)
            else:
                state[record.key] = record.value
    return state


def put_marker(log: Log, batch: bytes) -> None:
    """Append one ready-made batch of one record."""
    base = log.end_offset
    log.append([batch], base_offset=base, last_offset=base, max_timestamp_ms=1000, size=len(batch))


def reopened(env: Env, config: LogConfig = SMALL, directory: str = DIRECTORY, **arguments) -> Log:
    return Log.open(env, directory, config, **arguments)


def commit_batch(
    batch: Any, base_offset: int, leader_epoch: int, now_ms: int, offsets: Any, epochs: Any, producer: Any = None
) -> bytes:
    """The record batch of a commit, as a log of this leader epoch gets it."""
    batch.offsets, batch.leader_epochs, batch.producer = offsets, epochs, producer
    log = SimpleNamespace(epochs=SimpleNamespace(latest=leader_epoch))
    (data,), last_offset, _, size = batch.build(log, base_offset, now_ms)
    assert (last_offset, size) == (base_offset + len(offsets) - 1, len(data))
    return bytes(data)
