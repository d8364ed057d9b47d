"""The loop stays awake for a moment after a turn, but only where that is worth it."""

import os
import subprocess
import sys

import pytest

from broker.shell.loop.spin import LOOK_US, MOST_TRUST, TURNS_A_TRIAL, Spin

ITERATION_US = 5
LOOKS = LOOK_US // ITERATION_US


class Loop:
    """Calls what is due in the next iteration, which takes 5 µs, and counts the iterations."""

    def __init__(self, processors=2):
        self.ready = []
        self.now_us = 0
        self.spin = Spin(self.ready.append, lambda: self.now_us, processors)

    def iterate(self):
        calls, self.ready[:] = self.ready[:], []
        self.now_us += ITERATION_US
        for call in calls:
            call()

    def run_dry(self):
        """Iterations until the loop would sleep."""
        count = 0
        while self.ready:
            self.iterate()
            count += 1
        return count

    def trusted(self):
        """A client that always asks again in time."""
        for _ in range(TURNS_A_TRIAL + MOST_TRUST + 1):
            self.spin.turn_ended()
            self.iterate()
        self.run_dry()


def test_spin_with_requests_far_apart_looks_after_one_turn_of_sixteen():
    loop = Loop()
    looks = []
    for _ in range(3 * TURNS_A_TRIAL):
        loop.spin.turn_ended()
        looks.append(loop.run_dry())
    assert [at for at, count in enumerate(looks, 1) if count] == [16, 32, 48]
    assert set(looks) == {0, LOOKS}


def test_spin_with_a_client_that_asks_again_at_once_looks_after_every_turn():
    loop = Loop()
    loop.trusted()
    loop.spin.turn_ended()
    assert loop.run_dry() == LOOKS


def test_spin_after_a_turn_it_saw_begins_to_look_anew_once():
    loop = Loop()
    loop.trusted()
    loop.spin.turn_ended()
    for _ in range(LOOKS - 1):
        loop.iterate()
    loop.spin.turn_ended()
    assert len(loop.ready) == 1
    assert loop.run_dry() == LOOKS


def test_spin_that_is_never_answered_stops_after_as_many_as_it_trusts():
    loop = Loop()
    loop.trusted()
    looks = []
    for _ in range(MOST_TRUST):
        loop.spin.turn_ended()
        looks.append(loop.run_dry())
    assert looks == [LOOKS] * (MOST_TRUST - 1) + [0]


def test_spin_at_rest_leaves_the_loop_asleep():
    loop = Loop()
    loop.trusted()
    assert loop.run_dry() == 0


def test_spin_while_others_need_the_processor_stops_at_once():
    loop = Loop()
    loop.trusted()
    loop.spin.turn_ended()
    loop.now_us += 2000
    loop.spin.turn_ended()  # it came while we looked, and waited for the processor
    loop.run_dry()
    loop.spin.turn_ended()
    assert loop.run_dry() == 0


def test_spin_with_one_processor_never_looks():
    loop = Loop(processors=1)
    loop.trusted()
    for _ in range(TURNS_A_TRIAL):
        loop.spin.turn_ended()
        assert loop.ready == []


@pytest.mark.heavy
@pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="the system does not let a process choose")
def test_processors_are_those_that_the_process_may_use():
    code = "import os; os.sched_setaffinity(0, {min(os.sched_getaffinity(0))}); from broker.shell.loop.spin import *; "
    done = subprocess.run([sys.executable, "-c", code + "print(usable_processors())"], capture_output=True, check=True)
    assert done.stdout.strip() == b"1"
