"""`pytest --momus-explore`: each test that has a momus cluster runs plainly, then once for each schedule, in workers.

`pytest --momus-schedule TEXT` runs the chosen tests once, with that schedule.
"""

from __future__ import annotations

import os
import selectors
import time
from itertools import chain
from shlex import quote

import pytest

from momus.explore import plan
from momus.explore.classes import find, why_not
from momus.explore.findings import FAILED, HUNG, WRONG, Explored, Run, Runs, verdict_of, with_left
from momus.explore.happenings import chosen
from momus.explore.report import failure_text, opened_at, summary_lines, write_report
from momus.explore.schedule import Schedule, parse, text_of
from momus.explore.watch import Watch, last_requests
from momus.explore.worker import Worker
from momus.kit import explored
from momus.kit.plugin_options import option

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Generator, Iterator
    from typing import Any

MOST_WORKERS = 8
WORDS = ("skip", "what", "apis", "budget", "checks")


class ExploreRun:
    """The plugin that explores."""

    def __init__(self, config: pytest.Config) -> None:
        self.config = config
        self.explored: list[Explored] = []
        self._workers: list[Worker] = []
        self._seed = int(option(config, "seed") or 0)
        self._budget_text = option(config, "explore")
        plan.Budget.of(self._budget_text)
        chosen(option(config, "explore_what"))
        self._count = _worker_count(config)
        self._keep = option(config, "keep_failed")
        self._is_first_enough = config.getoption("maxfail") == 1  # -x

    # -- what pytest calls

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> bool:
        """Explore a test, and report it as one."""
        hook = item.ihook
        hook.pytest_runtest_logstart(nodeid=item.nodeid, location=item.location)
        reports = self._explore(item)
        for report in reports:
            hook.pytest_runtest_logreport(report=report)
        hook.pytest_runtest_logfinish(nodeid=item.nodeid, location=item.location)
        return True

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_fixture_setup(self, fixturedef: Any) -> Generator[None, Any, Any]:
        """What a fixture of the session makes stays from run to run: it is not explored."""
        return (yield from _scoped(fixturedef))

    def pytest_sessionfinish(self) -> None:
        """End the workers."""
        for worker in self._workers:
            worker.end()
        self._workers.clear()
        if hasattr(self.config, "workeroutput"):  # xdist: the controller shows what all have found
            self.config.workeroutput["momus_explored"] = [each.as_json() for each in self.explored]

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: Any, error: object) -> None:
        """xdist, in the controller: take what a worker has found."""
        found = getattr(node, "workeroutput", None) or {}
        self.explored += [Explored.from_json(each) for each in found.get("momus_explored", ())]

    def pytest_terminal_summary(self, terminalreporter: Any) -> None:
        """What was explored and what was found."""
        terminalreporter.section("momus explore")
        for each in summary_lines(self.explored, verbose=self.config.get_verbosity() > 0):
            terminalreporter.write_line(each)
        if path := option(self.config, "explore_report"):
            write_report(path, self.explored)
            terminalreporter.write_line(f"written to {path}")

    # -- a test

    def _explore(self, item: pytest.Item) -> list[pytest.TestReport]:
        """Run it, and return its reports."""
        began_s = time.monotonic()
        words = _marked(item)
        budget = plan.Budget.of(str(words.get("budget", self._budget_text)))
        happenings = chosen(str(words.get("what", option(self.config, "explore_what"))))
        if apis := words.get("apis"):
            happenings = tuple(
                each._replace(apis=kept)
                for each in happenings
                if (kept := tuple(set(each.apis) & set(apis)) if each.apis else tuple(apis))
            )
        plains = []
        for _ in range(plan.PLAIN_RUNS):
            plains.append(self._plain(item))
            if note := _note(plains, words, is_marked=item.get_closest_marker("momus_explore") is not None):
                self.explored.append(Explored(item.nodeid, note, 0, 0, 0, (), time.monotonic() - began_s, 0.0, ""))
                return self._reports(plains[-1])
        plain = max(plains, key=lambda each: float(each["seconds"]))
        rows = plains[-1]["rows"]
        found = find(rows, plains[0]["rows"])
        schedules = plan.singles(found.requests, happenings, plains[-1]["brokers"], self._seed)
        left = {sentence for each in plains for sentence in each["left"]}
        runs = self._run_all(
            item, schedules, budget, float(plain["seconds"]), left, checks=bool(words.get("checks", True))
        )
        done = sum(len(run.schedule) == 1 for run in runs)
        told = Explored(
            item.nodeid,
            "",
            found.classes,
            len(schedules),
            len(schedules) - done,
            runs,
            time.monotonic() - began_s,
            float(plain["seconds"]),
            f"pytest {quote(item.nodeid)} --momus-schedule {{}}",
        )
        self.explored.append(told)
        reports = self._reports(plains[-1])
        for report in reports:
            if report.when == "call" and told.wrong:
                report.outcome = "failed"
                report.longrepr = failure_text(told)
        return reports

    def _plain(self, item: pytest.Item) -> dict[str, Any]:
        """Run it once without anything that happens. Its worker is a new one if the last has ended."""
        worker = self._worker(0)
        worker.run(self._index(item), None, plan.PLAIN_LIMIT_S, None)
        while True:
            try:
                for answer in worker.answers():
                    if "error" in answer:
                        raise EOFError(answer["error"])
                    worker.given = None
                    return answer
            except EOFError as error:
                self._replace(worker)
                raise RuntimeError(f"the worker that ran {item.nodeid} has ended by itself: {error}") from None

    def _run_all(
        self,
        item: pytest.Item,
        schedules: list[Schedule],
        budget: plan.Budget,
        plain_s: float,
        left: set[str],
        *,
        checks: bool,
    ) -> list[Run]:
        """Run schedules until there are no more, or the budget is spent."""
        end_s = None if budget.seconds is None else time.monotonic() + budget.seconds
        queue = plan.queued(schedules, budget, self._seed)
        runs = Runs()
        limit_s, index = plan.hang_limit_s(plain_s), self._index(item)
        is_over = False
        while True:
            for number in range(self._count):
                worker = self._worker(number)
                if worker.given is not None or is_over:
                    continue
                if end_s is not None and time.monotonic() >= end_s:
                    is_over = True
                    break
                schedule = next(queue, None)
                if schedule is None:
                    break
                keep = self._keep if runs.waits(schedule) else ""
                worker.run(index, text_of(schedule), limit_s, schedule, keep=keep)
            busy = [worker for worker in self._workers if worker.given is not None]
            if not busy:
                break
            for worker, answer in self._next_answers(busy):
                run = self._judged(worker, answer, left, checks=checks)
                if runs.take(run, repeats=end_s is None or time.monotonic() < end_s):
                    queue = chain([run.schedule], queue)
                self._show(item, runs.done, len(schedules))
            if self._session.shouldstop or (self._is_first_enough and any(run.is_wrong for run in runs.done)):
                is_over = True
        return runs.all

    def _next_answers(self, busy: list[Worker]) -> Iterator[tuple[Worker, dict[str, Any] | None]]:
        """Wait for answers, or until a run has hung: then its answer is None."""
        with selectors.DefaultSelector() as ready:
            for worker in busy:
                ready.register(worker.socket, selectors.EVENT_READ, worker)
            found = ready.select(max(0.0, min(worker.left_s for worker in busy)))
        for key, _ in found:
            worker = key.data
            try:
                for answer in worker.answers():
                    yield worker, answer
            except EOFError:
                yield worker, {"error": "its process has ended by itself"}
        for worker in busy:
            if worker.given is not None and worker.left_s <= 0:
                yield worker, None

    def _judged(self, worker: Worker, answer: dict[str, Any] | None, left: set[str], *, checks: bool) -> Run:
        schedule, seconds = worker.given, time.monotonic() - worker.began_s
        worker.given = None
        if answer is None:
            asked = [line for address in worker.clusters for line in last_requests(address)]
            why = f"the last requests:\n{chr(10).join(asked) or 'none'}\n{worker.stacks()}"
            self._replace(worker)
            return Run(schedule, HUNG, seconds, why)
        if "error" in answer:
            self._replace(worker)
            return Run(schedule, FAILED, seconds, f"the process of the test has ended: {answer['error']}")
        reports = self._reports(answer)
        wrong = [report for report in reports if report.failed]
        new = sorted(set(answer["left"]) - left) if checks else []
        verdict = verdict_of(schedule, failed=bool(wrong), hits=answer["hits"], outcomes=answer["outcomes"], left=new)
        why = "\n".join(report.longreprtext for report in wrong)
        if verdict in WRONG and new:
            why = with_left(why, new)
        elif not why:
            why = "; ".join(outcome for outcome in answer["outcomes"] if outcome)
        kept = opened_at(answer["kept"][0]) if answer["kept"] else ""
        return Run(schedule, verdict, float(answer["seconds"]), why, kept=kept)

    # -- workers

    def _worker(self, number: int) -> Worker:
        while len(self._workers) <= number:
            self._workers.append(Worker(self._session, list(self._workers)))
        return self._workers[number]

    def _replace(self, worker: Worker) -> None:
        worker.kill()
        others = [each for each in self._workers if each is not worker]
        self._workers[self._workers.index(worker)] = Worker(self._session, others)

    def pytest_runtestloop(self, session: pytest.Session) -> None:
        """Remember the session: workers are forks with its tests."""
        self._session = session

    def pytest_collection_finish(self, session: pytest.Session) -> None:
        """Remember the session, and where each test is in it."""
        self._session = session
        self._indexes = {item: index for index, item in enumerate(session.items)}

    def _index(self, item: pytest.Item) -> int:
        return self._indexes[item]

    def _reports(self, answer: dict[str, Any]) -> list[pytest.TestReport]:
        hook = self.config.hook
        return [hook.pytest_report_from_serializable(config=self.config, data=data) for data in answer["reports"]]

    def _show(self, item: pytest.Item, runs: list[Run], planned: int) -> None:
        """How far it is, on a terminal."""
        reporter = self.config.pluginmanager.getplugin("terminalreporter")
        if reporter is None or not reporter.isatty or hasattr(self.config, "workerinput"):
            return
        wrong = sum(run.is_wrong for run in runs)
        began_s = min((run.seconds for run in runs), default=0.0)
        left_s = (planned - len(runs)) * sum(run.seconds for run in runs) / max(1, len(runs)) / self._count
        reporter.rewrite(
            f"{item.nodeid}: {len(runs)} of {planned} schedules, {wrong} found, some {max(began_s, left_s):.0f} s left",
            erase=True,
        )


class ScheduleRun:
    """The plugin that runs each chosen test once, with one schedule."""

    def __init__(self, text: str) -> None:
        self.schedule = parse(text)
        self._told: list[str] = []

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Generator[None, Any, Any]:
        """Watch a test."""
        watch = explored.watch = Watch(self.schedule)
        try:
            return (yield)
        finally:
            explored.watch = None
            for step, hits, outcome in zip(self.schedule, watch.hits, watch.outcomes, strict=True):
                came = outcome or "it happened" if hits else "it was not reached"
                self._told.append(f"{item.nodeid}: {step.text()}: {came}")
            self._told += [f"{item.nodeid}: after the run: {sentence}" for sentence in watch.left]

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_fixture_setup(self, fixturedef: Any) -> Generator[None, Any, Any]:
        """What a fixture of the session makes is not of the test."""
        return (yield from _scoped(fixturedef))

    def pytest_terminal_summary(self, terminalreporter: Any) -> None:
        """Whether it has happened."""
        terminalreporter.section("momus schedule")
        for each in self._told:
            terminalreporter.write_line(each)


def _scoped(fixturedef: Any) -> Generator[None, Any, Any]:
    watch: Any = explored.watch
    if watch is None or fixturedef.scope != "session":
        return (yield)
    before, watch.is_shut = watch.is_shut, True
    try:
        return (yield)
    finally:
        watch.is_shut = before


def _note(plains: list[dict[str, Any]], words: dict[str, Any], *, is_marked: bool) -> str:
    """Why a test is not explored, after so many plain runs; "": it is."""
    last = plains[-1]
    outcomes = [[report["outcome"] for report in each["reports"]] for each in plains]
    if any(outcome == "failed" for outcome in outcomes[-1]):
        return "fails without a fault" if len(plains) == 1 else "differs without a fault: it passed before"
    if "skip" in words:
        return f"skipped: {words['skip']}"
    if any(outcome == "skipped" for outcome in outcomes[-1]):
        return "skipped itself"
    if not last["brokers"]:
        return "its cluster is shared by the session" if last["shut_out"] else "no cluster of momus"
    return why_not(last["rows"], last["dropped"], is_marked=is_marked)


def _marked(item: pytest.Item) -> dict[str, Any]:
    """The words of its markers; the closest to the test wins."""
    words: dict[str, Any] = {}
    for marker in reversed(list(item.iter_markers("momus_explore"))):
        for word in marker.kwargs:
            if word not in WORDS:
                raise pytest.UsageError(f"the marker momus_explore takes no {word!r}: it takes {', '.join(WORDS)}")
        words.update(marker.kwargs)
    return words


def _worker_count(config: pytest.Config) -> int:
    given = option(config, "explore_workers")
    if given:
        return max(1, int(given))
    usable = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    spread = getattr(config, "workerinput", {}).get("workercount", 1)
    return max(1, min(MOST_WORKERS, usable) // int(spread))
