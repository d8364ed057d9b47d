"""Snapshots of a partition's producers, and its housekeeping."""

from __future__ import annotations

from unit.partitions.data_path import DataPath

from broker.partitions.producer_snapshots import NONE_ABORTED, encode_steps


def snapshots(path: DataPath, name: str = "t-0") -> list[int]:
    return [int(n[:20]) for n in path.env.files.listdir(f"data/{name}") if n.endswith(".snapshot")]


def encode_snapshot(producers, last_aborted_offset=NONE_ABORTED):
    steps = encode_steps(producers, last_aborted_offset)
    while True:
        try:
            next(steps)
        except StopIteration as done:
            return done.value


def run(path: DataPath, name: str = "t") -> None:
    for _ in path.partition(path.metadata.topics[name], 0).maintenance(path.now_ms):
        pass
