"""What the generators share: the case under construction, weighted choices, references to earlier answers, odd
names."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, TypeVar

from differential.plain import Plain, Values, versions

T = TypeVar("T")
Chance = Sequence[tuple[T, float]]

TIME: Final = 1_700_000_000_000  # what records are dated with
MAX_INT: Final = 2**31 - 1
TIMEOUT_MS: Final = 8000
PARTITIONS: Final = ((0, 6.0), (1, 3.0), (2, 1.5), (3, 0.5), (-1, 0.3), (99, 0.5))
ODD_NAMES: Final = ("", "%" + "a" * 300, "%ünï-😀", "% ", "%a b", "%x/y", "%nope")
ODD_TOPICS: Final = (*ODD_NAMES, ".", "..", "__consumer_offsets", "__transaction_state", " ", "a" * 300)
FIRST: Final = {"OffsetCommit": 2, "OffsetFetch": 1}  # below that momus answers and Kafka does not
LAST: Final = {"InitProducerId": 5}  # declared, and served by neither, is one more


def said(key: str, plus: int = 0, default: Plain = -1) -> Values:
    """What this broker has said before, see learn.py."""
    return {"$": key, "d": default, **({"+": plus} if plus else {})}


def topic_id(name: str) -> Values:
    """The id of a topic; an id of no topic where it was never made."""
    return said("id:" + name, 0, {"$f": "id", "n": 77})


def data(content: bytes) -> Values:
    """Bytes as a step holds them."""
    return {"$f": "hex", "x": content.hex()}


class Case:
    """Steps, and the randomness they come from."""

    def __init__(self, seed: int) -> None:
        self.rng = random.Random(seed)
        self.steps: list[Values] = []

    # -- chance

    def maybe(self, chance: float) -> bool:
        return self.rng.random() < chance

    def one(self, *choices: T) -> T:
        return self.rng.choice(choices)

    def act(self, *actions: Callable[[], Values]) -> Values:
        """One of some actions, done."""
        return self.rng.choice(actions)()

    def weighted(self, choices: Chance[T]) -> T:
        return self.rng.choices([each for each, _ in choices], [weight for _, weight in choices])[0]

    def count(self, *weights: float) -> int:
        """0, 1, 2...: one weight for each."""
        return self.rng.choices(range(len(weights)), weights)[0]

    def do(self, choices: Mapping[str, float]) -> str:
        return self.rng.choices(list(choices), list(choices.values()))[0]

    def version(self, api: str, least: int = -1, most: int = 1 << 15) -> int:
        """A served version; often the newest."""
        first, last = versions(api)
        first, last = max(first, least, FIRST.get(api, 0)), min(last, most, LAST.get(api, last))
        return last if self.maybe(0.3) else self.rng.randint(first, last)

    def partition(self) -> int:
        return self.weighted(PARTITIONS)

    def odd_topic(self) -> str:
        return self.rng.choice(ODD_TOPICS)

    # -- steps

    def add(
        self, api: str, version: int, body: Values, link: str = "a", label: str | None = None, **more: Any
    ) -> Values:
        """A request on a connection; its answer is kept under the label."""
        step: Values = {"api": api, "v": version, "c": link, "b": body, **more}
        if label:
            step["as"] = label
        self.steps.append(step)
        return step

    def pass_time(self, ms: int) -> None:
        self.steps.append({"do": "pass", "ms": ms})

    def restart(self) -> None:
        self.steps.append({"do": "restart"})

    def has(self, api: str) -> bool:
        return any(step.get("api") == api for step in self.steps)

    def topics(self, names: Mapping[str, int], configs: Mapping[str, str] | None = None) -> Values:
        """Make topics, the last of them with configs."""
        rows = [{"Name": name, "NumPartitions": count, "ReplicationFactor": 1} for name, count in names.items()]
        rows[-1]["Configs"] = [{"Name": key, "Value": value} for key, value in (configs or {}).items()]
        return self.add("CreateTopics", 7, {"Topics": rows, "TimeoutMs": TIMEOUT_MS})


class Mix:
    """Weighted actions of one profile, each of which adds steps to the case. `odds` damages some of their requests."""

    def __init__(self, case: Case, odds: float = 0.06) -> None:
        self._case = case
        self._odds = odds
        self._actions: list[Callable[[], Values | None]] = []
        self._weights: list[float] = []

    def action(self, weight: float, function: Callable[[], Values | None]) -> None:
        """An action that answers the step to damage now and then; None: none."""
        if weight > 0:
            self._actions.append(function)
            self._weights.append(weight)

    def run(self, count: int) -> None:
        from differential.generate.damage import damage

        for _ in range(count):
            step = self._case.rng.choices(self._actions, self._weights)[0]()
            if step is not None and step["api"] != "Produce" and self._case.maybe(self._odds):
                damage(self._case, step)
