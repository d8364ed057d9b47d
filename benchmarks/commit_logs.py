"""Writes a data directory of many committed offsets quickly: one batch is encoded, the others are numbered in numpy.

Every group has a template, the batch of one commit over `batch` partitions as the broker writes it. A slab of thousands
of copies is one array; base offsets, times, committed offsets and checksums are columns of it.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path

import numpy as np
from fastcrc.crc32 import iscsi as crc32c
from numpy.typing import NDArray

from broker.coordinator.offsets.provenance import provenance
from protocol.codegen import codec
from protocol.messages.coordinator_records import OffsetCommitKey, OffsetCommitValue
from protocol.record_batch import CRC_POSITION, build_batch

SEGMENT_BYTES = 104_857_600  # Kafka's for __consumer_offsets
SLAB_BATCHES = 4096
FIRST_MS = 1_790_000_000_000
BATCHES_A_MS = 4
BASE_OFFSET, BASE_TIMESTAMP, MAX_TIMESTAMP = 0, 27, 35
# Never found by chance in a batch: the high half of every committed offset in a template.
MARK = 0x1F2E3D4C


class Template:
    """One group's commit as bytes, and where its committed offsets and times are."""

    def __init__(self, group: str, batch: int) -> None:
        key, value = codec(OffsetCommitKey, 0), codec(OffsetCommitValue, 3)
        records = []
        for partition in range(batch):
            place = OffsetCommitKey(group=group, topic="orders", partition=partition)
            commit = OffsetCommitValue(
                offset=MARK << 32 | partition, leader_epoch=0, metadata="", commit_timestamp=MARK << 32 | partition
            )
            # The first record says who committed.
            headers = () if partition else provenance(f"{group}-member-1", None, 7, group)
            words = b"\x00\x01" + key.encode(place), b"\x00\x03" + value.encode(commit)
            records.append((*words, headers) if headers else words)
        encoded = build_batch(records, timestamp_ms=FIRST_MS)
        self.batch = batch
        self.bytes = np.frombuffer(encoded, np.uint8)
        places = [encoded.index((MARK << 32 | partition).to_bytes(8, "big")) for partition in range(batch)]
        self.offsets = np.array(places)
        self.times = np.array([encoded.index(encoded[place : place + 8], place + 8) for place in places])

    def slab(self, commits: NDArray[np.int64], first_offset: int) -> NDArray[np.uint8]:
        """The batches of commits with these numbers, one a row."""
        rows = np.tile(self.bytes, (len(commits), 1))
        now_ms = FIRST_MS + commits // BATCHES_A_MS
        _put(rows, [BASE_OFFSET], first_offset + np.arange(len(commits)) * self.batch)
        _put(rows, [BASE_TIMESTAMP, MAX_TIMESTAMP, *self.times], now_ms)
        _put(rows, self.offsets, commits * 10)
        checksums = [crc32c(row[CRC_POSITION + 4 :]) for row in rows]
        rows[:, CRC_POSITION : CRC_POSITION + 4] = np.array(checksums, ">u4").view(np.uint8).reshape(-1, 4)
        return rows


def _put(rows: NDArray[np.uint8], places: list[int] | NDArray[np.int64], numbers: NDArray[np.int64]) -> None:
    """Eight big-endian bytes of a row's number at each of its places."""
    encoded = numbers.astype(">i8").view(np.uint8).reshape(-1, 8)
    for place in places:
        rows[:, place : place + 8] = encoded


def generate(folder: Path, records: int, *, batch: int, logs: int, groups: int) -> int:
    """Commits of so many records over so many logs of __consumer_offsets; returns the bytes written."""
    written = 0
    each = records // (logs * groups * batch)  # commits of a group
    assert each * logs * groups * batch == records, f"{records} records are no whole number of commits"
    for log in range(logs):
        templates = [Template(f"group-{log:02d}-{number:02d}", batch) for number in range(groups)]
        directory = folder / f"__consumer_offsets-{log}"
        directory.mkdir(parents=True)
        offset, size, file = 0, 0, None
        for commit in range(0, each, SLAB_BATCHES):
            commits = np.arange(commit, min(commit + SLAB_BATCHES, each))
            for template in templates:
                rows = template.slab(commits, offset)
                if file is None or size + rows.nbytes > SEGMENT_BYTES:
                    if file is not None:
                        file.close()
                    file = open(directory / f"{offset:020d}.log", "xb")  # noqa: SIM115 - closed when it is full
                    size = 0
                rows.tofile(file)
                size += rows.nbytes
                written += rows.nbytes
                offset += len(commits) * batch
        if file is not None:
            file.close()
    return written


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--records", type=int, default=100_000_000)
    parser.add_argument("--batch", type=int, default=20, help="partitions a commit")
    parser.add_argument("--logs", type=int, default=8)
    parser.add_argument("--groups", type=int, default=5, help="a log")
    args = parser.parse_args()
    began = time.monotonic()
    size = generate(args.folder, args.records, batch=args.batch, logs=args.logs, groups=args.groups)
    print(f"{args.records} records, {size} bytes, {time.monotonic() - began:.0f} s")


if __name__ == "__main__":
    main()
