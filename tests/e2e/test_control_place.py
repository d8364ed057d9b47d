"""Which broker the control commands mean: by an address or its directory; what they say where there is none."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys

import pytest
from test_control import momus

from momus import Broker

FILE = ".momus-control"


@pytest.fixture(autouse=True)
def in_a_folder_of_its_own(tmp_path, monkeypatch):
    """Without what the machine's environment names."""
    monkeypatch.chdir(tmp_path)
    for name in ("MOMUS_CONTROL", "MOMUS_CONTROL_TOKEN", "MOMUS_DATA_DIR"):
        monkeypatch.delenv(name, raising=False)


def free_address() -> str:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        return f"127.0.0.1:{taken.getsockname()[1]}"


def told(*arguments: str) -> str:
    """What a command that fails says, in one line."""
    done = momus(*arguments)
    assert done.returncode in (1, 2)
    assert "Traceback" not in done.stderr
    return " ".join(done.stderr.split())


def serve(*arguments: str) -> subprocess.Popen[str]:
    """A broker that has said where it is."""
    command = [sys.executable, "-m", "momus", "serve", "--listen", "127.0.0.1:0", *arguments]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert process.stdout.readline().startswith("momus ready ")
    return process


def test_file_of_the_directory_leads_every_command_to_its_broker_and_goes_with_it(tmp_path):
    data = tmp_path / "data"
    process = serve("-d", str(data), "--control", "127.0.0.1:0", "--control-token", "secret")
    try:
        place = data / FILE
        assert place.stat().st_mode & 0o777 == 0o600
        found = json.loads(place.read_text())
        assert process.stdout.readline() == f"momus control {found['address']}\n"
        assert (found["token"], found["pid"]) == ("secret", process.pid)
        assert momus("broker", "list", "-d", str(data)).returncode == 0
        assert momus("broker", "list").returncode == 0  # ./data is where a broker started here has its files
        for command in (["clock", "show"], ["fault", "list"], ["tail", "--once"], ["cluster", "list"]):
            assert momus(*command, "-d", str(data)).returncode == 0, command
        assert "give --control or --data-dir" in told("clock", "show", "-d", str(data), "--control", "127.0.0.1:1")
    finally:
        process.terminate()
        assert process.wait(60) == 0
        process.stdout.close()
    assert not place.exists()


def test_file_that_a_kill_has_left_is_recognized_and_replaced(tmp_path):
    with Broker(data_dir=tmp_path / "data") as broker:
        address = broker.control.address
        broker.kill()
        assert (tmp_path / "data" / FILE).exists()
        words = told("clock", "show", "-d", "data")
        assert f"nothing answers at {address}, which data/{FILE} names: its process has ended" in words
        assert f"momus serve --control {address} -d data" in words
        with Broker(data_dir=tmp_path / "other") as other:  # as if it had got the port
            place = tmp_path / "data" / FILE
            place.write_text(json.dumps({"address": other.control.address, "token": None, "pid": 1}))
            assert "where the broker of another directory answers" in told("clock", "show", "-d", "data")
        broker.start()
        assert momus("clock", "show", "-d", "data").returncode == 0
    (tmp_path / "data" / FILE).write_text("{}")
    process = serve("-d", str(tmp_path / "data"))  # without an endpoint
    try:
        assert not (tmp_path / "data" / FILE).exists()
    finally:
        process.terminate()
        process.wait(60)
        process.stdout.close()


def test_file_stays_in_a_reset_and_is_not_in_snapshots_and_forks(tmp_path):
    with Broker(data_dir=tmp_path / "data") as broker:
        broker.snapshot("before")
        broker.fork(name="fork")
        broker.reset()
        broker.restore("before")
        found = [path.relative_to(tmp_path) for path in tmp_path.rglob(f"{FILE}*")]
        assert [str(path) for path in found] == [f"data/{FILE}"]
        assert momus("clock", "show", "-d", "data").returncode == 0


def test_directory_with_nothing_but_a_file_that_was_left_is_a_new_one(tmp_path):
    data = tmp_path / "data"
    data.mkdir()
    for name in (FILE, f"{FILE}.tmp"):
        (data / name).write_text("{}")
    with Broker(data_dir=data) as broker:
        assert broker.running
    assert not list(data.glob(f"{FILE}*"))


def test_broker_in_memory_leaves_the_file_of_another_one_alone(tmp_path):
    with Broker(data_dir=tmp_path / "data") as broker, Broker(data_dir=tmp_path / "data", flush="memory"):
        found = json.loads((tmp_path / "data" / FILE).read_text())
        assert found["address"] == broker.control.address


@pytest.mark.parametrize("command", [["clock", "show"], ["tail"], ["fault", "list"], ["broker", "stop", "1"]])
def test_commands_without_an_endpoint_name_the_ways_to_give_one(command):
    words = told(*command)
    for each in ("--control HOST:PORT", "MOMUS_CONTROL", "-d DIR", f"./data/{FILE}", "momus serve --control"):
        assert each in words


@pytest.mark.parametrize("command", [["clock", "show"], ["tail"], ["fault", "clear"], ["cluster", "list"]])
def test_commands_to_an_address_where_nothing_is_name_it_and_how_to_start_one(command, monkeypatch):
    address = free_address()
    start = f"`momus serve --control {address}` starts a broker there"
    assert f"nothing answers at {address}, which --control names; {start}" in told(*command, "--control", address)
    monkeypatch.setenv("MOMUS_CONTROL", address)
    assert f"nothing answers at {address}, which MOMUS_CONTROL names; {start}" in told(*command)
    assert os.environ["MOMUS_CONTROL"] == address


def test_directory_without_a_broker_is_told():
    assert f"there is no data/{FILE}: no broker with a control endpoint runs" in told("clock", "show", "-d", "data")
