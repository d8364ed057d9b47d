"""`momus cluster`: make, list, copy, restore, reset and remove the clusters of a process from a shell."""

from __future__ import annotations

import json

import pytest
from test_control import momus

from momus import Broker
from momus.cluster import Cluster


@pytest.fixture(scope="module")
def process():
    with Broker() as broker:
        yield broker


@pytest.fixture
def cluster_command(process):
    """Runs `momus cluster ...`; answers exit code, output and errors."""

    def run(*arguments: str) -> tuple[int, str, str]:
        done = momus("cluster", *arguments, "--control", process.control.address)
        return done.returncode, done.stdout, done.stderr

    return run


def test_cluster_is_made_listed_reset_and_removed(process, cluster_command):
    code, text, _ = cluster_command(
        "create", "made", "--brokers", "2", "--seed", "7", "--set", "num.partitions=4", "--json"
    )
    made = json.loads(text)
    assert (code, made["name"], made["brokers"], made["seed"]) == (0, "made", 2, 7)
    assert cluster_command("create", "made")[::2] == (1, "Error: there is a cluster made already\n")
    listed = cluster_command("list")[1].splitlines()
    assert listed == [
        f"default  {process.bootstrap_servers}  os",
        f"made  {made['bootstrap_servers']}  memory",
    ]
    cluster = Cluster.found(process.control, made)
    cluster.create_topic("t")
    assert cluster_command("reset", "made")[:2] == (0, "reset made\n")
    cluster.create_topic("t")  # there is none
    assert cluster_command("remove", "made")[:2] == (0, "removed made\n")
    assert len(cluster_command("list")[1].splitlines()) == 1
    assert cluster_command("remove", "made")[0] == 1


def test_snapshot_fork_and_restore_from_a_shell(process, cluster_command):
    process.create_topic("orders")
    process.produce("orders", "a")
    assert cluster_command("snapshot", "--as", "one")[1].startswith("one  ")
    process.produce("orders", "b")
    assert [each["name"] for each in json.loads(cluster_command("snapshot", "--list", "--json")[1])] == ["one"]
    made = json.loads(cluster_command("fork", "--from", "one", "--as", "copy", "--json")[1])
    assert made["name"] == "copy"
    assert [record.value for record in Cluster.found(process.control, made).consume("orders")] == [b"a"]
    late = json.loads(cluster_command("fork", "--json")[1])
    assert len(Cluster.found(process.control, late).consume("orders")) == 2
    assert cluster_command("restore", "--from", "one")[:2] == (0, "restored default from one\n")
    assert [record.value for record in process.consume("orders")] == [b"a"]
    assert cluster_command("snapshot", "--remove", "one")[:2] == (0, "removed one\n")
    assert cluster_command("restore", "--from", "one")[::2] == (1, "Error: no such snapshot: one; there are none\n")


@pytest.mark.parametrize(
    "arguments",
    [
        ("create", "x", "--set", "no-equals-sign"),
        ("create", "x", "--brokers", "0"),
        ("snapshot", "--as", "a", "--list"),
        ("restore",),
        ("remove",),
    ],
)
def test_wrong_usage_ends_with_2(cluster_command, arguments):
    assert cluster_command(*arguments)[0] == 2
