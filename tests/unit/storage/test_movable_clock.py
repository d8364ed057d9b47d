"""The clock that may be moved forward, and stand."""

from __future__ import annotations

import pytest

from storage.clock.manual_clock import ManualClock
from storage.clock.movable_clock import MovableClock


def test_clock_runs_with_the_other_until_it_is_moved():
    real = ManualClock(1000)
    clock = MovableClock(real)
    real.advance(5)
    assert clock.now_ms() == 1005
    clock.advance(100)
    real.advance(5)
    assert (clock.now_ms(), clock.monotonic_ms()) == (1110, real.monotonic_ms())


def test_waits_move_with_the_clock_and_not_with_steps_of_the_machines_clock():
    real = ManualClock(1000)
    clock = MovableClock(real)
    real.step(5000)
    assert (clock.now_ms(), clock.steady_ms()) == (6000, 1000)
    clock.advance(100)
    real.advance(1)
    assert (clock.now_ms(), clock.steady_ms()) == (6101, 1101)
    clock.stand(7000)
    real.step(-9000)
    real.advance(10)
    clock.advance(5)
    assert (clock.now_ms(), clock.steady_ms()) == (7005, 2005)
    clock.resume()
    real.advance(3)
    assert (clock.now_ms(), clock.steady_ms()) == (7008, 2008)


def test_clock_that_stands_moves_when_told_and_runs_on_from_there():
    real = ManualClock(1000)
    clock = MovableClock(real)
    clock.stand(2000)
    real.advance(300)
    assert clock.now_ms() == 2000
    clock.advance(50)
    assert clock.now_ms() == 2050
    clock.resume()
    real.advance(7)
    assert clock.now_ms() == 2057
    clock.resume()
    assert clock.now_ms() == 2057


def test_clock_that_stood_while_the_other_passed_it_goes_on_from_where_it_stood():
    real = ManualClock(1000)
    clock = MovableClock(real)
    clock.stand(1000)
    real.advance(60_000)
    clock.resume()
    assert clock.now_ms() == 1000


def test_clock_does_not_go_back():
    clock = MovableClock(ManualClock(1000))
    with pytest.raises(AssertionError, match="backwards"):
        clock.advance(-1)
    clock.stand(999)
    assert (clock.now_ms(), clock.steady_ms()) == (1000, 1000)


@pytest.mark.parametrize("at_ms", [0, 1000, 1003])
def test_clock_that_ticks_at_each_look_can_be_stood_still(at_ms):
    """Freezing read the time twice, and failed where a millisecond lay between."""
    real = ManualClock(1000)
    clock = MovableClock(Ticking(real))
    clock.stand(at_ms)
    assert clock.now_ms() == clock.now_ms() == max(at_ms, 1001)


class Ticking:
    """Another clock, a millisecond later at each look."""

    def __init__(self, clock: ManualClock) -> None:
        self._clock = clock

    def __getattr__(self, name):
        def look():
            self._clock.advance(1)
            return getattr(self._clock, name)()

        return look


def test_waits_of_fetches_go_on_while_the_clock_stands_and_never_jump():
    real = ManualClock(1000)
    clock = MovableClock(real)
    real.advance(5)
    assert clock.wait_ms() == 1005
    clock.stand(2000)
    assert clock.wait_ms() == 2000
    real.advance(300)
    clock.advance(50)
    assert (clock.steady_ms(), clock.wait_ms()) == (2050, 2350)
    clock.stand()  # once more: what has passed stays passed
    real.advance(10)
    clock.resume()
    assert (clock.steady_ms(), clock.wait_ms()) == (2050, 2360)
    real.advance(7)
    clock.advance(100)
    assert (clock.steady_ms(), clock.wait_ms()) == (2157, 2467)
    clock.stand()
    real.advance(3)
    assert (clock.steady_ms(), clock.wait_ms()) == (2157, 2470)


def test_waits_of_fetches_stand_with_the_clock_where_that_is_asked_for_until_they_are_passed():
    real = ManualClock(1000)
    clock = MovableClock(real, 9000, waits_pass=False)
    real.advance(300)
    assert (clock.steady_ms(), clock.wait_ms()) == (9000, 9000)
    clock.pass_waits(20)
    assert (clock.steady_ms(), clock.wait_ms()) == (9000, 9020)
    clock.resume()
    real.advance(1)
    assert (clock.steady_ms(), clock.wait_ms()) == (9001, 9021)


def test_clock_that_is_made_to_stand_counts_waits_from_then_on():
    real = ManualClock(1000)
    real.advance(500)
    clock = MovableClock(real, 9000)
    assert clock.wait_ms() == 9000
    real.advance(4)
    assert clock.wait_ms() == 9004
