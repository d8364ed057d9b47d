"""Makes the schedules of a test, the likeliest to find a bug first, and cuts them to a budget."""

from __future__ import annotations

import random
from itertools import chain, islice
from typing import NamedTuple

from momus.explore.classes import LASTING
from momus.explore.happenings import UNTOUCHED
from momus.explore.schedule import Schedule, Step

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from momus.explore.classes import Request
    from momus.explore.happenings import Happening

POSITIONS = {
    "first": 1.0,
    "last": 0.9,
    "second": 0.7,
    "middle": 0.6,
    "other": 0.4,
}  # how likely each is to tell something new
OTHERS = 0.5  # how likely other requests are, beside these
ALL = "all"
PLAIN_RUNS = 3  # without anything that happens, before all others
PLAIN_LIMIT_S = 600.0
HANG_TIMES, HANG_S = 10, 10.0  # a run hangs after so many times the plain one, and so many seconds
SUITE_HANG_TIMES, SUITE_HANG_S = 3, 20.0  # the same for a whole suite, much of which begins its language


class Budget(NamedTuple):
    """How much is run for a test: `seconds` or `schedules`; None: no limit. `pairs`: two things at once, if all else
    is done."""

    seconds: float | None
    schedules: int | None
    pairs: bool

    @classmethod
    def of(cls, text: str) -> Budget:
        """`60s`, `200` or `all`. Errors: ValueError."""
        if text == ALL:
            return cls(None, None, pairs=False)
        digits = text.removesuffix("s")
        if not (digits.isascii() and digits.isdigit() and int(digits)):
            raise ValueError(f"--momus-explore takes a time (60s), a number of schedules (200) or all, not {text!r}")
        return cls(float(digits), None, pairs=True) if text.endswith("s") else cls(None, int(digits), pairs=True)


def singles(
    requests: Iterable[Request], happenings: Sequence[Happening], brokers: int, seed: int = 0
) -> list[Schedule]:
    """All schedules of one step. `brokers`: of each cluster the least. The same seed gives the same list."""
    drawn = random.Random(seed)
    found: list[tuple[float, float, Schedule]] = []
    for request in requests:
        for each in happenings:
            if may_happen(each, request, brokers):
                step = Step(
                    request.api, request.names, request.number, each.kind, tuple(each.words.items()), request.cluster
                )
                likely = each.weight * POSITIONS[request.position] * (1.0 if request.api in LASTING else OTHERS)
                found.append((-likely, drawn.random(), (step,)))
    found.sort(key=lambda each: each[:2])
    return [schedule for _, _, schedule in found]


def pairs(schedules: Sequence[Schedule], seed: int = 0) -> Iterator[Schedule]:
    """Two of them at once, drawn by seed, each pair once; the likeliest first by half."""
    drawn = random.Random(f"pairs {seed}")
    seen: set[tuple[int, int]] = set()
    most = len(schedules) * (len(schedules) - 1) // 2
    while len(seen) < most:
        first, second = sorted((int(len(schedules) * drawn.random() ** 2), int(len(schedules) * drawn.random())))
        if first == second or (first, second) in seen:
            if len(seen) * 2 > most:
                return  # what is left would be looked for too long
            continue
        seen.add((first, second))
        yield schedules[first] + schedules[second]


def queued(schedules: Sequence[Schedule], budget: Budget, seed: int = 0) -> Iterator[Schedule]:
    """All schedules in their order, then pairs of them, as many as the budget's number allows."""
    found = chain(schedules, pairs(schedules, seed) if budget.pairs else ())
    return islice(found, budget.schedules)


def hang_limit_s(plain_s: float) -> float:
    """After how many seconds a run has hung, where a plain one takes so many."""
    return HANG_TIMES * plain_s + HANG_S


def suite_hang_limit_s(plain_s: float) -> float:
    """The same for a run of a whole suite."""
    return SUITE_HANG_TIMES * plain_s + SUITE_HANG_S


def may_happen(each: Happening, request: Request, brokers: int) -> bool:
    """Whether a row of the table fits a request."""
    if each.apis:
        if request.api not in each.apis:
            return False
    elif request.api in UNTOUCHED:
        return False
    met = {
        "member": bool(request.member),
        "group": request.has_group,
        "transactional_id": request.has_transaction,
        "brokers": brokers > 1,
        "open": request.has_transaction and request.is_open,
        "empty": request.has_group and request.group_is_empty,
        "plain": request.producer_id < 0 and not request.has_transaction,
        "first": request.position == "first",
    }
    return all(met[need] for need in each.needs)
