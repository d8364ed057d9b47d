"""Kafka's own DumpLogSegments reads our files: batches, every codec, indexes, what the cleaner rewrote."""

from __future__ import annotations

import random
import subprocess

import pytest
from log_kit import put

from storage.files.env import system_env
from storage.log.log import Log, LogConfig

CONFIG = LogConfig(
    segment_bytes=20_000, index_interval_bytes=500, cleanup_policy=frozenset({"compact"}), delete_retention_ms=0
)


def dump(libs: str, *arguments: str) -> str:
    """What the tool prints; it must end well."""
    done = subprocess.run(
        ["java", "-cp", libs, "org.apache.kafka.tools.DumpLogSegments", *arguments],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.java
def test_kafkas_tool_reads_a_log_with_its_indexes_before_and_after_compaction(tmp_path, kafka_libs):
    chance = random.Random(1)
    log = Log.open(system_env(), f"{tmp_path}/topic-0", CONFIG)
    log.set_leader_epoch(2)
    for n in range(600):
        records = [(b"k%d" % chance.randint(0, 300), chance.choice([None, b"v%d" % n])) for _ in range(3)]
        put(log, *records, timestamp_ms=10_000 + 3 * n + chance.randint(-20, 20), attributes=n % 5)
        log.flush()
    for _ in log.clean(20_000):
        pass
    for n in range(300):
        put(log, (b"late", b"x" * 50), timestamp_ms=13_000 + n)
        log.flush()
    log.close()
    names = sorted(f"{tmp_path}/topic-0/{name}" for name in log.env.files.listdir(f"{tmp_path}/topic-0"))
    logs = [name for name in names if name.endswith(".log")]
    indexes = [name for name in names if name.endswith("index")]
    assert (len(logs), len(indexes)) == (len(log.segments), 2 * len(log.segments))

    printed = dump(kafka_libs, "--deep-iteration", "--files", ",".join([*logs, *indexes]))
    assert not [line for line in printed.splitlines() if "ismatch" in line or "not found" in line or "rder" in line]
    assert "isvalid: false" not in printed
    assert printed.count("\nbaseOffset: ") == sum(1 for _ in log.batches(0))
    codecs = {line.split("compresscodec: ")[1].split()[0] for line in printed.splitlines() if "compresscodec" in line}
    assert codecs == {"none", "gzip", "snappy", "lz4", "zstd"}
    assert "deleteHorizonMs: OptionalLong[20000]" in printed

    checked = dump(kafka_libs, "--index-sanity-check", "--files", ",".join(indexes))
    assert checked.count("passed sanity check") + checked.count("is empty") == len(indexes)
