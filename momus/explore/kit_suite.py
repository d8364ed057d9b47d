"""Explores a suite whose tests make their clusters by a kit: Go, the JVM, Node, or any other (kit_front.py).

The whole command runs once for each round. In a round each test has the next schedule of its own, so a suite of fifty
tests explores fifty schedules in one run of it.
"""

from __future__ import annotations

import os
import subprocess
import tempfile
import threading
import time
from collections import deque
from contextlib import ExitStack
from typing import TYPE_CHECKING, NamedTuple

from momus.explore import plan
from momus.explore.classes import find, why_not
from momus.explore.findings import FAILED, HUNG, LEFT, NOT_REACHED, Explored, Run, Runs, verdict_of, with_left
from momus.explore.kit_front import Front, OfTest
from momus.explore.program import MOST_OUTPUT, Asked, ProgramError, begin, end_process, host
from momus.explore.watch import last_requests
from momus.kit.process import Broker

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from momus.explore.schedule import Schedule

MOST_SILENT = 3  # rounds that tell nothing new of any test, one after the other


class Round(NamedTuple):
    """A run of the whole suite. `code`: None: it was ended at its limit."""

    tests: dict[str, OfTest]
    unnamed: int
    code: int | None
    seconds: float
    output: str


class Planned:
    """What is to be run of a test, and what has been."""

    def __init__(self, name: str, note: str) -> None:
        self.name = name
        self.note = note
        self.classes = 0
        self.planned = 0
        self.left: set[str] = set()
        self.queue: Iterator[Schedule] = iter(())
        self.first: deque[Schedule] = deque()  # before all others of the queue
        self.runs = Runs()

    def next(self) -> Schedule | None:
        """The next schedule; None: there is none left."""
        return self.first.popleft() if self.first else next(self.queue, None)

    def explored(self, seconds: float, plain_s: float, asked: Asked) -> Explored:
        """What was found in it."""
        runs = self.runs.all
        left_out = self.planned - sum(len(run.schedule) == 1 for run in runs)
        again = asked.again("--test", self.name)
        return Explored(self.name, self.note, self.classes, self.planned, left_out, runs, seconds, plain_s, again)


def explore(asked: Asked, show: Callable[[list[Run], int], None] = lambda runs, planned: None) -> list[Explored]:
    """Explore each test of a suite. Errors: ProgramError: it cannot be explored, and why."""
    began_s = time.monotonic()
    with ExitStack() as ends:
        hosts = [ends.enter_context(host()) for _ in range(asked.workers)]
        plains = [run_once(hosts[0], asked, {}, plan.PLAIN_LIMIT_S) for _ in range(plan.PLAIN_RUNS)]
        if any(each.code is None for each in plains):
            raise ProgramError(f"without anything that happens it did not end\n{plains[-1].output}".rstrip())
        tests = _planned(plains, asked)
        plain_s = max(each.seconds for each in plains)
        _Rounds(asked, tests, plains[-1].code, plan.suite_hang_limit_s(plain_s), show).run(hosts)
    seconds = time.monotonic() - began_s
    return [each.explored(seconds, plain_s, asked) for each in tests.values()]


def once(asked: Asked, test: str, schedule: Schedule, limit_s: float = plan.PLAIN_LIMIT_S) -> Run:
    """Run the suite with one schedule in one test. Errors: ProgramError: there is no such test."""
    with host() as made:
        ran = run_once(made, asked, {test: schedule}, limit_s)
        found = ran.tests.get(test)
        if found is None:
            known = ", ".join(ran.tests) or "no test has made a cluster"
            raise ProgramError(f"no test {test!r} has made a cluster: {known}\n{ran.output}".rstrip())
        return _judged(schedule, test, found, ran, set())


def run_once(made: Broker, asked: Asked, schedules: Mapping[str, Schedule], limit_s: float) -> Round:
    """Run the command once, with the schedules of some tests. Errors: ProgramError: it cannot be started."""
    with Front(made.control.address, schedules) as front, tempfile.TemporaryFile() as output:
        environment = {**os.environ, "MOMUS_ADDRESS": front.address}
        environment.pop("MOMUS_CONTROL_TOKEN", None)
        began_s = time.monotonic()
        process = begin(asked.command, environment, output)
        try:
            code: int | None = process.wait(limit_s)
        except subprocess.TimeoutExpired:
            code = None
            for test in front.tests.values():
                test.last = [] if test.has_ended else [line for each in test.where for line in last_requests(each)]
        seconds = time.monotonic() - began_s
        end_process(process)
        output.seek(0)
        return Round(front.tests, front.unnamed, code, seconds, output.read().decode(errors="replace"))


def _planned(plains: Sequence[Round], asked: Asked) -> dict[str, Planned]:
    """What is to be run of each test. Errors: ProgramError: none has made a cluster."""
    last = plains[-1]
    if not last.tests:
        raise ProgramError(
            "a cluster was made for no test: it is shared, or the kit is older than this momus"
            if last.unnamed
            else f"no test has made a cluster by a kit\n{last.output[-MOST_OUTPUT:]}".rstrip()
        )
    tests = {}
    for name, test in last.tests.items():
        each = tests[name] = Planned(name, _note(name, plains))
        if each.note:
            continue
        before = plains[0].tests[name].watch.rows
        found = find(test.watch.rows, before)
        happenings = [row for row in asked.happenings if row.category != "program"]
        schedules = plan.singles(found.requests, happenings, test.watch.brokers, asked.seed)
        each.classes, each.planned = found.classes, len(schedules)
        each.left = {sentence for ran in plains for sentence in ran.tests[name].watch.left}
        each.queue = plan.queued(schedules, asked.budget, asked.seed)
    return tests


def _note(name: str, plains: Sequence[Round]) -> str:
    """Why a test is not explored; "": it is."""
    found = [ran.tests.get(name) for ran in plains]
    tests = [test for test in found if test is not None]
    if len(tests) < len(found):
        return "differs without a fault: it did not run each time"
    if any(test.has_failed for test in tests):
        always = all(test.has_failed for test in tests)
        return "fails without a fault" if always else "differs without a fault: it passed before"
    if not all(test.has_ended for test in tests):
        return "its cluster outlives it"
    return why_not(tests[-1].watch.rows, tests[-1].watch.dropped)


class _Rounds:
    """Runs rounds until no test has a schedule left, or the budget is spent.

    plain_code   what the command ends with where nothing happens.
    """

    def __init__(
        self,
        asked: Asked,
        tests: dict[str, Planned],
        plain_code: int | None,
        limit_s: float,
        show: Callable[[list[Run], int], None],
    ) -> None:
        self._asked = asked
        self._tests = tests
        self._plain_code = plain_code
        self._limit_s = limit_s
        self._show = show
        self._end_s = None if asked.budget.seconds is None else time.monotonic() + asked.budget.seconds
        self._alone: deque[tuple[str, Schedule]] = deque()  # each in a round without others
        self._silent = 0
        self._busy = 0
        self._changed = threading.Condition()
        self._errors: list[BaseException] = []

    def run(self, hosts: Sequence[Broker]) -> None:
        """Run them, one at a time before each host. Errors: ProgramError."""
        threads = [threading.Thread(target=self._work, args=(each,), name="explore-suite") for each in hosts]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        if self._errors:
            raise self._errors[0]

    def _work(self, made: Broker) -> None:
        try:
            while (schedules := self._next()) is not None:
                ran = run_once(made, self._asked, schedules, self._limit_s)
                with self._changed:
                    self._busy -= 1
                    self._judge(schedules, ran)
                    self._changed.notify_all()
        except BaseException as error:
            self._errors.append(error)

    def _next(self) -> dict[str, Schedule] | None:
        """The schedules of the next round; None: there is none."""
        with self._changed:
            while not self._errors and (self._end_s is None or time.monotonic() < self._end_s):
                if self._alone:
                    schedules = dict([self._alone.popleft()])
                else:
                    taken = ((name, each.next()) for name, each in self._tests.items())
                    schedules = {name: schedule for name, schedule in taken if schedule is not None}
                if schedules:
                    self._busy += 1
                    return schedules
                if not self._busy:
                    return None
                self._changed.wait(1)  # what another round finds is run once more
        return None

    def _judge(self, schedules: Mapping[str, Schedule], ran: Round) -> None:
        is_odd = ran.code != self._plain_code
        runs = {}
        for name, schedule in schedules.items():
            test = ran.tests.get(name)
            if test is None and is_odd:
                self._tests[name].first.append(schedule)  # its turn did not come
            else:
                runs[name] = _judged(schedule, name, test, ran, self._tests[name].left)
        self._silent = 0 if runs else self._silent + 1
        if self._silent >= MOST_SILENT:
            raise ProgramError(f"it ends with {ran.code} before its tests have clusters\n{ran.output[-MOST_OUTPUT:]}")
        if is_odd and runs and not any(run.is_wrong for run in runs.values()):
            why = f"its kit knows of no failure, but the command ended with {ran.code}\n{_part(ran.output, '')}"
            if len(schedules) > 1:
                self._alone.extend(schedules.items())
                return
            runs = {name: run._replace(verdict=FAILED, why=why) for name, run in runs.items()}
        for name, run in runs.items():
            if self._tests[name].runs.take(run):
                self._tests[name].first.append(run.schedule)
        done = [run for each in self._tests.values() for run in each.runs.done]
        self._show(done, sum(each.planned for each in self._tests.values()))


def _judged(schedule: Schedule, name: str, test: OfTest | None, ran: Round, left: set[str]) -> Run:
    """What came of a test in a round. `left`: what plain runs leave wrong too."""
    if test is None:
        return Run(schedule, NOT_REACHED, ran.seconds, "the test made no cluster")
    if not test.has_ended:
        if ran.code is None:
            why = "\n".join(["the last requests:", *test.last, _part(ran.output, name)])
            return Run(schedule, HUNG, ran.seconds, why)
        why = f"the command ended with {ran.code} before the test did\n{_part(ran.output, name)}"
        return Run(schedule, FAILED, ran.seconds, why)
    watch, new = test.watch, sorted(set(test.watch.left) - left)
    verdict = verdict_of(schedule, failed=test.has_failed, hits=watch.hits, outcomes=watch.outcomes, left=new)
    why = _part(ran.output, name) if test.has_failed else ""
    if verdict in (FAILED, LEFT) and new:
        why = with_left(why, new)
    return Run(schedule, verdict, ran.seconds, why or "; ".join(filter(None, watch.outcomes)))


def _part(output: str, name: str) -> str:
    """Of what the command has written, what is about a test: from where it is last named on; else the end."""
    begin = output.rfind(name.rpartition(".")[2] or name) if name else -1
    part = output[output.rfind("\n", 0, begin) + 1 :] if begin >= 0 else output[-MOST_OUTPUT:]
    return part[:MOST_OUTPUT].rstrip()
