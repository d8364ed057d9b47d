"""Signals that stop a running job, and how many transient failures it retries."""

from __future__ import annotations

import os
import signal
import threading

import pytest

from pipeline.errors import PipelineError
from pipeline.streaming import transient_errors
from pipeline.streaming.stop_signal import StopSignal, stop_on_signals
from pipeline.streaming.transient_errors import TRANSIENT_ERRORS, RetryBudget


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_signal_sets_the_flag_and_ends_a_wait_of_an_hour(number):
    before = signal.getsignal(number)
    with stop_on_signals() as stop:
        os.kill(os.getpid(), number)
        assert stop.wait(3600)
        assert stop.is_set
        assert stop.wait(3600)
    assert signal.getsignal(number) is before


def test_signal_during_a_wait_ends_it():
    with stop_on_signals() as stop:
        sender = threading.Timer(0.05, os.kill, (os.getpid(), signal.SIGTERM))
        sender.start()
        assert stop.wait(3600)
        sender.join()


def test_wait_without_a_signal_ends_in_time():
    assert not StopSignal().wait(0.001)


def test_handlers_come_back_when_the_job_fails():
    before = signal.getsignal(signal.SIGTERM)
    with pytest.raises(PipelineError), stop_on_signals():
        raise PipelineError("no space left")
    assert signal.getsignal(signal.SIGTERM) is before


@pytest.mark.parametrize("failure", TRANSIENT_ERRORS)
def test_transient_failures_are_retried_until_too_many_come_without_progress(failure, monkeypatch):
    monkeypatch.setattr(transient_errors, "MAX_RETRIES", 2)
    budget, error = RetryBudget(), RuntimeError(f"Job aborted: {failure}.\n\tat java")
    assert [budget.allows_retry(error, has_progressed=False) for _ in range(3)] == [True, True, False]
    assert [budget.allows_retry(error, has_progressed=has_progressed) for has_progressed in (True, False, False)] == [
        True,
        True,
        False,
    ]


def test_other_failures_are_not_retried():
    assert not RetryBudget().allows_retry(OSError("no space left"), has_progressed=True)
