"""Ctrl-C in a terminal signals all processes in it: who uses the broker ends in order, and then the broker."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time

import pytest

ENDS_WITHIN_S = 120

TESTS = """
import os, time

def say(word):
    with open("said.part", "w") as file:
        file.write(word)
    os.rename("said.part", "said")

def test_that_is_done(kafka_broker):
    kafka_broker.create_topic("t")

def test_that_is_interrupted(kafka_broker, kafka_process_broker, make_kafka_broker):
    say(f"{kafka_process_broker.pid} {make_kafka_broker().control.address}")
    time.sleep(600)
"""

SCRIPT = """
import os, sys, time
from momus import Broker

with Broker() as broker:
    try:
        print(broker.pid, flush=True)
        time.sleep(600)
    finally:
        broker.create_topic("t")  # it still serves
        print("made", flush=True)
"""


@pytest.fixture(autouse=True)
def _heeds_ctrl_c():
    """What a shell starts in the background ignores SIGINT, and so would all that it starts."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


def is_alive(pid: int) -> bool:
    try:
        with open(f"/proc/{pid}/stat") as stat:
            return stat.read().rsplit(")", 1)[1].split()[0] != "Z"
    except FileNotFoundError:
        return False


def wait_until(holds) -> None:
    end = time.monotonic() + ENDS_WITHIN_S
    while not holds():
        assert time.monotonic() < end, "waited in vain"
        time.sleep(0.02)


def children_of_session(leader: int) -> list[int]:
    """The brokers that a process has started: they name it as their parent, whichever session they are in."""
    found = []
    for name in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{name}/stat") as stat:
                parent = int(stat.read().rsplit(")", 1)[1].split()[1])
        except OSError:
            continue
        if parent == leader:
            found.append(int(name))
    return found


@pytest.mark.parametrize("arguments", [(), ("-n", "1")], ids=["alone", "xdist"])
def test_pytest_that_is_interrupted_exits_with_2_and_keeps_its_summary(tmp_path, arguments):
    (tmp_path / "test_mine.py").write_text(TESTS)
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-p", "no:asyncio", *arguments]
    run = subprocess.Popen(
        command, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, start_new_session=True
    )
    try:
        wait_until((tmp_path / "said").exists)
        started = children_of_session(run.pid)
        os.killpg(run.pid, signal.SIGINT)
        told, _ = run.communicate(timeout=ENDS_WITHIN_S)
    finally:
        run.kill()
        run.wait()
    assert run.returncode == 2, told
    assert "KeyboardInterrupt" in told
    assert "1 passed" in told.splitlines()[-1]
    assert "refused" not in told
    assert started
    wait_until(lambda: not any(map(is_alive, [*started, int((tmp_path / "said").read_text().split()[0])])))


def test_broker_serves_until_the_script_that_is_interrupted_is_done_with_it():
    run = subprocess.Popen(
        [sys.executable, "-c", SCRIPT],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    try:
        pid = int(run.stdout.readline())
        os.killpg(run.pid, signal.SIGINT)
        told, errors = run.communicate(timeout=ENDS_WITHIN_S)
    finally:
        run.kill()
        run.wait()
    assert told == "made\n"
    assert errors.rstrip().endswith("KeyboardInterrupt")
    assert errors.count("Traceback") == 1
    assert not is_alive(pid)


def test_broker_ends_when_all_of_its_starters_session_is_killed():
    run = subprocess.Popen([sys.executable, "-c", SCRIPT], stdout=subprocess.PIPE, text=True, start_new_session=True)
    try:
        pid = int(run.stdout.readline())
        assert os.getsid(pid) == pid != run.pid
    finally:
        os.killpg(run.pid, signal.SIGKILL)
        run.communicate()
    wait_until(lambda: not is_alive(pid))
