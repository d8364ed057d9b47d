"""SIGTERM and SIGINT end a job's sleep and set a flag, and nothing else."""

from __future__ import annotations

import os
import select
import signal
from typing import Any

import pytest

from pipeline.streaming import stop_signal
from pipeline.streaming.stop_signal import StopSignal, stop_on_signals

FOREVER_S = 100_000.0
pytestmark = pytest.mark.timeout(60)  # of a sleep that nothing ends


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_signal_ends_a_sleep_and_says_so(number, monkeypatch):
    sleep, before = select.select, signal.getsignal(number)

    def signalled(*args: Any) -> Any:
        os.kill(os.getpid(), number)  # after the look at the flag
        return sleep(*args)

    monkeypatch.setattr(stop_signal.select, "select", signalled)
    with stop_on_signals() as stop:
        assert not stop.is_set
        assert stop.wait(FOREVER_S)
        assert stop.is_set
        assert stop.wait(FOREVER_S)  # from then on nobody sleeps
    assert signal.getsignal(number) == before


def test_sleep_without_a_signal_ends_with_its_time():
    with stop_on_signals() as stop:
        assert not stop.wait(0)
        assert not stop.wait(0.001)


def test_any_number_of_signals_is_taken_without_waiting():
    stop = StopSignal()
    for _ in range(70_000):  # a pipe holds 65,536 bytes
        stop.set()
    assert stop.wait(FOREVER_S)
    stop.close()


def test_pipe_of_a_stopped_job_is_closed():
    def opened() -> int:
        return len(os.listdir("/proc/self/fd"))

    before = opened()
    for _ in range(3):
        with stop_on_signals():
            pass
    assert opened() == before
