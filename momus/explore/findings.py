"""What came of the runs of a test: a verdict for each, and the sums that reports show."""

from __future__ import annotations

from collections import Counter
from shlex import quote
from typing import NamedTuple

from momus.explore.schedule import Schedule, parse, text_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from typing import Any

PASSED, FAILED, HUNG, LEFT, DIFFERS = "passed", "failed", "hung", "left wrong", "failed without it"
NOT_REACHED, NOT_MADE = "not reached", "not possible"
WRONG = (FAILED, HUNG, LEFT)  # what a test fails for
VERDICTS = (PASSED, FAILED, HUNG, LEFT, DIFFERS, NOT_REACHED, NOT_MADE)
MADE = "made"


class Run(NamedTuple):
    """One run.

    seconds   it took.
    why       the test's own report, or who waits for what.
    again     the verdict of the same run, done once more; "": it was not.
    kept      the command that opens the file of that run at the request where it happened; "": it is not kept.
    """

    schedule: Schedule
    verdict: str
    seconds: float
    why: str = ""
    again: str = ""
    kept: str = ""

    @property
    def is_wrong(self) -> bool:
        """Whether the test fails for it."""
        return self.verdict in WRONG


class Runs:
    """The runs of a test so far. One that failed is to be run once more: is it always so?"""

    def __init__(self) -> None:
        self._done: list[Run] = []
        self._again: dict[Schedule, Run] = {}

    def waits(self, schedule: Schedule) -> bool:
        """Whether it failed and is to be run once more."""
        return schedule in self._again

    def take(self, run: Run, *, repeats: bool = True) -> bool:
        """Add a run. `repeats`: there is time for it once more. Returns whether it is to be run once more."""
        first = self._again.pop(run.schedule, None)
        if first is None and run.verdict == FAILED and repeats:
            self._again[run.schedule] = run
            return True
        self._done.append(run if first is None else first._replace(again=run.verdict, kept=run.kept))
        return False

    @property
    def done(self) -> list[Run]:
        """Those that are not to be run once more."""
        return self._done

    @property
    def all(self) -> list[Run]:
        """These, and at last what there was no time for once more."""
        return [*self._done, *self._again.values()]


class Explored(NamedTuple):
    """A test.

    test      what pytest calls it, or the command of a program.
    note      why it was not explored; "": it was.
    planned   schedules that there are, of one thing at once.
    left_out  of these, for want of budget.
    again     the command that does a run once more, with {} for its schedule.
    """

    test: str
    note: str
    classes: int
    planned: int
    left_out: int
    runs: Sequence[Run]
    seconds: float
    plain_seconds: float
    again: str

    def again_command(self, run: Run) -> str:
        """The line that makes a run happen once more."""
        return self.again.replace("{}", quote(text_of(run.schedule)))

    @property
    def head(self) -> str:
        """A line: classes, schedules, verdicts."""
        counts = ", ".join(f"{count} {verdict}" for verdict, count in self.counts().items()) or "nothing was run"
        left = f", {self.left_out} left out by the budget" if self.left_out else ""
        two = sum(len(run.schedule) > 1 for run in self.runs)
        return (
            f"{self.test}: {self.classes} classes of requests, {self.planned} schedules, {len(self.runs)} runs"
            f"{f' ({two} of two things at once)' if two else ''} in {self.seconds:.1f} s: {counts}{left}"
        )

    @property
    def wrong(self) -> list[Run]:
        """The runs that the test fails for."""
        return [run for run in self.runs if run.is_wrong]

    @property
    def examples(self) -> list[tuple[Run, int]]:
        """Of the runs that the test fails for: the first of each kind (what, where, verdict), and how many of it."""
        found: dict[tuple[str, str, str], list[Run]] = {}
        for run in self.wrong:
            found.setdefault((what(run), where(run), run.verdict), []).append(run)
        return [(runs[0], len(runs)) for runs in found.values()]

    def counts(self) -> dict[str, int]:
        """Verdict -> number of runs, in the order of VERDICTS, those that there are."""
        found = Counter(run.verdict for run in self.runs)
        return {verdict: found[verdict] for verdict in VERDICTS if found[verdict]}

    def as_json(self) -> dict[str, Any]:
        """As a file or another process has it."""
        runs = [{**run._asdict(), "schedule": text_of(run.schedule)} for run in self.runs]
        return {**self._asdict(), "runs": runs}

    @classmethod
    def from_json(cls, told: dict[str, Any]) -> Explored:
        """What `as_json` has made."""
        runs = [Run(**{**run, "schedule": parse(run["schedule"])}) for run in told["runs"]]
        return cls(**{**told, "runs": runs})


def verdict_of(
    schedule: Schedule, *, failed: bool, hits: Sequence[int], outcomes: Sequence[str], left: Iterable[str]
) -> str:
    """The verdict of a run that has ended. `left`: what it left wrong that a plain run does not."""
    is_reached = all(hits)
    events = [outcome for step, outcome in zip(schedule, outcomes, strict=True) if step.kind == "make_event"]
    if failed:
        return FAILED if any(hits) else DIFFERS
    if not is_reached:
        return NOT_REACHED
    if any(outcome != MADE for outcome in events):
        return NOT_MADE
    return LEFT if list(left) else PASSED


def with_left(why: str, left: Iterable[str]) -> str:
    """A report, and after it what the run has left wrong."""
    return "\n".join([*filter(None, [why]), *(f"after the run: {sentence}" for sentence in left)])


def where(run: Run) -> str:
    """The requests at which something happened: their APIs, and what they name."""
    return " + ".join(
        f"{step.api}[{', '.join(value for name, value in step.names if name != 'client_id')}]".replace("[]", "")
        for step in run.schedule
    )


def what(run: Run) -> str:
    """What happened: the event or the error, or the kind of the fault with its words."""
    told = []
    for step in run.schedule:
        words = [str(value) for _, value in step.words]
        told.append(" ".join(words if step.kind in ("inject_error", "make_event") else [step.kind, *words]))
    return " + ".join(told)


def line(run: Run) -> str:
    """The text of its schedule."""
    return text_of(run.schedule)
