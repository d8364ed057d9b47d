"""Plays one case: every step goes to both brokers, and the answers are compared.

A step with "api" is a request; {"do": "pass", "ms": N} lets time pass, {"do": "restart"} kills both brokers and starts
them again. Some requests wait (JoinGroup for other members, Fetch for records): where neither broker answers in time
both are "parked", and their answers are compared when they come.

After a difference that leaves the brokers in different states the case goes on with what it does not concern: the names
in that step are tainted, and so is every later step that shares one with them.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import NamedTuple

from differential.allow import AllowList
from differential.compare import Difference, class_of, differences
from differential.links import Link, wait_for_any
from differential.plain import Plain, Values, words
from differential.settle import Settler
from differential.side import Sent, Side

ANSWER_LIMIT_S = 6.0
OTHER_LIMIT_S = 1.5  # for the second answer, once the first is here
PARKS = {"JoinGroup", "SyncGroup"}
PARK_S = 0.06
LATE_S = 0.004
LAST_LATE_S = 0.05
NO_ANSWER_S = 0.02  # Produce with acks=0 has none
MOST_FINDINGS = 4
PARKED: Values = {"parked": True}
READS = frozenset(
    words(
        """Metadata ListOffsets OffsetFetch FindCoordinator DescribeGroups ListGroups ApiVersions OffsetForLeaderEpoch
    DescribeConfigs DescribeLogDirs DescribeCluster DescribeProducers DescribeTransactions ListTransactions
    ConsumerGroupDescribe StreamsGroupDescribe ShareGroupDescribe DescribeShareGroupOffsets ListConfigResources
    DescribeTopicPartitions DescribeAcls DescribeQuorum
    DescribeClientQuotas DescribeUserScramCredentials ListPartitionReassignments"""
    )
)


class Answered(NamedTuple):
    """A line of the case's record: which step, with it or later, and the two answers."""

    number: int
    late: bool
    kafka: Values
    momus: Values


class Finding(NamedTuple):
    """A difference that no rule explains, or an open rule does."""

    kind: str  # its class, or the open rule's name
    number: int
    step: Values
    differences: list[Difference]
    late: bool


class Outcome:
    """What came of a case."""

    def __init__(self) -> None:
        self.pairs = 0
        self.answers: list[Answered] = []
        self.findings: list[Finding] = []
        self.open: list[Finding] = []
        self.explained: dict[str, int] = {}
        self.skipped = 0  # steps that concern what is different already


def names_in(value: Plain) -> Iterator[str]:
    """The names of a case that a step speaks of."""
    if isinstance(value, str):
        if value[:1] == "%":
            yield value
    elif isinstance(value, list):
        for each in value:
            yield from names_in(each)
    elif isinstance(value, dict):
        if "$" in value:
            kind, _, rest = value["$"].partition(":")
            yield rest if kind == "id" else "label " + rest.split(":")[0]
        for key, each in value.items():
            if key != "recs":
                yield from names_in(each)


class Play:
    """One case on two sides, Kafka's first."""

    def __init__(self, sides: list[Side], steps: list[Values], allow: AllowList, slow_s: float = 0.0) -> None:
        self.sides = sides
        self.steps = steps
        self.allow = allow
        self.slow_s = slow_s
        self.outcome = Outcome()
        self.settler = Settler(sides)
        self.tainted: set[str] = set()
        self.at = 0

    def run(self) -> bool:
        """Play on to the end or to the next restart. Answers whether there is more to play after one."""
        while self.at < len(self.steps):
            number, step = self.at, self.steps[self.at]
            self.at += 1
            if step.get("do") == "restart":
                return True
            if step.get("do") == "pass":
                self._pass(step["ms"])
                is_going_on = self._late(0.02)
            else:
                is_going_on = self._step(number, step)
            if not is_going_on:
                self.at = len(self.steps)
        if self.outcome.findings[MOST_FINDINGS - 1 :] == [] and any(side.parked for side in self.sides):
            self._late(LAST_LATE_S)
        return False

    def restarted(self) -> None:
        """Both brokers have been killed and serve again: whatever waited is lost."""
        for side in self.sides:
            side.cut()

    def _pass(self, ms: int) -> None:
        if any(side.peer.is_live for side in self.sides):
            time.sleep(ms / 1000)
        for side in self.sides:
            side.peer.pass_time(ms)

    def _names(self, step: Values) -> set[str]:
        found = set(names_in(step.get("b", {})))
        if step.get("as"):
            found.add("label " + step["as"])
        session = step.get("b", {}).get("SessionId")
        if isinstance(session, dict):  # its answer has what earlier requests of the session have named
            label = str(session.get("$")).removeprefix("session:")
            for each in self.steps:
                if each is step:
                    break
                if each.get("as") == label:
                    found.update(names_in(each.get("b", {})))
        return found

    def _step(self, number: int, step: Values) -> bool:
        if self.tainted:
            names = self._names(step)
            if names & self.tainted or not names:
                if step["api"] not in READS:
                    self.tainted |= names
                self.outcome.skipped += 1
                return True
        if self.slow_s:
            time.sleep(self.slow_s)
        for side in self.sides:
            side.peer.keep_up()
        sent = [side.send(number, step) for side in self.sides]
        is_silent = step["api"] == "Produce" and sent[0].body.get("Acks") == 0
        park_s = self._park_s(step, is_silent)
        frames = self._wait([each.link for each in sent], park_s)
        for at, (side, each) in enumerate(zip(self.sides, sent, strict=True)):
            wait_s = self._wait_s(step) if park_s is None else park_s
            if frames[at] is None and wait_s:
                side.peer.pass_time(int(wait_s * 1000))
                frames[at] = each.link.take()
        answers, raw = [], []
        for side, each, data in zip(self.sides, sent, frames, strict=True):
            side.last_answer = {}
            answers.append(PARKED if data is None else side.read(each, data))
            raw.append(side.last_answer)
            if data is None and not is_silent:
                side.parked.append(each)
        self.outcome.pairs += 1
        if not self._judge(number, step, answers, False):
            return False
        wait_ms = self.settler.after(step, sent, answers, raw)
        if wait_ms:
            self._pass(wait_ms)
        return self._late(LATE_S)

    def _park_s(self, step: Values, is_silent: bool) -> float | None:
        """How long to wait where no answer may be the answer; None: there must be one."""
        if is_silent:
            return NO_ANSWER_S
        if step["api"] in PARKS:
            return PARK_S + self.slow_s
        if step["api"] == "Fetch" and (step["b"].get("MaxWaitMs") or 0) > 0:
            return PARK_S + float(step["b"]["MaxWaitMs"]) / 1000
        return None

    @staticmethod
    def _wait_s(step: Values) -> float:
        """How long an answer comes late when there is nothing to say, on a clock that is moved."""
        return float(step["b"].get("MaxWaitMs") or 0) / 1000 if step["api"] == "ShareFetch" else 0.0

    def _wait(self, links: list[Link], park_s: float | None) -> list[bytes | None]:
        """The answers of both sides, None where there is none in time."""
        got: list[bytes | None] = [None] * len(links)
        begin = time.monotonic()
        limit_s = ANSWER_LIMIT_S if park_s is None else park_s
        is_one_here = False
        while True:
            for at, link in enumerate(links):
                if got[at] is None:
                    got[at] = link.take()
            if all(data is not None for data in got):
                return got
            # One that answers at once in this process says nothing of how long the other takes.
            live = [link for at, link in enumerate(links) if got[at] is None and link.fileno() >= 0]
            if not is_one_here and any(data is not None for data in got):
                is_one_here, begin = True, time.monotonic()
                limit_s = max(limit_s, OTHER_LIMIT_S)
            left = begin + limit_s - time.monotonic()
            if left <= 0 or not live:
                return got
            wait_for_any(live, left)

    def _late(self, seconds: float) -> bool:
        """Compare the answers to parked requests that have come by now."""
        while True:
            rows = self._parked_rows()
            if not rows:
                return True
            arrived = self._arrived(rows, seconds)
            if arrived is None:
                return True
            row, frames = arrived
            if any(data is None for data in frames):
                more = self._wait(
                    [each.link for each, data in zip(row, frames, strict=True) if data is None], OTHER_LIMIT_S
                )
                frames = [data if data is not None else more.pop(0) for data in frames]
            answers = []
            for side, each, data in zip(self.sides, row, frames, strict=True):
                side.parked.remove(each)
                answers.append(PARKED if data is None else side.read(each, data))
            if not self._judge(row[0].number, row[0].step, answers, True):
                return False

    def _parked_rows(self) -> list[list[Sent]]:
        numbers = [each.number for each in self.sides[0].parked]
        rows = [
            [next((s for s in side.parked if s.number == number), None) for side in self.sides] for number in numbers
        ]
        return [[each for each in row if each is not None] for row in rows if None not in row]

    def _arrived(self, rows: list[list[Sent]], seconds: float) -> tuple[list[Sent], list[bytes | None]] | None:
        end = time.monotonic() + seconds
        while True:
            for row in rows:
                frames = [each.link.take() for each in row]
                if any(data is not None for data in frames):
                    return row, frames
            left = end - time.monotonic()
            links = [each.link for row in rows for each in row if each.link.fileno() >= 0]
            if left <= 0 or not links:
                return None
            wait_for_any(links, left)

    def _judge(self, number: int, step: Values, answers: list[Values], late: bool) -> bool:
        """Compare, explain, count. Answers whether the case goes on."""
        kafka, momus = answers
        outcome = self.outcome
        outcome.answers.append(Answered(number, late, kafka, momus))
        if kafka == momus:
            return True
        if self.tainted & self._names(step):
            return True  # a parked request of what is different already
        unexplained, is_apart = [], False
        for each in differences(kafka, momus):
            rule = self.allow.rule_for(step, each, kafka, momus, late, self.steps)
            if rule is None:
                unexplained.append(each)
                continue
            outcome.explained[rule.name] = outcome.explained.get(rule.name, 0) + 1
            if rule.is_open:
                outcome.open.append(Finding(rule.name, number, step, [each], late))
            is_apart = is_apart or (rule.stop and step["api"] not in READS) or "parked" in kafka or "parked" in momus
        if unexplained:
            kind = class_of(step["api"], unexplained[0], late)
            outcome.findings.append(Finding(kind, number, step, unexplained[:8], late))
            if step["api"] not in READS or late:
                is_apart = True
        if is_apart:
            names = self._names(step)
            self.tainted |= names
            if not names:
                return False
        return len(outcome.findings) < MOST_FINDINGS
