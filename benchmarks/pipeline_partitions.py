"""What a job takes where a data directory has very many small segments: seconds to the first line, and to the end.

    python -m benchmarks.pipeline_partitions [--partitions 10000] [--job lag] [--engine local] [--folder DIR]

Each partition has five segments of ten records, in hard links to five files. A group has committed half way in each.
Printed: segments, seconds until the first line on standard error, seconds in all, seconds of processor time, rows.
"""

from __future__ import annotations

import argparse
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from struct import Struct
from typing import Final

from broker.coordinator.offsets.commit_batch import offset_key_prefix
from protocol.messages.coordinator_records import OffsetCommitValue, encode_record
from protocol.record_batch import build_batch

SEGMENTS: Final = 5
RECORDS: Final = 10  # of a segment
COMMITTED: Final = SEGMENTS * RECORDS // 2
BEGIN_MS: Final = 1_760_000_000_000
AT_ONCE: Final = 500  # commits of a batch
TIME_ENTRY: Final = Struct(">qi")  # of a .timeindex


def make(folder: Path, partitions: int) -> None:
    """Write the data directory."""
    first = folder / "topic-0"
    first.mkdir(parents=True)
    (folder / "meta.properties").touch()
    for number in range(SEGMENTS):
        base = number * RECORDS
        batches = [
            build_batch([(b"key", b"value")], timestamp_ms=BEGIN_MS + 1000 * (base + n), base_offset=base + n)
            for n in range(RECORDS)
        ]
        (first / f"{base:020d}.log").write_bytes(b"".join(batches))
        if number + 1 < SEGMENTS:  # closed: its time index has its largest time
            entry = TIME_ENTRY.pack(BEGIN_MS + 1000 * (base + RECORDS - 1), RECORDS - 1)
            (first / f"{base:020d}.timeindex").write_bytes(entry)
    for number in range(1, partitions):
        other = folder / f"topic-{number}"
        other.mkdir()
        for path in first.iterdir():
            os.link(path, other / path.name)
    commits = folder / "__consumer_offsets-0"
    commits.mkdir()
    commit = OffsetCommitValue(offset=COMMITTED, leader_epoch=0, metadata="", commit_timestamp=BEGIN_MS)
    value = encode_record(commit, 4)
    batches = []
    for base in range(0, partitions, AT_ONCE):
        count = min(AT_ONCE, partitions - base)
        records = [(offset_key("group", "topic", base + n), value) for n in range(count)]
        batches.append(build_batch(records, timestamp_ms=BEGIN_MS + 1000 * COMMITTED, base_offset=base))
    (commits / f"{0:020d}.log").write_bytes(b"".join(batches))


def offset_key(group: str, topic: str, partition: int) -> bytes:
    """The key of a commit."""
    return bytes(offset_key_prefix(group, topic)) + partition.to_bytes(4, "big")


def run(folder: Path, job: str, engine: str, words: list[str]) -> None:
    """Run a job as a process, and print what it took."""
    before, began = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
    command = [sys.executable, "-m", "momus", "pipeline", job, "--input", str(folder), "--engine", engine, *words]
    with tempfile.TemporaryFile() as output:
        process = subprocess.Popen(command, stdout=output, stderr=subprocess.PIPE)
        assert process.stderr is not None
        process.stderr.readline()
        first = time.monotonic() - began
        process.stderr.read()
        code = process.wait()
        total = time.monotonic() - began
        output.seek(0)
        rows = sum(1 for _ in output)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    sys.stdout.write(
        f"{job} {engine}: exit {code}, first line {first:.1f} s, end {total:.1f} s, CPU {cpu:.1f} s, {rows:,} rows\n"
    )


def main() -> None:
    """Make the directory and run the job."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--partitions", type=int, default=10_000)
    parser.add_argument("--job", default="lag")
    parser.add_argument("--engine", default="local")
    parser.add_argument("--folder", type=Path, help="where it is, or is made")
    args, words = parser.parse_known_args()
    with tempfile.TemporaryDirectory() as temporary:
        folder = args.folder or Path(temporary) / "data"
        if not folder.is_dir():
            make(folder, args.partitions)
        run(folder, args.job, args.engine, words)


if __name__ == "__main__":
    main()
