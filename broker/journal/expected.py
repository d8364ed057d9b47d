"""How often a test expects requests to come, and the sentence where they did not.

An expectation outlives resets and restores: what the journal had seen before it began again is added to it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

# Filters for which all of a request or reply is needed.
DECODED: Final = ("group", "topic", "transactional_id", "error")
NEAR: Final = 10  # misses that are shown


class LimitsError(ValueError):
    """No number of requests is what is asked for."""


class Expected:
    """Requests that fit filters are to come `low` times or more, and `high` times at most (None: any number)."""

    __slots__ = ("before", "filters", "high", "low", "past")

    def __init__(
        self, filters: Mapping[str, str], times: int | None, at_least: int | None, at_most: int | None
    ) -> None:
        """Errors: LimitsError."""
        if times is not None:
            if at_least is not None or at_most is not None:
                raise LimitsError("give times, or at_least and at_most")
            at_least = at_most = times
        self.filters = dict(filters)
        self.low = at_least if at_least is not None else 1 if at_most is None else min(1, at_most)
        self.high = at_most
        if self.low < 0 or (at_most is not None and at_most < self.low):
            raise LimitsError(f"no number of requests is {self.low} or more and {at_most} or less")
        self.before = 0  # how many came before the journal began again
        self.past: list[str] = []  # why these may not be all

    def begin_anew(self, seen: Mapping[str, Any]) -> None:
        """The journal is emptied; `seen`: what it said of these requests at the end."""
        self.before += seen["fitting"]
        self.past += [f"before the journal began again: {sentence}" for sentence in self._unknown(seen)]

    def count(self, seen: Mapping[str, Any]) -> int:
        """How many came, as far as is known."""
        return self.before + int(seen["fitting"])

    def is_met(self, seen: Mapping[str, Any]) -> bool:
        """Whether as many came as expected, and, with an upper limit, surely no more."""
        return self._is_within(seen) and (self.high is None or not (self.past or self._unknown(seen)))

    def lacks(self, seen: Mapping[str, Any]) -> bool:
        """Whether too few came: then it is of use to see what came near."""
        return self.count(seen) < self.low

    def sentence(self, seen: Mapping[str, Any], lines: Iterable[str]) -> str:
        """Why it is not met. `lines`: what came near, or where too many came, the last of them."""
        is_within, came = self._is_within(seen), self.count(seen)
        shown = " ".join(f"{key}={value}" for key, value in self.filters.items()) or "a request"
        times = f"{came} time{'' if came == 1 else 's'}{' as far as is known' if is_within else ''}"
        told = [f"{shown} came {times}, expected {self._words}"]
        if self.before:
            told.append(f"{self.before} of them before the journal began again")
        if is_within or self.lacks(seen):
            told += [*self.past, *self._unknown(seen)]
        return "\n  ".join([*told, *(() if is_within else lines)])

    def _is_within(self, seen: Mapping[str, Any]) -> bool:
        return self.count(seen) >= self.low and (self.high is None or self.count(seen) <= self.high)

    @property
    def _words(self) -> str:
        if self.high is None:
            return f"{self.low} or more"
        return f"exactly {self.low}" if self.low == self.high else f"{self.low} to {self.high}"

    def _unknown(self, seen: Mapping[str, Any]) -> list[str]:
        """A sentence for each reason why there may be more such requests than the journal has, and what to do."""
        if not seen["bytes"]:
            return ["the journal is off: turn it on with journal.keep() or journal_mb"]
        told = []
        if seen["dropped"]:
            told.append("older requests had to make room: keep more with journal.keep(mb) or a larger journal_mb")
        if seen["undecided"]:
            words = " and ".join(key for key in self.filters if key in DECODED)
            told.append(
                f"{seen['undecided']} more may be such: above 4 kB only the first bytes of a request or reply are kept,"
                f" and a Fetch of a session names topics once, maybe before the journal began; these do not tell"
                f" {words}; ask without {words}, or for one api, or let clients send less at once"
            )
        return told
