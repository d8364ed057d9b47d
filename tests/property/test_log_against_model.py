"""A log does what a plain list of batches would do, whatever the order of operations and the damage."""

from __future__ import annotations

from budget import budget
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule
from log_kit import DIRECTORY, content, durable_env, live, put

from protocol.record_batch import BatchHeader, iter_batches
from storage.files.sim_env import sim_env
from storage.log.log import Log, LogConfig

KEYS = st.integers(0, 6).map(lambda n: b"k%d" % n)
VALUES = st.none() | st.binary(max_size=60)


class LogMachine(RuleBasedStateMachine):
    """The model: the batches that were flushed, in order, or after a compaction their live state."""

    @initialize(segment_bytes=st.sampled_from([200, 700, 1 << 20]), interval=st.sampled_from([1, 150, 4096]))
    def start(self, segment_bytes, interval):
        self.config = LogConfig(
            segment_bytes=segment_bytes, index_interval_bytes=interval, cleanup_policy=frozenset({"compact"})
        )
        self.env = durable_env()
        self.log = Log.open(self.env, DIRECTORY, self.config)
        self.batches: list[bytes] = []
        self.compacted = False
        self.time = 1000

    @rule(batches=st.lists(st.lists(st.tuples(KEYS, VALUES), min_size=1, max_size=4), max_size=5))
    def append_and_flush(self, batches):
        for records in batches:
            self.time += 7
            self.batches.append(put(self.log, *records, timestamp_ms=self.time))
        self.log.flush()

    @rule(records=st.lists(st.tuples(KEYS, VALUES), min_size=1, max_size=4), short_bytes=st.integers(0, 200))
    def flush_fails(self, records, short_bytes):
        end = self.log.end_offset
        for _ in range(3):
            put(self.log, *records, timestamp_ms=self.time + 1000)
        self.env.files.inject(1, short_bytes=short_bytes)
        try:
            self.log.flush()
        except OSError:
            self.env.files.heal()
        else:
            raise AssertionError("the write should have failed")
        assert self.log.end_offset == end

    @rule()
    def sync(self):
        assert self.log.sync() == self.log.end_offset
        self.log.checkpoint()

    @rule(part=st.floats(0, 1))
    def cut_back(self, part):
        if self.compacted:
            return
        offset = int(self.log.end_offset * part)
        self.log.cut_back(offset)
        self.batches = [batch for batch in self.batches if BatchHeader.from_buffer(batch).last_offset < offset]

    @rule()
    def compact(self):
        before = live(self.log)
        end = self.log.end_offset
        self.log.roll()
        for _ in self.log.clean(self.time):
            pass
        assert live(self.log) == before
        assert self.log.end_offset == end
        self.compacted = self.compacted or content(self.log) != b"".join(self.batches)

    @rule(lose=st.booleans(), clean=st.booleans(), torn=st.integers(0, 120))
    def restart(self, lose, clean, torn):
        end, synced, state = self.log.end_offset, self.log.synced_offset, live(self.log)
        if clean:  # as a data directory does before it says so
            self.log.flush()
            self.log.sync()
            self.log.close()
            self.env = sim_env(files=self.env.files.crash())
        else:
            self.env = sim_env(files=self.env.files.crash(lose_unsynced=lose))
            if not lose and torn and self.log.segments:
                path = self.log.segments[-1].file.path
                if self.env.files.exists(path):
                    self.env.files.open_append(path).append([b"\x00\x01" * torn])
        point = synced if self.log.segments else 0
        self.log = Log.open(self.env, DIRECTORY, self.config, recovery_point=point, clean=clean)
        assert self.log.end_offset >= synced
        if not lose or clean:
            assert (self.log.end_offset, live(self.log)) == (end, state)
        kept = self.log.end_offset
        self.batches = [batch for batch in self.batches if BatchHeader.from_buffer(batch).last_offset < kept]

    @invariant()
    def log_holds_the_batches(self):
        if not self.compacted:
            assert content(self.log) == b"".join(self.batches)

    @invariant()
    def every_offset_is_found_by_index_as_by_scan(self):
        headers = [header for header, _ in self.log.batches(0)]
        for offset in range(0, self.log.end_offset, 5):
            expected = next((h.base_offset for h in headers if h.last_offset >= offset), None)
            found = self.log.read(offset, 1, limit_offset=self.log.end_offset)
            if expected is None:
                assert found is None
            else:
                assert [h.base_offset for _, h in iter_batches(found.read())] == [expected]

    @invariant()
    def times_are_found_by_index_as_by_scan(self):
        headers = [header for header, _ in self.log.batches(0) if header.record_count]
        for time in range(1000, self.time + 10, 25):
            expected = next((h.base_offset for h in headers if h.max_timestamp >= time), None)
            found = self.log.offset_for_timestamp(time)
            assert (found is None) == (expected is None)
            if found is not None and not self.compacted:
                assert found[1] == expected


LogMachine.TestCase.settings = budget(20, stateful_step_count=25)
test_log_against_model = LogMachine.TestCase
