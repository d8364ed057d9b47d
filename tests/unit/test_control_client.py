"""The control endpoint from Python: what a broker's answer becomes."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from momus.control import Clock, Control, ControlError


class Answering(Control):
    """A broker that gives one answer to everything."""

    def __init__(self, answer: object) -> None:
        self.answer = answer
        self.prefix = "/_admin"

    def ask(self, method: str, path: str, body: object = None) -> object:
        return self.answer


@pytest.mark.parametrize(
    "move", [lambda clock: clock.advance(days=8), lambda clock: clock.set(datetime(2026, 1, 31, tzinfo=UTC))]
)
def test_clock_that_has_moved_with_work_left_undone_is_an_error(move):
    move(Clock(Answering({"now_ms": 1, "stands": False, "settled": True})))
    with pytest.raises(ControlError, match="the clock has moved, but not all"):
        move(Clock(Answering({"now_ms": 1, "stands": False, "settled": False})))
