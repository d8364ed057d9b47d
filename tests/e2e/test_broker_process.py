"""momus.Broker: a subprocess that starts, says where it listens, and never outlives who started it."""

from __future__ import annotations

import os
import resource
import signal
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from momus import Broker, BrokerError

ENDS_WITHIN_S = 60


def reachable(address: str) -> bool:
    host, port = address.rsplit(":", 1)
    try:
        socket.create_connection((host, int(port)), timeout=5).close()
    except OSError:
        return False
    return True


def alive(pid: int) -> bool:
    try:
        with open(f"/proc/{pid}/stat") as stat:
            return stat.read().rsplit(")", 1)[1].split()[0] != "Z"
    except FileNotFoundError:
        return False


def wait_until(holds, limit_s: float = ENDS_WITHIN_S) -> None:
    end = time.monotonic() + limit_s
    while not holds():
        assert time.monotonic() < end, "waited in vain"
        time.sleep(0.02)


def test_broker_in_a_with_block_serves_and_leaves_nothing_behind():
    with Broker() as broker:
        assert reachable(broker.bootstrap_servers)
        assert broker.get_bootstrap_server() == broker.bootstrap_servers
        pid, folder = broker.pid, Path(broker._temporary)
        assert folder.exists()
    assert not alive(pid)
    assert not folder.exists()


async def test_broker_in_an_async_with_block_serves():
    async with Broker() as broker:
        assert reachable(broker.bootstrap_servers)
    assert not broker.running


def test_broker_that_is_stopped_ends_in_order(broker):
    assert broker.stop() == 0


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_broker_that_gets_a_signal_exits_0(broker, number):
    process = broker._process
    os.kill(process.pid, number)
    assert process.wait(ENDS_WITHIN_S) == 0


@pytest.mark.parametrize("end", ["stop", "kill"])
def test_broker_started_again_has_its_address_and_its_data(broker, end):
    address = broker.bootstrap_servers
    getattr(broker, end)()
    assert not broker.running
    assert not reachable(address)
    broker.start()
    assert broker.bootstrap_servers == address
    assert reachable(address)


def test_broker_started_again_waits_for_its_port(broker):
    address = broker.bootstrap_servers
    broker.kill()
    host, port = address.rsplit(":", 1)
    taken = socket.create_server((host, int(port)))  # as the other end of some connection may have it for a moment
    threading.Timer(1, taken.close).start()
    broker.start()
    assert broker.bootstrap_servers == address
    assert reachable(address)


def test_broker_restarted_has_a_new_process(broker):
    pid = broker.pid
    broker.restart()
    assert broker.pid != pid
    assert reachable(broker.bootstrap_servers)


def test_broker_keeps_a_data_directory_that_was_given(tmp_path):
    with Broker(data_dir=tmp_path / "data"):
        pass
    assert (tmp_path / "data").is_dir()


def test_several_brokers_in_one_process_have_an_address_each():
    with Broker(brokers=3) as broker:
        addresses = broker.bootstrap_servers.split(",")
        assert len(set(addresses)) == 3
        assert all(map(reachable, addresses))
        broker.restart()
        assert broker.bootstrap_servers.split(",") == addresses


def test_second_broker_on_one_data_directory_is_refused_by_name(tmp_path):
    with (
        Broker(data_dir=tmp_path),
        pytest.raises(BrokerError, match="exit code 1") as refused,
        Broker(data_dir=tmp_path),
    ):
        pass
    assert str(tmp_path) in str(refused.value)
    assert "Traceback" not in str(refused.value)


def test_busy_port_is_refused_by_name():
    with Broker() as first, pytest.raises(BrokerError, match="exit code 1") as refused:
        Broker(listen=first.bootstrap_servers).start()
    assert first._addresses == []
    assert "Traceback" not in str(refused.value)


def test_unstarted_broker_has_no_address():
    with pytest.raises(BrokerError, match="not been started"):
        _ = Broker().bootstrap_servers


def test_client_config_speaks_each_clients_words(broker):
    address = broker.bootstrap_servers
    assert broker.client_config("aiokafka") == {
        "bootstrap_servers": address,
        "security_protocol": "PLAINTEXT",
    }
    assert broker.client_config("java")["bootstrap.servers"] == address
    assert broker.client_config("spark")["kafka.bootstrap.servers"] == address
    with pytest.raises(ValueError, match="kafka-python"):
        broker.client_config("kcat")


STARTER = """
import os, sys, time
from momus import Broker
broker = Broker().start()
if {fork}:
    if os.fork() == 0:
        time.sleep(600)  # a child that outlives us holds our end of every pipe
        os._exit(0)
print(broker.pid, broker._temporary, flush=True)
time.sleep(600)
"""


@pytest.mark.parametrize("fork", [False, True], ids=["alone", "with a forked child"])
def test_broker_ends_when_its_starter_is_killed(fork):
    starter = subprocess.Popen(
        [sys.executable, "-c", STARTER.format(fork=fork)], stdout=subprocess.PIPE, start_new_session=True
    )
    try:
        pid, folder = starter.stdout.readline().decode().split()
        starter.kill()
        starter.wait()
        wait_until(lambda: not alive(int(pid)))
        wait_until(lambda: not os.path.exists(folder))
    finally:
        os.killpg(starter.pid, signal.SIGKILL) if fork else None
        starter.kill()
        starter.wait()
        starter.stdout.close()


def test_broker_nobody_closed_is_gone_when_the_interpreter_ends():
    code = "from momus import Broker; b = Broker().start(); print(b.pid, b._temporary)"
    pid, folder = subprocess.check_output([sys.executable, "-c", code], text=True, timeout=120).split()
    wait_until(lambda: not alive(int(pid)))
    assert not os.path.exists(folder)


def test_starting_takes_no_more_work_than_a_few_interpreters(broker):
    def work_s(start) -> float:
        """What a child of ours took of the processor, which does not depend on who else wants it."""
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        start()
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        return after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime

    def start_broker() -> None:
        broker.start()
        broker.kill()

    def start_interpreter() -> None:
        subprocess.run([sys.executable, "-I", "-c", "import asyncio"], check=True, timeout=60)

    broker.kill()
    # A broker takes twice the work of an interpreter with a loop; this guards against an order of magnitude.
    assert min(work_s(start_broker) for _ in range(3)) < 10 * min(work_s(start_interpreter) for _ in range(3))


@pytest.mark.parametrize("brokers", [0, -1, 101, None])
def test_number_of_brokers_that_cannot_be_is_told_in_a_sentence(brokers):
    with pytest.raises(ValueError, match=f"^brokers={brokers}: a cluster has 1 to 100 virtual brokers$"):
        Broker(brokers=brokers)


@pytest.mark.parametrize("journal_mb", [-1, 4097])
def test_size_of_a_journal_that_cannot_be_is_told_in_a_sentence(journal_mb):
    with pytest.raises(ValueError, match=f"^journal_mb={journal_mb}: a journal has 0 to 4096 MB$"):
        Broker(journal_mb=journal_mb)
