"""Programs drawn by seed, a share of them with a bug, and whether the requests that stand for a class find each bug.

`make explore-classes ARGS="--programs 200 --seed 1"`: of each program with a bug the schedules of the reduced set are
run until one finds it; where none does, those of all its requests are. A bug that only these find is a fault of
momus/explore/classes.py. Programs without a bug must pass all of both.
"""

from __future__ import annotations

import argparse
import random
import sys
import time
from collections.abc import Callable, Generator
from pathlib import Path
from typing import NamedTuple

from momus.cluster import Cluster
from momus.explore import plan
from momus.explore.classes import find
from momus.explore.happenings import chosen
from momus.explore.schedule import Schedule, text_of
from momus.explore.watch import Watch
from momus.kit.process import Broker

sys.path[:0] = [str(Path(__file__).resolve().parents[1] / "e2e")]

from small_client import (  # noqa: E402 - found by the line above
    Client,
    Consumer,
    FencedError,
    Producer,
    RebalancedError,
    StuckError,
)

MOST_STEPS = 400  # of a program that does not come to its end
MOST_LIVES = 30
Play = Generator[None, None, None]


class Plan(NamedTuple):
    """One client of a program.

    records   how many it works on; `batch`: at once.
    bug       one of its kind's; "": none. `at`: the batches (counted from 0) in which the bug is; empty: all.
    """

    kind: str
    records: int
    batch: int
    bug: str
    at: tuple[int, ...]


class Program(NamedTuple):
    """Clients that take turns, by seed."""

    seed: int
    plans: tuple[Plan, ...]

    @property
    def has_bug(self) -> bool:
        """Whether one of them has one."""
        return any(each.bug for each in self.plans)


BUGS = {
    "consumer": ("commits first", "ignores a refusal", "drops the rest", "counts what came"),
    "copier": ("offsets outside", "no way back", "ignores the end", "sends again"),
    "producer": ("not idempotent", "gives up"),
}


def drawn(seed: int, buggy: float = 0.6) -> Program:
    """A program: one to three clients, at most one of them with a bug, in every third in one batch alone."""
    by = random.Random(f"program {seed}")
    kinds = [by.choice(tuple(BUGS)) for _ in range(by.choice((1, 1, 2, 3)))]
    with_bug = by.randrange(len(kinds)) if by.random() < buggy else -1
    plans = []
    for number, kind in enumerate(kinds):
        records, batch = by.randint(3, 9), by.randint(1, 3)
        batches = -(-records // batch)
        bug = by.choice(BUGS[kind]) if number == with_bug else ""
        at = (by.randrange(batches),) if bug and by.random() < 1 / 3 else ()
        plans.append(Plan(kind, records, batch, bug, at))
    return Program(seed, tuple(plans))


class WrongError(AssertionError):
    """The work of a program is not right."""


class Actor:
    """A client of a program in a run: its turns, and the check of its work."""

    def __init__(self, cluster: Cluster, number: int, of: Plan) -> None:
        self.cluster, self.plan = cluster, of
        self.source, self.target = f"in-{number}", f"out-{number}"
        self.name = f"client-{number}"
        self.wanted = [f"{number}/{index}" for index in range(of.records)]
        self.client = Client(cluster.bootstrap_servers)
        self.done: list[str] = []

    def is_wrong_at(self, batch: int, bug: str) -> bool:
        """Whether its bug is that, and acts in a batch."""
        return self.plan.bug == bug and (not self.plan.at or batch in self.plan.at)

    def turns(self) -> Play:
        """Each step a turn."""
        plays: dict[str, Callable[[], Play]] = {
            "consumer": self._consume,
            "copier": self._copy,
            "producer": self._produce,
        }
        return plays[self.plan.kind]()

    def check(self) -> None:
        """Errors: WrongError."""
        self.client.close()
        if self.plan.kind == "consumer":
            found, committed = sorted(set(self.done)), self.cluster.committed(self.name).get((self.source, 0))
            if found != self.wanted or committed != self.plan.records:
                raise WrongError(f"worked on {found}, committed {committed}")
            return
        found = [str(each.value.decode()) for each in self.cluster.consume(self.target, isolation="read_committed")]
        if found != self.wanted:
            raise WrongError(f"wrote {found}")

    def _consume(self) -> Play:
        consumer = Consumer(self.client, self.name, self.source)
        consumer.join()
        batch = came = 0
        while True:
            yield
            if self.plan.bug == "counts what came":
                if came >= self.plan.records:
                    break
            elif consumer.position >= self.plan.records and consumer.committed() >= self.plan.records:
                break
            try:
                records = consumer.poll(self.plan.batch)
                if not records:
                    continue
                number, batch = batch, batch + 1
                came += len(records)
                yield
                self._work(consumer, number, records)
            except RebalancedError:
                yield
                consumer.join()
        consumer.leave()

    def _work(self, consumer: Consumer, number: int, records: list[tuple[int, str]]) -> None:
        after = records[-1][0] + 1
        if self.is_wrong_at(number, "commits first"):
            consumer.commit(after)
            consumer.heartbeat()
            self.done += [value for _, value in records]
            return
        if self.is_wrong_at(number, "drops the rest"):
            for offset, value in records:
                self.done.append(value)
                try:
                    consumer.commit(offset + 1)
                except RebalancedError:
                    consumer.join()
                    consumer.position = after
                    consumer.commit(after)
                    return
            return
        self.done += [value for _, value in records]
        try:
            consumer.commit(after)
        except RebalancedError:
            if not self.is_wrong_at(number, "ignores a refusal"):
                raise
            consumer.join()
            consumer.position = after  # and what is committed stays behind
            if after >= self.plan.records:
                raise WrongError("the last commit was refused") from None

    def _copy(self) -> Play:
        consumer, producer = (
            Consumer(self.client, self.name, self.source),
            Producer(self.client, self.target, self.name),
        )
        producer.begin()
        consumer.join()
        batch = 0
        while consumer.position < self.plan.records:
            yield
            begun = consumer.position
            try:
                records = consumer.poll(self.plan.batch)
            except RebalancedError:
                consumer.join()
                continue
            if not records:
                continue
            number, batch = batch, batch + 1
            yield
            try:
                yield from self._transaction(consumer, producer, number, records)
            except (RebalancedError, FencedError) as error:
                yield
                self._begin_again(consumer, producer, error)
                if self.is_wrong_at(number, "no way back"):
                    consumer.position = begun + len(records)
        consumer.leave()

    def _begin_again(self, consumer: Consumer, producer: Producer, error: Exception) -> None:
        if isinstance(error, RebalancedError):
            try:
                producer.end(commits=False)
            except FencedError:
                producer.begin()
        else:
            producer.begin()
        consumer.join()

    def _transaction(self, consumer: Consumer, producer: Producer, number: int, records: list[tuple[int, str]]) -> Play:
        after, values = records[-1][0] + 1, [value for _, value in records]
        if self.is_wrong_at(number, "sends again"):
            try:
                producer.send(values, again=False)
            except FencedError:
                producer.send(values)
        else:
            producer.send(values)
        yield
        if self.is_wrong_at(number, "offsets outside"):
            producer.end(commits=True)
            yield
            consumer.commit(after)
            return
        producer.add_offset(consumer, after)
        yield
        try:
            producer.end(commits=True)
        except FencedError:
            if not self.is_wrong_at(number, "ignores the end"):
                raise
            producer.begin()

    def _produce(self) -> Play:
        producer = Producer(self.client, self.target)
        if self.plan.bug != "not idempotent":
            producer.begin()
        for number, begin in enumerate(range(0, self.plan.records, self.plan.batch)):
            yield
            values = self.wanted[begin : begin + self.plan.batch]
            if self.plan.bug == "not idempotent":
                producer.id = -1
                producer.send(values)
            elif self.is_wrong_at(number, "gives up"):
                try:
                    producer.send(values, again=False)
                except FencedError:
                    continue
            else:
                producer.send(values)


class Runs:
    """Runs a program again and again, each time with a fork of one cluster."""

    def __init__(self, host: Broker, program: Program) -> None:
        self.program = program
        self.template = host.create_cluster(journal_mb=1, config={"as.version": "3.9"})
        for number, each in enumerate(program.plans):
            self.template.create_topic(f"in-{number}", partitions=1)
            self.template.create_topic(f"out-{number}", partitions=1)
            self.template.produce(f"in-{number}", *(f"{number}/{index}" for index in range(each.records)))
        self.count = 0

    def once(self, schedule: Schedule | None) -> tuple[Watch, str]:
        """Returns what was seen, and what was wrong; "": nothing."""
        self.count += 1
        watch, cluster = Watch(schedule), self.template.fork()
        try:
            watch.made(cluster)
            wrong = ""
            try:
                self._play(cluster)
            except (WrongError, StuckError, FencedError, RebalancedError) as error:
                wrong = f"{type(error).__name__}: {error}"
            watch.ends(cluster)
            return watch, wrong
        finally:
            cluster.close()

    def _play(self, cluster: Cluster) -> None:
        by = random.Random(f"turns {self.program.seed}")
        actors = [Actor(cluster, number, each) for number, each in enumerate(self.program.plans)]
        plays = [each.turns() for each in actors]
        try:
            for _ in range(MOST_STEPS):
                if not plays:
                    break
                turn = by.choice(plays)
                try:
                    next(turn)
                except StopIteration:
                    plays.remove(turn)
            else:
                raise StuckError("it does not come to its end")
            for each in actors:
                each.check()
        finally:
            for each in actors:
                each.client.close()

    def finding(self, *, all_of_them: bool) -> tuple[str, int, int]:
        """The first schedule that finds something, "" if none does; how many were run, and how many there are."""
        watch, wrong = self.once(None)
        if wrong:
            raise AssertionError(f"program {self.program} fails by itself: {wrong}")
        found = find(watch.rows, all_of_them=all_of_them)
        schedules = plan.singles(found.requests, chosen(""), watch.brokers, self.program.seed)
        for number, schedule in enumerate(schedules, 1):
            _, wrong = self.once(schedule)
            if wrong:
                return f"{text_of(schedule)}: {wrong}", number, len(schedules)
        return "", len(schedules), len(schedules)


def examine(host: Broker, program: Program, *, right_ones: bool) -> tuple[str, str]:
    """Explore a program. Returns the verdict (found, missed, hidden, right, wrong, "") and a line about it.

    missed   its bug is found by all requests, and not by those that stand for a class.
    hidden   its bug is found by none.
    """
    if not program.has_bug and not right_ones:
        return "", ""
    runs = Runs(host, program)
    try:
        few, ran, of = runs.finding(all_of_them=False)
        told = " + ".join(
            f"{each.kind} {each.records}/{each.batch} {each.bug} {each.at or ''}" for each in program.plans
        )
        told = f"program {program.seed} ({told.strip()}): "
        if few:
            return "found" if program.has_bug else "wrong", f"{told}{ran} of {of}: {few}"
        full, ran, of_all = runs.finding(all_of_them=True)
        if full:
            return "missed" if program.has_bug else "wrong", f"{told}{of} find nothing, of {of_all} does {full}"
        return "hidden" if program.has_bug else "right", f"{told}none of {of_all}"
    finally:
        runs.template.close()


def main() -> int:
    """Examine programs. Returns 1 where a bug is missed, or a right program has a finding."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--programs", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1, help="of the first; the others follow")
    parser.add_argument("--buggy-only", action="store_true", help="leave right programs out")
    asked = parser.parse_args()
    counts = dict.fromkeys(("found", "missed", "hidden", "right", "wrong"), 0)
    began_s = time.monotonic()
    with Broker(flush="memory") as host:
        for seed in range(asked.seed, asked.seed + asked.programs):
            verdict, line = examine(host, drawn(seed), right_ones=not asked.buggy_only)
            if verdict:
                counts[verdict] += 1
            if verdict in ("missed", "wrong", "hidden"):
                sys.stdout.write(f"{verdict}: {line}\n")
                sys.stdout.flush()
    told = ", ".join(f"{count} {verdict}" for verdict, count in counts.items())
    sys.stdout.write(f"{sum(counts.values())} programs: {told}; {time.monotonic() - began_s:.0f} s\n")
    return 1 if counts["missed"] or counts["wrong"] else 0


if __name__ == "__main__":
    raise SystemExit(main())
