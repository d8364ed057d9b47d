"""Plays the cases of a seed in several processes, gathers the classes of differences, and digs into each of them.

A class is played again before it counts: twice out of three times it must show, at full speed or with small pauses.
What does not is noise of two programs with clocks and threads, and is listed as such.
"""

from __future__ import annotations

import multiprocessing
import queue
import sys
import time
import traceback
from collections import Counter
from functools import partial
from multiprocessing.queues import Queue
from multiprocessing.synchronize import Event
from pathlib import Path
from threading import Thread
from typing import Any, Final, NamedTuple

from differential.allow import AllowList
from differential.brokers import KafkaPeer, MomusPeer, Peer, WorldPeer, processors
from differential.generate.profiles import PROFILES, make_case
from differential.links import LinkError
from differential.pair import ALLOW, OPEN, Pair
from differential.plain import Values
from differential.play import Outcome
from differential.script import Script, describe
from differential.shrink import shrink

SEEDS_APART: Final = 10_000_000
CASES_A_RESTART: Final = 40
SLOW_S: Final = 0.012
TRIES: Final = 3
SAMPLES: Final = 3
SILENCE_S: Final = 180
EVERY_S: Final = 30


class Plan(NamedTuple):
    """What to play."""

    profile: str
    seed: int
    cases: int
    first: int = 0
    only: list[str] | None = None  # families
    inside: bool = False  # momus in the processes of this run, not in one of its own
    shrink_s: float = 20.0
    scripts: Path = Path("build/differential")


class Kind:
    """One class of differences."""

    def __init__(self) -> None:
        self.count = 0
        self.samples: list[tuple[int, int]] = []  # seed, step
        self.versions: set[int] = set()
        self.families: set[str] = set()


class Result:
    """What came of a run."""

    def __init__(self) -> None:
        self.pairs = 0
        self.cases = 0
        self.skipped = 0
        self.seconds = 0.0
        self.kinds: dict[str, Kind] = {}
        self.explained: Counter[str] = Counter()
        self.open: Counter[str] = Counter()
        self.families: Counter[str] = Counter()
        self.apis: Counter[str] = Counter()
        self.broken: list[str] = []
        self.real: list[str] = []
        self.noise: list[str] = []

    @property
    def unexplained(self) -> int:
        """What has to be mended: classes, open rules that were met, and cases that could not be played."""
        return len(self.real) + len(self.open) + len(self.broken)


class Brokers:
    """The brokers of a profile, started together."""

    def __init__(self, profile: str, inside: bool, against: str = "") -> None:
        chosen = PROFILES[profile]
        self.against = against  # an older release of Apache Kafka, which momus imitates; empty: the current one
        self.profile = chosen
        self.inside = inside
        self.kafka: Peer = KafkaPeer(chosen.nodes, {**chosen.settings, **chosen.kafka}, against)
        self.momus: Peer | None = None if inside else self._momus()

    def _momus(self) -> Peer:
        settings = {**self.profile.settings, **self.profile.momus}
        if self.against:
            settings["as.version"] = ".".join(self.against.split(".")[:2])
        if self.inside:
            return WorldPeer(self.profile.nodes, settings, follows=True)
        return MomusPeer(self.profile.nodes, settings)

    def pair(self, number: int, allow: AllowList) -> Pair:
        """A pair for one process."""
        has_shares = "group.share.assignment.interval.ms" in self.profile.kafka
        return Pair([self.kafka, self.momus or self._momus()], allow, number, shares=has_shares)

    def stop(self) -> None:
        if self.momus is not None:
            self.momus.stop()
        self.kafka.stop()


def allow_list(profile: str = "default", against: str = "") -> AllowList:
    """The rules of the project, those of a profile, and those of an older release."""
    more = [PROFILES[profile].rules, "older.json" if against else ""]
    return AllowList([ALLOW, OPEN, *(ALLOW.with_name(name) for name in more if name)])


def run(plan: Plan, brokers: Brokers) -> Result:
    """Play a plan. Errors: LinkError: the brokers do not serve."""
    result, begin = Result(), time.monotonic()
    context = multiprocessing.get_context("fork")
    out: Queue[Any] = context.Queue()
    stop: Event = context.Event()
    count = PROFILES[plan.profile].workers or processors()
    # Only the process that started a broker can end it and start it again.
    kind = Thread if PROFILES[plan.profile].restarts else context.Process
    workers = [kind(target=_work, args=(at, count, plan, brokers, out, stop), daemon=True) for at in range(count)]
    for worker in workers:
        worker.start()
    left, told = count, begin
    while left:
        try:
            row = out.get(timeout=SILENCE_S)
        except queue.Empty:
            result.broken.append(f"nothing from the workers for {SILENCE_S} s")
            stop.set()
            break
        if row[0] == "end":
            left -= 1
        elif row[0] == "broken":
            result.broken.append(row[1])
            _say(f"broken: {row[1]}")
        else:
            _count(result, *row[1:])
        if time.monotonic() - told > EVERY_S:
            told = time.monotonic()
            _say(f"... {result.cases} cases, {result.pairs} pairs, {len(result.kinds)} classes, {told - begin:.0f} s")
    result.seconds = time.monotonic() - begin
    for worker in workers:
        worker.join(10)
    _dig(plan, brokers, result)
    return result


def _say(text: str) -> None:
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


def _count(result: Result, seed: int, family: str, outcome: Outcome, steps: list[Values]) -> None:
    result.cases += 1
    result.pairs += outcome.pairs
    result.skipped += outcome.skipped
    result.families[family] += outcome.pairs
    result.explained.update(outcome.explained)
    result.apis.update(steps[each.number]["api"] for each in outcome.answers if not each.late)
    result.open.update({finding.kind for finding in outcome.open})
    for finding in outcome.findings:
        kind = result.kinds.setdefault(finding.kind, Kind())
        kind.count += 1
        kind.versions.add(finding.step["v"])
        kind.families.add(family)
        kind.samples.append((seed, finding.number))


def _work(at: int, count: int, plan: Plan, brokers: Brokers, out: Queue[Any], stop: Event) -> None:
    profile, pair = PROFILES[plan.profile], None
    try:
        pair = brokers.pair(plan.first * 100 + at, allow_list(plan.profile, brokers.against))
        seeds = [plan.seed * SEEDS_APART + number for number in range(plan.first + at, plan.first + plan.cases, count)]
        size = CASES_A_RESTART if profile.restarts else 1
        for begin in range(0, len(seeds), size):
            if stop.is_set():
                break
            some = seeds[begin : begin + size]
            cases = [make_case(plan.profile, seed, plan.only) for seed in some]
            try:
                outcomes = pair.play_all([steps for _, steps in cases])
            except (LinkError, OSError) as error:
                out.put(("broken", f"seeds {some}: {error!r}"))
                pair.forget()
                continue
            for seed, (family, steps), outcome in zip(some, cases, outcomes, strict=True):
                if not outcome.findings:
                    outcome.open = [finding._replace(step={}, differences=[]) for finding in outcome.open]
                out.put(("case", seed, family, outcome, steps))
    except Exception:
        out.put(("broken", traceback.format_exc()))
    finally:
        if pair is not None:
            pair.forget()
    out.put(("end",))


def _dig(plan: Plan, brokers: Brokers, result: Result) -> None:
    """Play each class again, make it small, write its script."""
    if not result.kinds:
        return
    pair = brokers.pair(90_000 + plan.first, allow_list(plan.profile, brokers.against))
    try:
        _dig_with(pair, plan, result)
    finally:
        pair.forget()


def _dig_with(pair: Pair, plan: Plan, result: Result) -> None:
    for name, kind in sorted(result.kinds.items(), key=lambda item: -item[1].count):
        found = None
        for seed, _ in sorted(kind.samples, key=lambda sample: sample[1])[:SAMPLES]:
            steps = make_case(plan.profile, seed, plan.only)[1]
            found = _confirm(pair, plan, name, seed, steps)
            if found:
                break
        head = f"{name}  x{kind.count} v{sorted(kind.versions)} {','.join(sorted(kind.families))}"
        if found is None:
            result.noise.append(name)
            _say(f"--- not seen again: {head}, seeds {[seed for seed, _ in kind.samples[:4]]}")
            continue
        result.real.append(name)
        script, outcome = found
        _say(f"## {head}\n{describe(script, outcome)}\n   replay: {script.write(plan.scripts)}")


def shows(pair: Pair, name: str, steps: list[Values], slow_s: float) -> Outcome | None:
    """The outcome of a case if it has a difference of this class, or is explained by the open rule of this name."""
    try:
        outcome = pair.play(steps, slow_s)
    except (LinkError, OSError):
        pair.forget()
        return None
    return outcome if any(each.kind == name for each in [*outcome.findings, *outcome.open]) else None


def _still(pair: Pair, name: str, slow_s: float, steps: list[Values]) -> bool:
    return shows(pair, name, steps, slow_s) is not None


def _confirm(pair: Pair, plan: Plan, name: str, seed: int, steps: list[Values]) -> tuple[Script, Outcome] | None:
    tries = 1 if PROFILES[plan.profile].restarts else TRIES
    for slow_s in (0.0, SLOW_S):
        hits = sum(shows(pair, name, steps, slow_s) is not None for _ in range(tries))
        if hits * 3 >= tries * 2:
            small = shrink(steps, partial(_still, pair, name, slow_s), plan.shrink_s)
            outcome = next((each for _ in range(TRIES) if (each := shows(pair, name, small, slow_s))), None)
            if outcome is not None:
                return Script(name, plan.profile, seed, small, slow_s), outcome
    return None
