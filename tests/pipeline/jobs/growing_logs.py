"""A data directory that grows: random commits of tests' log_model and records of topics, written up to a moment."""

from __future__ import annotations

import random
from collections.abc import Iterator
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from log_model import Model, random_model, time_of

from broker.coordinator.offsets.commit_batch import offset_key_prefix
from protocol.messages.coordinator_records import OffsetCommitValue, encode_record
from protocol.record_batch import ABORT, COMMIT, TRANSACTIONAL, build_batch, control_batch

Arrival = tuple[datetime, bytes]  # of a batch of one record


class Growing:
    """Logs of which the batches that had come by some time are there, but for those that were cleaned away."""

    def __init__(self, data: Path, seed: int, *, steps: int = 40) -> None:
        self.data = data
        rng = random.Random(seed)
        models = [random_model(f"__consumer_offsets-{n}", seed * 10 + n, steps) for n in range(2)]
        self.logs: dict[str, list[Arrival]] = {model.log: list(commits_of(model)) for model in models}
        self.seconds = max(model.end for model in models)
        for topic, partition in (("t0", 0), ("t0", 1), ("t1", 0)):
            come = sorted(rng.uniform(0, self.seconds) for _ in range(50))
            self.logs[f"{topic}-{partition}"] = [record(rng, second) for second in come]

    @property
    def start(self) -> datetime:
        return time_of(0)

    def grow(self, until: float, *, gone: float = -1) -> None:
        """Have what comes before a second, and no more what came before another one."""
        for log, arrivals in self.logs.items():
            (self.data / log).mkdir(parents=True, exist_ok=True)
            first, last = (time_of(0) + timedelta(seconds=second) for second in (gone, until))
            there = [(n, batch) for n, (when, batch) in enumerate(arrivals) if first < when <= last]
            numbered = (n.to_bytes(8, "big") + batch[8:] for n, batch in there)
            (self.data / log / f"{0:020d}.log").write_bytes(b"".join(numbered))


def record(rng: random.Random, second: float) -> Arrival:
    """A producer's record: its clock says some seconds less."""
    when = time_of(0) + timedelta(seconds=second)
    return when, build_batch([(b"k", b"v")], timestamp_ms=milliseconds(when - timedelta(seconds=rng.uniform(0, 4))))


def commits_of(model: Model) -> Iterator[Arrival]:
    """The rows of a model as batches, one record each."""
    for row in model.rows:
        now, pid = row["timestamp"], row["producer_id"]
        if "control" in row:
            kind = {"COMMIT": COMMIT, "ABORT": ABORT}[row["control"]]
            yield now, control_batch(kind, timestamp_ms=milliseconds(now), producer_id=pid, producer_epoch=0)
            continue
        key = offset_key_prefix(row["group"], row["commit_topic"]) + row["commit_partition"].to_bytes(4, "big")
        value = None
        if not row["tombstone"]:
            made = OffsetCommitValue(
                offset=row["commit_offset"], commit_timestamp=milliseconds(now), metadata="", topic_id=bytes(16)
            )
            value = encode_record(made, 4)
        headers: list[tuple[str, bytes]] = []
        if "commit_id" in row:
            headers = [("txid", row["commit_id"].to_bytes(8, "big")), ("txsize", row["commit_size"].to_bytes(4, "big"))]
        record_: Any = (key, value, tuple(headers)) if headers else (key, value)
        yield (
            now,
            build_batch(
                [record_],
                timestamp_ms=milliseconds(now),
                producer_id=pid,
                producer_epoch=-1 if pid < 0 else 0,
                attributes=0 if pid < 0 else TRANSACTIONAL,
            ),
        )


def milliseconds(time: datetime) -> int:
    return round(time.timestamp() * 1000)
