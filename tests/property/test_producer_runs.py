"""How long a producer's unbroken run is, against a model that numbers its records without a wrap.

The model keeps the log as a list of events, and for each producer the first and last record of the run that its last
batch ends, as numbers that only grow. A batch is a repetition if all of its sequences are those of records of that
run, at most 2^30 behind its end. Batches are large, so that runs pass 2^30 and 2^31. Writes fail, before and after
retention. Starts find our snapshot, only Kafka's part of it, or a log without the batches that the cleaner has removed.
"""

from __future__ import annotations

from typing import NamedTuple

import pytest
from budget import budget
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from broker.partitions.producer_snapshots import SnapshotFiles, decode_snapshot, encode_steps
from broker.partitions.producer_undo import forget_below
from broker.partitions.producers import Producers
from protocol.errors import ErrorCode, KafkaError

SEQUENCES = 2**31
HALF = 2**30
PRODUCERS = st.sampled_from([1, 2])
COUNTS = st.one_of(st.integers(1, 4), st.sampled_from([HALF // 2, HALF - 1, HALF - 2, HALF]))
NEAR = st.one_of(st.integers(-6, 6), st.sampled_from([-HALF - 1, -HALF, -HALF + 1, HALF - 1, HALF, HALF + 1]))


class Event(NamedTuple):
    """A batch, or a marker (count 0), of the log."""

    producer_id: int
    epoch: int
    first: int  # of the batch's records, unwrapped; of a marker: nothing
    count: int
    offset: int

    @property
    def last(self) -> int:
        return self.first + self.count - 1


class Run(NamedTuple):
    """The records known of a producer: first..last, and the batch that ends them. last < first: none."""

    epoch: int
    first: int
    last: int
    batch_first: int


def after(run: Run | None, event: Event) -> Run:
    """The run once an event is replayed."""
    if not event.count:
        return run if run is not None and run.epoch == event.epoch else Run(event.epoch, 0, -1, 0)
    goes_on = run is not None and run.epoch == event.epoch and run.last >= run.first
    goes_on = goes_on and (event.first - run.last) % SEQUENCES == 1
    if goes_on:  # the same number, even where a new numbering began at a gap of the log
        return Run(event.epoch, event.first - (run.last - run.first + 1), event.last, event.first)
    return Run(event.epoch, event.first, event.last, event.first)


def encoded(producers: Producers) -> SnapshotFiles:
    steps = encode_steps(producers.snapshot(), -1)
    while True:
        try:
            next(steps)
        except StopIteration as done:
            return done.value


class RunMachine(RuleBasedStateMachine):
    """One partition's producers."""

    def __init__(self) -> None:
        super().__init__()
        self.producers = Producers()
        self.producers.undo = []
        self.log: list[Event] = []
        self.durable = self.end = 0
        self.runs: dict[int, Run] = {}
        self.runs_at_durable: dict[int, Run] = {}
        self.image: tuple[int, SnapshotFiles, dict[int, Run]] | None = None

    # -- what is written

    def write(self, event: Event) -> None:
        self.log.append(event)
        self.end = event.offset + max(1, event.count)
        self.replay(self.producers, event)
        self.runs[event.producer_id] = after(self.runs.get(event.producer_id), event)

    @staticmethod
    def replay(producers: Producers, event: Event) -> None:
        pid, epoch, offset = event.producer_id, event.epoch, event.offset
        if not event.count:
            producers.replay_marker(pid, epoch, 0, 1, offset, commit=True)
            return
        first, last = event.first % SEQUENCES, event.last % SEQUENCES
        producers.replay(pid, epoch, first, last, offset, offset + event.count - 1, 1)

    def decided(self, pid: int, epoch: int, first: int, count: int) -> str:
        try:
            found = self.producers.decide(pid, epoch, first % SEQUENCES, (first + count - 1) % SEQUENCES)
        except KafkaError as error:
            return error.code.name
        return "append" if found is None else "repeated"

    def expected(self, run: Run, first: int, count: int) -> str:
        """first: of the batch, as a number of the model; any other with the same sequence will do."""
        if run.last < run.first:
            return "append" if first % SEQUENCES == 0 else ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER.name
        if (first - run.last) % SEQUENCES == 1:
            return "append"
        at = run.last - (run.last - first) % SEQUENCES  # the newest record with this sequence
        if at == run.batch_first and at + count - 1 == run.last:
            return "repeated"
        if at >= max(run.first, run.last - HALF + 1) and at + count - 1 <= run.last:
            return ErrorCode.DUPLICATE_SEQUENCE_NUMBER.name
        return ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER.name

    @rule(pid=PRODUCERS, count=COUNTS)
    def go_on(self, pid: int, count: int) -> None:
        run = self.runs.get(pid)
        if run is None:
            self.write(Event(pid, 0, SEQUENCES - count, count, self.end))  # anywhere: here up to the wrap
        else:
            first = run.last + 1 if run.last >= run.first else 0
            assert self.decided(pid, run.epoch, first, count) == "append"
            self.write(Event(pid, run.epoch, first, count, self.end))

    @rule(pid=PRODUCERS, count=COUNTS)
    def begin_a_new_epoch(self, pid: int, count: int) -> None:
        run = self.runs.get(pid)
        epoch = run.epoch + 1 if run else 0
        if run:  # one that lost its only batch waits for that one
            assert self.decided(pid, epoch, 0, count) == "append"
        self.write(Event(pid, epoch, 0, count, self.end))

    @rule(pid=PRODUCERS, raised=st.booleans())
    def end_a_transaction(self, pid: int, raised: bool) -> None:
        run = self.runs.get(pid)
        epoch = run.epoch if run else 0
        self.write(Event(pid, epoch + raised, 0, 0, self.end))

    @precondition(lambda self: self.runs)
    @rule(data=st.data(), step=NEAR, count=COUNTS, from_=st.sampled_from(["last", "first", "batch"]))
    def send_anything(self, data: st.DataObject, step: int, count: int, from_: str) -> None:
        pid = data.draw(st.sampled_from(sorted(self.runs)))
        run = self.runs[pid]
        first = step + {"last": run.last, "first": run.first, "batch": run.batch_first}[from_]
        assert self.decided(pid, run.epoch, first, count) == self.expected(run, first, count)

    @precondition(lambda self: self.log)
    @rule(data=st.data())
    def repeat_what_was_written(self, data: st.DataObject) -> None:
        event = data.draw(st.sampled_from(self.log))
        run = self.runs[event.producer_id]
        if event.count and event.epoch == run.epoch:
            answer = self.decided(event.producer_id, event.epoch, event.first, event.count)
            assert answer == self.expected(run, event.first, event.count)

    # -- what happens to the log

    @rule()
    def flush(self) -> None:
        self.durable = self.end
        self.runs_at_durable = self.runs.copy()
        forget_below(self.producers.undo, self.end) if self.producers.undo else None

    @precondition(lambda self: self.durable == self.end)
    @rule()
    def take_a_snapshot(self) -> None:
        self.image = self.end, encoded(self.producers), self.runs.copy()

    @rule(data=st.data())
    def remove_the_oldest(self, data: st.DataObject) -> None:
        """Retention: the state stays, the events go; only what is durable may go."""
        durable = [event for event in self.log if event.offset < self.durable]
        if durable:
            del self.log[: data.draw(st.integers(1, len(durable)))]
            if self.image is not None and self.log and self.image[0] < self.log[0].offset:
                self.image = None

    def loaded(self, image: SnapshotFiles | None, at: int, end: int) -> Producers:
        producers = Producers()
        if image is not None:
            producers.load(decode_snapshot(*image).producers)
        for event in self.log:
            if at <= event.offset < end:
                self.replay(producers, event)
        return producers

    @rule()
    def fail_a_write(self) -> None:
        """The log is cut back to what is durable, and loaded; it may lack what retention has removed."""
        before = self.producers
        before.revert(self.durable)
        self.producers = self.loaded(
            self.image[1] if self.image else None, self.image[0] if self.image else 0, self.durable
        )
        self.producers.recall(before)
        self.producers.undo = []
        self.log = [event for event in self.log if event.offset < self.durable]
        self.end = self.durable
        self.runs = self.runs_at_durable.copy()

    @rule(kind=st.sampled_from(["ours", "without ours", "of another snapshot", "none"]), data=st.data())
    def restart(self, kind: str, data: st.DataObject) -> None:
        """kill -9: what is not durable is lost. The cleaner may have removed batches before the snapshot, or any."""
        self.log = [event for event in self.log if event.offset < self.durable]
        image, at, runs = None, 0, {}
        if self.image is not None and kind != "none":
            at, image, runs = self.image
            if kind != "ours":  # Kafka's knows the last batch of each
                ours = b"" if kind == "without ours" else encoded(Producers()).ours
                image = SnapshotFiles(image.kafkas, ours)
                runs = {
                    pid: run._replace(first=run.batch_first) if run.last >= run.first else run
                    for pid, run in runs.items()
                }
        elif self.log:
            kept = [data.draw(st.booleans()) for _ in self.log]  # compacted
            self.log = [event for event, stays in zip(self.log, kept, strict=True) if stays]
        self.runs = runs.copy()
        for event in self.log:
            if event.offset >= at:
                self.runs[event.producer_id] = after(self.runs.get(event.producer_id), event)
        self.producers = self.loaded(image, at, self.durable)
        self.producers.undo = []
        self.end = self.durable
        self.runs_at_durable = self.runs.copy()
        if image is None:
            self.image = None
        else:
            self.image = at, image, runs

    @invariant()
    def length_of_the_run_is_known(self) -> None:
        for pid, run in self.runs.items():
            assert self.producers.table[pid].written == min(run.last - run.first + 1, HALF), (pid, run)
        assert set(self.producers.table) == set(self.runs)


RunMachine.TestCase.settings = budget(60, stateful_step_count=30)
test_runs_keep_to_the_model = pytest.mark.heavy(RunMachine.TestCase)
