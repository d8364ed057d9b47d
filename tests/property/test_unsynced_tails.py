"""What a loss of power does to the tail of a log that was not synced is always cut; what happens below it never is."""

from __future__ import annotations

from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st
from log_kit import DIRECTORY, content, durable_env, put
from power_cut import make_holes, power_cut

from protocol.record_batch import iter_batches
from storage.files.errors import StorageError
from storage.files.sim_env import MemoryFiles, sim_env
from storage.log.log import Log, LogConfig
from storage.log.synced_ends import SyncedEndsOfLogs

TOPIC = b"t" * 16
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("put"), st.sampled_from([0, 10, 400, 480, 4000, 9000])),
        st.just(("flush", 0)),
        st.just(("sync", 0)),
        st.tuples(st.just("cut"), st.integers(1, 4)),
        st.just(("start", 0)),
    ),
    max_size=25,
)


class Disk:
    """A log on a disk, with what was synced of it."""

    def __init__(self, segment_bytes: int) -> None:
        self.env = durable_env()
        self.config = LogConfig(segment_bytes=segment_bytes, index_interval_bytes=100)
        self.synced = b""
        self.number = 0
        self.start()

    def start(self) -> None:
        """Open the log. Errors: StorageError."""
        ends = SyncedEndsOfLogs(self.env.files, "/data", is_kept=True)
        ends.open(has_logs=self.env.files.exists(DIRECTORY))
        self.log = Log.open(
            self.env,
            DIRECTORY,
            self.config,
            topic_id=TOPIC,
            may_have_gaps=False,
            synced_end=ends.before(TOPIC, 0, 0),
            mark=ends.mark(TOPIC, 0),
        )
        if self.log.end_offset:
            self.step("sync", 0)  # as a start at `fsync` does

    def step(self, what: str, size: int) -> None:
        """One thing that happens to the log."""
        log = self.log
        if what == "put":
            self.number += 1
            put(log, (b"key%d" % self.number, bytes(Random(self.number).randbytes(size))))
        elif what == "flush":
            log.flush()
        elif what == "sync":
            log.flush()
            log.sync()
            self.synced = content(log)
        elif what == "cut":
            log.cut_back(max(0, log.end_offset - size))
            self.synced = min(self.synced, content(log), key=len)
        else:
            self.begin_again(self.env.files.crash())

    def begin_again(self, files: MemoryFiles) -> None:
        """The next process, on another disk."""
        self.env = sim_env(files=files)
        self.start()


@given(STEPS, st.sampled_from([1000, 20_000, 1 << 30]), st.randoms(use_true_random=False))
def test_log_opens_after_any_loss_of_power_with_all_that_was_synced(steps, segment_bytes, rng):
    disk = Disk(segment_bytes)
    for what, size in steps:
        disk.step(what, size)
    synced = disk.synced
    disk.begin_again(power_cut(disk.env.files, rng))
    assert content(disk.log)[: len(synced)] == synced
    for what in ("put", "put", "sync"):
        disk.step(what, 300)
    synced = disk.synced
    disk.begin_again(power_cut(disk.env.files, rng))
    assert content(disk.log)[: len(synced)] == synced


@given(st.lists(st.sampled_from([0, 10, 480, 4000]), min_size=1, max_size=12), st.randoms(use_true_random=False))
def test_any_byte_that_changes_in_what_was_synced_is_damage(sizes, rng):
    """But for the leader epoch, which no CRC covers."""
    disk = Disk(1 << 30)
    for size in sizes:
        disk.step("put", size)
    disk.step("sync", 0)
    for size in sizes[:3]:
        disk.step("put", size)
    disk.step("flush", 0)
    path = disk.log.segments[0].file.path
    starts = {position for position, _ in iter_batches(disk.synced)}
    at = rng.randrange(len(disk.synced))
    if any(at - start in range(12, 16) for start in starts):
        return
    files = disk.env.files.crash()
    data = bytearray(files.read_file(path))
    data[at] ^= 1 << rng.randrange(8)
    make_holes(data, len(disk.synced), rng)
    files.write_file_atomic(path, bytes(data))
    with pytest.raises(StorageError, match="is damaged at position"):
        disk.begin_again(files)
    assert files.read_file(path) == data
