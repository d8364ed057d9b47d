"""Two registries that are asked the same, and the first thing in which they differ."""

from __future__ import annotations

import random
from collections import Counter
from typing import Any, NamedTuple, Protocol

from answers import Answer
from explained import REASONS, Reason, in_one_form
from step import Step


class Registry(Protocol):
    """One of them during one sequence."""

    def begin(self, word: str) -> None:
        """Begin a sequence, in which `@U` stands for a word."""

    def ask(self, method: str, path: str, body: Any) -> Answer:
        """The answer to a step."""


class Difference(NamedTuple):
    """The first step of a sequence whose answers differ without a reason, or with one that ends it."""

    steps: list[Step]
    theirs: Answer
    ours: Answer
    reason: Reason | None

    @property
    def kind(self) -> str:
        """What tells it from others: which request, and how it was answered."""
        step = self.steps[-1]
        words = [each for each in step.path.partition("?")[0].split("/") if each and "@" not in each]
        codes = [
            (each.body or {}).get("error_code") if isinstance(each.body, dict) else None
            for each in (self.theirs, self.ours)
        ]
        return f"{step.method} {'/'.join(words[:2])} {self.theirs.status}/{codes[0]} {self.ours.status}/{codes[1]}"


class Pair:
    """The two registries."""

    def __init__(self, confluent: Registry, momus: Registry) -> None:
        self._lines = (confluent, momus)
        self._words = random.SystemRandom()
        self.reasons: Counter[str] = Counter()
        self.steps = 0

    def difference(self, steps: list[Step]) -> Difference | None:
        """Ask both a sequence. Returns what differs; None: nothing, but for what has a reason."""
        word = f"u{self._words.getrandbits(32):08x}"
        for line in self._lines:
            line.begin(word)
        for number, step in enumerate(steps, 1):
            self.steps += 1
            theirs, ours = (line.ask(*step) for line in self._lines)
            one, other = in_one_form(step, theirs, ours)
            if one != other:
                reason = next((each for each in REASONS if each.applies(steps[:number], theirs, ours)), None)
                if reason is None or reason.ends:
                    return Difference(steps[:number], theirs, ours, reason)
                self.reasons[reason.name] += 1
        return None

    def shortened(self, found: Difference) -> Difference:
        """The same difference after as few steps as will do."""
        at = len(found.steps) - 2
        while at >= 0:
            tried = self.difference(found.steps[:at] + found.steps[at + 1 :])
            if tried is not None and tried.kind == found.kind and tried.reason is None:
                found = tried
            at = min(at, len(found.steps) - 1) - 1
        return found
