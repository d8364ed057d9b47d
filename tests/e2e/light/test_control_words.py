"""What the commands at the control endpoint do, print and refuse; run in this process, against one broker."""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import ExitStack, closing
from typing import Any

import pytest
from cluster_kit import Wire
from core_requests import first_heartbeat
from momus_command import Done, run_momus

from momus import Broker

Run = Callable[..., str]


@pytest.fixture
def at(trio: Broker) -> Callable[..., Done]:
    """Runs a command at the broker's endpoint."""
    return lambda *words: run_momus(*words, "--control", trio.control.address)


@pytest.fixture
def good(at: Callable[..., Done]) -> Run:
    """Runs a command that succeeds; what it prints."""

    def run(*words: str) -> str:
        done = at(*words)
        assert (done.returncode, done.stderr) == (0, "")
        return done.stdout

    return run


@pytest.fixture
def refused(at: Callable[..., Done]) -> Run:
    """Runs a command that fails; its exit code and its last line."""

    def run(*words: str) -> str:
        done = at(*words)
        assert done.stdout == ""
        return f"{done.returncode} {done.stderr.splitlines()[-1]}"

    return run


# ---- fault


@pytest.fixture
def faults(trio: Broker):
    yield trio.faults
    trio.faults.clear()


def test_fault_of_words_is_set_listed_and_removed(good, faults):
    words = ("api=OffsetCommit,Fetch", "version=3-5", "group=g", "times=2", "name=mine")
    assert good("fault", "set", "hold", *words) == "mine\n"
    assert good("fault", "list") == (
        "mine  hold  when=after api=['OffsetCommit', 'Fetch'] version=[3, 5] group=g trigger={'times': 2}"
        "  met 0 times, acted 0, keeps 0\n"
    )
    assert json.loads(good("fault", "list", "--json")) == faults.list()
    assert good("fault", "release", "mine") == "released 0\n"
    assert good("fault", "remove", "mine") == "removed mine\n"
    assert good("fault", "list") == ""


def test_numbers_of_a_fault_are_read_by_the_type_of_its_field(good, faults):
    words = ("api=Fetch", "error=NOT_COORDINATOR", "with_probability=0.5", "seed=7", "partition=1", "version=4")
    good("fault", "set", "inject_error", *words)
    (found,) = faults.list()
    assert (found["trigger"], found["partition"], found["version"]) == (
        {"with_probability": 0.5, "seed": 7},
        1,
        [4, 4],
    )


def test_file_of_faults_is_loaded_and_all_are_cleared(good, faults, tmp_path):
    file = tmp_path / "faults.json"
    file.write_text('[{"fault": "hold", "api": ["Fetch"], "name": "a"}, {"fault": "slow_disk", "ms": 0, "name": "b"}]')
    assert good("fault", "load", str(file)) == "a\nb\n"
    assert [each["name"] for each in faults.list()] == ["a", "b"]
    assert good("fault", "clear") == "removed all\n"
    assert faults.list() == []


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("set", "hold", "api"), "2 Error: Invalid value: 'api' is not KEY=VALUE"),
        (("set", "hold", "partition=x"), "2 Error: Invalid value: 'partition=x': partition takes a number"),
        (("set", "hold", "times=x"), "2 Error: Invalid value: 'times=x': times takes a number"),
        (("set", "hold", "version=1-x"), "2 Error: Invalid value: 'version=1-x': version takes a number"),
        (("release", "none"), "1 Error: no such fault: none"),
        (("remove", "none"), "1 Error: no such fault: none"),
    ],
)
def test_fault_that_cannot_be_is_refused(refused, words, said):
    assert refused("fault", *words).startswith(said)


@pytest.mark.parametrize(
    ("text", "said"), [("{", "is not JSON: "), ("[1]", "is not a list of objects"), ("{}", "a list")]
)
def test_file_that_has_no_faults_is_refused(refused, tmp_path, text, said):
    file = tmp_path / "faults.json"
    file.write_text(text)
    told = refused("fault", "load", str(file))
    assert told.startswith(f"2 Error: Invalid value: {file} is not ")
    assert said in told


# ---- clock


def test_clock_is_set_stands_advances_and_runs_on(trio, good, refused):
    assert good("clock", "set", "2040-01-01T00:00Z") == "2040-01-01T00:00:00+00:00\n"
    assert good("clock", "show") == "2040-01-01T00:00:00+00:00, standing\n"
    assert good("clock", "advance", "1h30m") == "2040-01-01T01:30:00+00:00\n"
    assert good("clock", "advance", "1d250ms") == "2040-01-02T01:30:00.250000+00:00\n"
    assert refused("clock", "set", "2030-01-01T00:00Z").startswith(
        "1 Error: the clock is at 2209080600250 and moves on"
    )
    good("clock", "resume")
    assert not trio.clock.stands()
    assert "standing" not in good("clock", "show")
    good("clock", "freeze")
    assert good("clock", "show").endswith(", standing\n")
    good("clock", "resume")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("set", "x"), "2 Error: Invalid value for ISO-TIME: 'x' is not a time such as 2030-01-01T00:00Z"),
        (
            ("advance", "1x"),
            "2 Error: Invalid value for DURATION: '1x' is not a duration such as 90s, 8d, 1h30m or 250ms",
        ),
        (("advance", "9999999999999d"), "2 Error: Invalid value for DURATION: 9999999999999d is too long"),
    ],
)
def test_time_that_does_not_read_as_one_is_refused(refused, words, said):
    assert refused("clock", *words) == said


# ---- broker


def test_virtual_brokers_are_stopped_lag_pause_and_come_back(trio, good, refused):
    def states() -> list[str]:
        return [line.split("  ")[1] for line in good("broker", "list").splitlines()]

    assert json.loads(good("broker", "list", "--json")) == trio.control.brokers()
    assert good("broker", "list").splitlines()[0] == f"1  up  {trio.bootstrap_servers.split(',')[0]}"
    for word, node, said in (("stop", "2", "stopped 2"), ("lag", "3", "3 lags"), ("pause", "1", "1 is paused")):
        assert good("broker", word, node) == f"{said}\n"
    assert states() == ["paused", "stopped", "lags"]
    for word, node, said in (("resume", "1", "1 goes on"), ("start", "2", "started 2"), ("release", "3", "3 follows")):
        assert good("broker", word, node) == f"{said}\n"
    assert states() == ["up"] * 3
    for word in ("stop", "start", "lag", "release", "pause", "resume"):
        assert refused("broker", word, "9") == "1 Error: no such broker: 9; there are 1, 2, 3"


# ---- group


@pytest.fixture
def member(trio: Broker, name: str):
    """A member of the group NAME that reads the topic NAME; its id."""
    trio.create_topic(name)
    heartbeat = first_heartbeat(name, name)
    with ExitStack() as ends:
        wires = [ends.enter_context(closing(Wire(each))) for each in trio.bootstrap_servers.split(",")]
        assert any(wire.call(heartbeat, 1).error_code == 0 for wire in wires)
        yield heartbeat.member_id


def test_group_is_waited_for_rebalanced_and_its_member_expelled(trio, good, refused, name, member):
    assert good("group", "wait", name, "--state", "stable", "--members", "1") == ""
    told = refused("group", "wait", name, "--state", "empty", "--timeout", "0.01")
    assert told == f"1 Error: group {name} is stable with 1 member, not empty, after 0.01 s"
    assert good("group", "rebalance", name) == f"{name} rebalances\n"
    assert refused("group", "expel", name, "another").startswith("1 Error: ")
    assert good("group", "expel", name, member) == f"expelled {member}\n"
    assert good("group", "wait", name, "--state", "empty", "--cluster", "default") == ""


def test_group_is_waited_for_until_its_offsets_are_there(trio, good, refused, name):
    trio.create_topic(name)
    trio.produce(name, "x")
    told = refused("group", "wait", name, "--committed", f"{name}:0=0", "--timeout", "0.01")
    assert told == f"1 Error: group {name}: {name}-0 is at none, not 0, after 0.01 s"
    trio.control.ask("POST", f"/_admin/groups/{name}/seek", {"to": "earliest", "topic": name})
    assert good("group", "wait", name, "--committed", f"{name}:0=0") == ""
    assert good("group", "wait", name, "--lag", "1", "--topic", name) == ""
    told = refused("group", "wait", name, "--lag", "0", "--timeout", "0.01")
    assert told.startswith(f"1 Error: group {name} ")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ((), "2 Error: wait for what? One of --lag, --committed and --state"),
        (("--lag", "0", "--state", "dead"), "2 Error: wait for what? One of --lag, --committed and --state"),
        (("--lag", "0", "--members", "1"), "2 Error: --topic goes with --lag, --members with --state"),
        (("--state", "dead", "--topic", "t"), "2 Error: --topic goes with --lag, --members with --state"),
        (("--committed", "t=1"), "2 Error: Invalid value for --committed: 't=1' is not TOPIC:PARTITION=OFFSET"),
        (("--state", "asleep"), '1 Error: "state" takes one of dead, empty, '),
        (("--state", "dead", "--cluster", "none"), "1 Error: no such cluster: none"),
    ],
)
def test_wait_that_cannot_be_is_refused(refused, words, said):
    assert refused("group", "wait", "g", *words).startswith(said)


def test_group_that_is_not_there_is_neither_rebalanced_nor_loses_a_member(refused):
    assert refused("group", "rebalance", "none") == "1 Error: there is no group none"
    assert refused("group", "expel", "none", "m") == "1 Error: there is no group none"


# ---- tail


def test_tail_shows_the_last_requests_that_fit(trio, good, refused, name):
    good("tail", "--once")  # the journal is kept from here on
    delete = ("topic", "delete", "-b", trio.bootstrap_servers)
    assert run_momus(*delete, name).returncode == 1
    assert run_momus(*delete, f"{name}-2").returncode == 1
    error = "UNKNOWN_TOPIC_OR_PARTITION"
    lines = good("tail", "--once", "--api", "DeleteTopics", "--error", error).splitlines()
    assert len(lines) == 2
    assert all("DeleteTopics" in line and error in line for line in lines)
    (line,) = good("tail", "--once", "--api", "DeleteTopics", "-n", "1", "--json").splitlines()
    entry: dict[str, Any] = json.loads(line)
    assert [each["name"] for each in entry["request"]["topics"]] == [f"{name}-2"]
    assert good("tail", "--once", "--api", "DeleteTopics", "-n", "0") == ""
    assert good("tail", "--once", "--client", "another") == ""
    assert refused("tail", "--once", "--api", "Nothing").startswith("1 Error: ")
