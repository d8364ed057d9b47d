"""A process that ends by itself, or is killed, says so in each test that it concerns; the next test gets a new one."""

from __future__ import annotations

import os
import re
import signal
import socket

import pytest

from momus import Broker
from momus.cluster import Keeper
from momus.control import BrokerDiedError
from momus.kit.fixture_process import find_shared
from momus.kit.shared_process import SharedProcess

pytest_plugins = ["pytester"]
WORDS = r"momus \(pid \d+\) was ended by signal 9; the end of its log: "

TESTS = """
from conftest import kill
import socket
import pytest

def test_that_asks_by_its_handle(kafka_broker):
    kill()
    kafka_broker.create_topic("t")

def test_that_has_a_client(kafka_broker):
    assert kafka_broker.control.ask("GET", "/healthz") == {"status": "ok"}
    kill()
    host, port = kafka_broker.bootstrap_servers.split(":")
    with pytest.raises(OSError):
        while True:
            socket.create_connection((host, int(port))).close()

def test_that_is_next(kafka_broker):
    kafka_broker.create_topic("t")
"""

CONFTEST = """
import os, signal
from momus.kit.process import Broker

start = Broker.start

def note(self):
    started = start(self)
    with open(os.environ["PIDS"], "a") as file:
        file.write(f"{self.pid}\\n")
    return started

Broker.start = note

def kill():
    pid = int(open(os.environ["PIDS"]).read().split()[-1])
    os.kill(pid, signal.SIGKILL)
    # Until it has ended with all its threads: before that nobody can wait for it.
    while ") Z" not in open(f"/proc/{pid}/stat").read() or len(os.listdir(f"/proc/{pid}/task")) > 1:
        pass
"""

SHARED = """
from conftest import kill

def test_that_is_fine(kafka_broker_session):
    kafka_broker_session.create_topic("t")

def test_whose_process_is_killed(kafka_broker_session):
    kill()

def test_after_it(kafka_broker_session):
    raise AssertionError("it must not run")
"""


@pytest.fixture
def project(pytester, monkeypatch):
    """A project whose tests know the process; a function runs pytest in it."""
    monkeypatch.setenv("PIDS", str(pytester.path / "pids"))
    pytester.makeconftest(CONFTEST)

    def run(tests, *arguments):
        pytester.makepyfile(tests)
        return pytester.runpytest_subprocess("-p", "no:cacheprovider", "-p", "no:asyncio", "-q", *arguments)

    return run


@pytest.mark.parametrize("arguments", [(), ("-n", "1")], ids=["alone", "xdist"])
def test_killed_process_is_named_in_each_test_and_the_next_one_gets_a_new_one(project, arguments):
    done = project(TESTS, *arguments)
    done.assert_outcomes(failed=1, errors=2, passed=2)
    text = done.stdout.str()
    assert len(re.findall("^E? *(BrokerDiedError: |momus.control.BrokerDiedError: )?" + WORDS, text, re.MULTILINE)) >= 3
    assert "refused" not in "\n".join(line for line in text.splitlines() if line.startswith("FAILED"))
    assert len(set(re.findall(r"momus \(pid (\d+)\)", text))) == 2


def test_tests_that_share_a_cluster_are_told_that_its_process_has_ended(project):
    done = project(SHARED)
    done.assert_outcomes(passed=2, failed=1, errors=1)
    assert len(re.findall(WORDS, done.stdout.str())) >= 2
    assert "it must not run" not in done.stdout.str()


def test_broker_that_was_killed_says_so_until_it_is_started_again():
    with Broker(log_level="info") as broker:
        pid, clock = broker.pid, broker.clock
        host, port = broker.bootstrap_servers.split(":")
        with socket.create_connection((host, int(port))) as stranger:
            stranger.sendall(b"\xff" * 8)
            assert stranger.recv(1) == b""  # it logs why it closes this
        os.kill(pid, signal.SIGKILL)
        words = f"(?s)^momus .pid {pid}. was ended by signal 9; the end of its log: .*closing connection"
        with pytest.raises(BrokerDiedError, match=words):
            clock.now()
        with pytest.raises(BrokerDiedError, match=f"pid {pid}"):
            broker.create_topic("t")
        assert broker.start().death() is None
        broker.create_topic("t")
        broker.kill()
        assert broker.death() is None  # as it was told to


def test_broker_that_ended_with_an_exit_code_says_so():
    with Broker() as broker:
        os.kill(broker.pid, signal.SIGTERM)
        broker._process.wait(60)
        assert broker.death() == f"momus (pid {broker.pid}) ended with exit code 0; the end of its log: (it is empty)"


def test_workers_of_one_controller_are_told_and_share_the_next_process():
    shared = SharedProcess("warning")
    try:
        first, second = find_shared(shared.address), find_shared(shared.address)
        control = first.find(Keeper())
        assert second.find(Keeper()).address == control.address
        os.kill(shared._brokers[-1].pid, signal.SIGKILL)
        for worker in (first, second):
            with pytest.raises(BrokerDiedError, match=WORDS):
                worker.find(Keeper()).ask("GET", "/healthz")
            assert re.match(WORDS, worker.news())
            assert worker.news() is None
        again = first.find(Keeper())
        assert again.address == second.find(Keeper()).address != control.address
        assert again.ask("GET", "/healthz") == {"status": "ok"}
        assert re.match(WORDS, first.death_of(control.address))
    finally:
        shared.close()
