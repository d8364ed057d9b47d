"""Java members of the consumer protocol (KIP-848): five over sixty partitions restart one by one, seen by a tool."""

from __future__ import annotations

import subprocess

import pytest
from clientwork import until
from java_checks import JVM, compiled

from momus import Broker

# One worker: one JVM runs all the tools.
pytestmark = pytest.mark.xdist_group("java")

MEMBERS, PARTITIONS = 5, 60
GROUPS = "org.apache.kafka.tools.consumer.group.ConsumerGroupCommand"
PROMPT_GROUPS = {"group.consumer.heartbeat.interval.ms": 100}


@pytest.fixture(scope="module")
def prompt_broker():
    with Broker(config=PROMPT_GROUPS) as broker:
        yield broker
        assert (broker.stop(), broker.log) == (0, "")


def rows(printed: str) -> list[dict[str, str]]:
    """A tool's table, blank lines and titles apart."""
    lines = [line.split() for line in printed.splitlines() if line.strip()]
    head = next(i for i, line in enumerate(lines) if line[0] == "GROUP")
    return [dict(zip(lines[head], line, strict=False)) for line in lines[head + 1 :]]


@pytest.mark.parametrize("kind", ["dynamic", "static", "range", "pattern"])
def test_five_java_members_over_sixty_partitions_restart_one_by_one(prompt_broker, toolbox, kafka_libs, name, kind):
    def tool(*words: str) -> str:
        code, printed = toolbox.run(GROUPS, "--bootstrap-server", prompt_broker.bootstrap_servers, *words)
        assert code == 0, printed
        return printed

    def group_state() -> tuple[str, str]:
        (state,) = rows(tool("--describe", "--group", name, "--state", "--verbose"))
        return state["STATE"], state["#MEMBERS"]

    toolbox.run(
        "org.apache.kafka.tools.TopicCommand",
        *("--bootstrap-server", prompt_broker.bootstrap_servers),
        *("--create", "--topic", name, "--partitions", str(PARTITIONS)),
    )
    words = [prompt_broker.bootstrap_servers, name, kind, str(MEMBERS), str(PARTITIONS)]
    command = [*JVM, "-cp", compiled(kafka_libs, "Rolling"), "Rolling", *words]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as java:
        try:
            assert java.stdout is not None
            assert java.stderr is not None
            assert java.stdout.readline() == b"shared\n", java.stderr.read().decode()
            until(lambda: group_state() == ("Stable", str(MEMBERS)), "the last member has said so")
            members = rows(tool("--describe", "--group", name, "--members", "--verbose"))
            assert len(members) == MEMBERS
            assert sum(int(m["#PARTITIONS"]) for m in members) == PARTITIONS
            assert {m["CURRENT-EPOCH"] for m in members} == {m["TARGET-EPOCH"] for m in members}
            offsets = rows(tool("--describe", "--group", name, "--offsets"))
            assert sum(int(row["LAG"]) for row in offsets) == 0
            assert f"{name}" in tool("--list", "--type", "consumer", "--state", "stable")
        finally:
            out, errors = java.communicate(b"\n", timeout=300)
    count = MEMBERS * PARTITIONS
    assert out.decode().split() == f"records {count} seen {count} times {count}".split(), errors.decode()
