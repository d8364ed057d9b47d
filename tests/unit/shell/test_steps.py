"""Jobs get a small part of the time of a broker that serves clients, in short steps, and most of an idle one's."""

from types import SimpleNamespace

import pytest

from broker.shell.loop.steps import (
    BUSY_BREAKS,
    BUSY_LEAST_US,
    BUSY_LOOK_S,
    BUSY_MOST_US,
    IDLE_BREAK_S,
    IDLE_WORK_US,
    Steps,
)
from broker.turn.jobs import Jobs

STEP_US = 30


class Loop:
    """A loop whose time moves by the steps of one job and by what the test adds."""

    def __init__(self):
        self.now_us = 1_000_000
        self.requests = 0
        self.begun = 0  # turns that the steps began
        self.jobs = Jobs()
        self.ready = []  # handles
        self.timers = []  # due, handle
        self.worked = []  # when each step began
        clock = SimpleNamespace(monotonic_us=lambda: self.now_us)
        turn = SimpleNamespace(jobs=self.jobs, begin=self.begin, env=SimpleNamespace(clock=clock))
        self.steps = Steps(turn, lambda: self.requests, self.call_soon, self.call_later)

    def begin(self):
        self.begun += 1

    def call_soon(self, call):
        self.ready.append(self.handle(call))
        return self.ready[-1]

    def call_later(self, seconds, call):
        handle = self.handle(call)
        self.timers.append((self.now_us + round(seconds * 1e6), handle))
        return handle

    @staticmethod
    def handle(call):
        made = SimpleNamespace(call=call, is_cancelled=False)
        made.cancel = lambda: setattr(made, "is_cancelled", True)
        return made

    def iterate(self):
        due = [handle for at, handle in self.timers if at <= self.now_us]
        self.timers = [(at, handle) for at, handle in self.timers if at > self.now_us]
        for handle in due:
            handle.is_cancelled or handle.call()
        ready, self.ready = self.ready, []
        for handle in ready:
            handle.is_cancelled or handle.call()

    @property
    def waits(self):
        return [handle for handle in (*self.ready, *(each for _, each in self.timers)) if not handle.is_cancelled]

    def endless_job(self):
        while True:
            self.worked.append(self.now_us)
            self.now_us += STEP_US
            yield

    def serve(self, turns, every_us):
        """Turns with one request each, so many microseconds apart, between which the loop iterates."""
        for _ in range(turns):
            self.requests += 1
            self.steps.turn_ended()
            self.now_us += every_us
            self.iterate()


@pytest.fixture
def loop():
    made = Loop()
    made.jobs.add(made.endless_job())
    return made


@pytest.fixture
def busy(loop):
    loop.serve(200, 100)
    loop.worked.clear()
    return loop


def test_without_jobs_nothing_is_called():
    loop = Loop()
    loop.steps.turn_ended()
    assert not loop.waits
    assert not loop.begun


def test_idle_broker_works_for_two_milliseconds_and_rests_for_one(loop):
    loop.steps.turn_ended()
    began_us = loop.now_us
    for _ in range(3):
        assert len(loop.waits) == 1
        loop.now_us += round(IDLE_BREAK_S * 1e6)
        loop.iterate()
    steps = -(-IDLE_WORK_US // STEP_US)
    assert len(loop.worked) == 3 * steps
    assert loop.begun == 3
    assert loop.now_us - began_us == 3 * (round(IDLE_BREAK_S * 1e6) + steps * STEP_US)


@pytest.mark.parametrize("every_us", [20, 100, 400])
def test_busy_broker_gives_jobs_one_part_in_eleven(busy, every_us):
    began_us = busy.now_us
    busy.serve(5000, every_us)
    part = len(busy.worked) * STEP_US / (busy.now_us - began_us)
    assert 1 / (BUSY_BREAKS + 3) < part < 1 / (BUSY_BREAKS + 0.9)


def test_steps_after_a_turn_are_short_while_turns_are_many(busy):
    longest = 0
    for _ in range(1000):
        count = len(busy.worked)
        busy.serve(1, 100)
        longest = max(longest, len(busy.worked) - count)
    assert longest == 1


def test_few_turns_make_up_for_it_up_to_the_most(busy):
    for every_us, steps in ((2000, 200 // STEP_US + 1), (20_000, BUSY_MOST_US // STEP_US)):
        busy.serve(3, every_us)
        count = len(busy.worked)
        busy.requests += 1
        busy.steps.turn_ended()
        assert len(busy.worked) - count == pytest.approx(steps, abs=1)


def test_time_that_a_long_step_took_too_much_is_paid_back():
    loop = Loop()

    def long_steps():
        while True:
            loop.worked.append(loop.now_us)
            loop.now_us += 5000
            yield

    loop.jobs.add(long_steps())
    loop.serve(5000, 100)
    first, second = loop.worked[1:3]
    assert second - first >= 5000 * BUSY_BREAKS


def test_turn_that_the_steps_began_gives_them_no_more(busy):
    busy.now_us += 10 * BUSY_LEAST_US * BUSY_BREAKS
    busy.steps.turn_ended()
    count = len(busy.worked)
    busy.steps.turn_ended()
    assert len(busy.worked) == count > 0


def test_broker_whose_clients_have_gone_is_idle_again(busy):
    for _ in range(3):
        busy.now_us += round(BUSY_LOOK_S * 1e6)
        busy.iterate()
    assert len(busy.worked) >= IDLE_WORK_US // STEP_US


@pytest.mark.parametrize("state", ["loop", "busy"])
def test_job_that_a_client_waits_for_has_a_step_in_each_iteration(state, request):
    loop = request.getfixturevalue(state)
    loop.steps.turn_ended()  # a timer waits

    def wanted():
        for _ in range(20):
            taken.append(1)
            yield

    taken, job = [], wanted()
    loop.jobs.add(job)
    loop.jobs.hurry(job)
    loop.steps.turn_ended()
    loop.steps.turn_ended()
    assert len(loop.ready) == 1
    for n in range(1, 21):
        loop.iterate()
        assert len(taken) == n
    loop.iterate()
    assert len(loop.waits) == 1
    assert not loop.ready


def test_cancelled_steps_do_not_run(loop):
    loop.steps.turn_ended()
    loop.steps.cancel()
    loop.steps.cancel()
    loop.now_us += 10_000
    loop.iterate()
    assert not loop.worked


def test_client_with_a_request_every_two_milliseconds_never_waits_as_long_as_for_an_idle_brokers_steps(busy):
    longest = 0
    for _ in range(200):
        count = len(busy.worked)
        busy.requests += 1
        busy.steps.turn_ended()
        for _ in range(20):
            busy.now_us += 100
            busy.iterate()
        longest = max(longest, len(busy.worked) - count)
    assert longest * STEP_US < 2 * BUSY_MOST_US


def test_after_the_last_job_nothing_is_called_any_more(busy):
    busy.jobs.drop(busy.jobs.waiting[0])
    busy.now_us += 10_000
    busy.iterate()  # the timer that waited
    busy.iterate()
    begun = busy.begun
    busy.now_us += 10_000
    busy.serve(3, 1000)
    assert not busy.waits
    assert busy.begun == begun
