"""Kafka's tools of the image: groups that share partitions, times, security, and options that are not there.

tests/e2e/java/test_tools_of_the_image.py compares their lines with Apache Kafka's own.
"""

from __future__ import annotations

import subprocess
import sys
import threading
from pathlib import Path

import pytest
from kafka_tool import run_tool

from momus.cli.kafka_tools.main import TOOLS
from momus.cli.kafka_tools.member import Member, shared_out
from momus.cli.records.client import RecordClient
from momus.client.kafka_client import RequestFailedError
from momus.faults import once

REPOSITORY = Path(__file__).parents[3]


@pytest.fixture
def tool(shared_broker):
    """Runs a tool on the module's broker."""
    return lambda name, *words, data="": run_tool(
        name, *words, "--bootstrap-server", shared_broker.bootstrap_servers, data=data
    )


@pytest.mark.parametrize("name", sorted(TOOLS))
def test_option_that_is_not_here_ends_a_tool_by_its_name(name):
    first = {"cub": ["kafka-ready", "1", "1"], "kafka-cluster": ["cluster-id"]}.get(name, [])
    done = run_tool(f"{name}.sh", *first, "--no-such-option")
    assert (done.returncode, "--no-such-option is not a recognized option" in done.stdout) == (1, True)


def test_member_of_a_group_goes_on_where_the_one_before_it_has_stopped(tool, name):
    tool("kafka-topics", "--create", "--topic", name, "--partitions", "4")
    keyed = ("--property", "parse.key=true", "--property", "key.separator=:")
    tool("kafka-console-producer", "--topic", name, *keyed, data="".join(f"{n}:v{n}\n" for n in range(40)))
    read = ("--topic", name, "--group", name, "--from-beginning")
    first = tool("kafka-console-consumer", *read, "--max-messages", "15").stdout.split()
    second = tool("kafka-console-consumer", *read, "--max-messages", "25", "--timeout-ms", "60000").stdout.split()
    values = [word for word in (*first, *second) if word.startswith("v")]
    assert sorted(values) == sorted(f"v{n}" for n in range(40))
    described = tool("kafka-consumer-groups", "--describe", "--group", name).stdout.splitlines()
    assert {line.split()[5] for line in described if line.startswith(name)} == {"0"}


def test_partitions_move_to_the_member_that_stays(tool, name, shared_broker):
    tool("kafka-topics", "--create", "--topic", name, "--partitions", "4")
    address = shared_broker.bootstrap_servers
    members = [Member(address, name, [name], None, commits=True) for _ in range(2)]
    shares: dict[int, list[tuple[str, int]]] = {}

    def stay(place: int) -> None:
        with RecordClient(address) as client:
            shares[place] = members[place].join(client)
            while len(shares[place]) == 4:  # it came first, alone
                members[place]._beat_at = 0.0
                if not members[place].beat({}):
                    shares[place] = members[place].join(client)

    threads = [threading.Thread(target=stay, args=(place,)) for place in range(2)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert sorted(shares[0] + shares[1]) == [(name, partition) for partition in range(4)]
    members[0].leave({})
    members[1]._beat_at = 0.0
    assert not members[1].beat({(name, 0): 0})
    with RecordClient(address) as client:
        assert len(members[1].join(client)) == 4
    members[1].leave({})


def test_commit_that_is_refused_says_that_the_member_must_join_again(name, shared_broker):
    shared_broker.create_topic(name, partitions=1)
    shared_broker.produce(name, "one")
    member = Member(shared_broker.bootstrap_servers, name, [name], None, commits=True)
    with RecordClient(shared_broker.bootstrap_servers) as client:
        member.join(client)
        for error in ("REBALANCE_IN_PROGRESS", "ILLEGAL_GENERATION", "UNKNOWN_MEMBER_ID"):
            shared_broker.faults.inject_error("OffsetCommit", error, group=name, trigger=once)
            assert member.commit({(name, 0): 1}) is False
        shared_broker.faults.inject_error("OffsetCommit", "ILLEGAL_GENERATION", group=name, trigger=once)
        member._commit_at = 0.0
        assert member.beat({(name, 0): 1}) is False
        member.join(client)
        assert member.commit({(name, 0): 1}) is True
        member._commit_at = member._beat_at = 0.0
        assert [member.beat({(name, 0): 1}) for _ in range(2)] == [True, True]  # the second has nothing to do yet
        shared_broker.faults.inject_error("OffsetCommit", "GROUP_AUTHORIZATION_FAILED", group=name, trigger=once)
        with pytest.raises(RequestFailedError, match="GROUP_AUTHORIZATION_FAILED"):
            member.commit({(name, 0): 1})
        member.leave({(name, 0): 1})
    assert shared_broker.committed(name) == {(name, 0): 1}


def test_partitions_are_shared_out_as_by_kafkas_range_assignor():
    wishes = {"b": (None, ["t", "u"]), "a": (None, ["t"]), "c": ("first", ["t"])}
    assert shared_out(wishes, {"t": 5, "u": 1}) == {
        "b": {"t": [4], "u": [0]},
        "a": {"t": [2, 3]},
        "c": {"t": [0, 1]},
    }


@pytest.mark.heavy
def test_what_the_producer_reads_is_written_before_its_input_ends(tool, name, shared_broker):
    """A pipe that stays open, as `tail -f` makes: nobody waits for its end."""
    words = ["--topic", name, "--bootstrap-server", shared_broker.bootstrap_servers]
    code = f"from momus.cli.kafka_tools.main import main; main({words}, 'kafka-console-producer')"
    with subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE, cwd=REPOSITORY) as producer:
        producer.stdin.write(b"one\n")
        producer.stdin.flush()
        read = ("--topic", name, "--from-beginning", "--max-messages", "1", "--timeout-ms", "60000")
        assert tool("kafka-console-consumer", *read).stdout.split()[0] == "one"
        producer.communicate(b"")
    assert producer.returncode == 0


def test_key_of_a_line_that_has_none_ends_the_producer_after_those_before_it(tool, name):
    keyed = ("--topic", name, "--property", "parse.key=true", "--property", "key.separator=:")
    done = tool("kafka-console-producer", *keyed, data="a:1\nnothing\n")
    assert (done.returncode, "No key separator found on line number 2: 'nothing'" in done.stdout) == (1, True)
    assert tool("kafka-get-offsets", "--topic", name).stdout == f"{name}:0:1\n"


def test_readiness_waits_for_so_many_brokers(shared_broker):
    address = shared_broker.bootstrap_servers
    assert run_tool("cub", "kafka-ready", "-b", address, "1", "60").returncode == 0
    assert run_tool("cub", "kafka-ready", "2", "0", "-b", address).returncode == 1


def test_cluster_tool_says_the_clusters_id(tool):
    assert tool("kafka-cluster", "cluster-id").stdout.startswith("Cluster ID: ")


def test_file_of_settings_says_how_to_connect(tool, tmp_path: Path):
    file = tmp_path / "client.properties"
    file.write_text("security.protocol=NONE\n")
    done = tool("kafka-topics", "--list", "--command-config", str(file))
    assert done.returncode == 1
    assert "security.protocol=NONE is none" in done.stdout


def test_numbers_are_shown_by_their_deserializers(tool, name):
    tool("kafka-topics", "--create", "--topic", name)
    tool("kafka-console-producer", "--topic", name, data="\0\0\0\7\n")
    words = ("--topic", name, "--from-beginning", "--max-messages", "1", "--timeout-ms", "60000")
    form = "org.apache.kafka.common.serialization.IntegerDeserializer"
    assert tool("kafka-console-consumer", *words, "--value-deserializer", form).stdout.split()[0] == "7"


def test_setting_that_is_kept_without_effect_is_named(tool):
    words = ("--alter", "--entity-type", "brokers", "--entity-name", "1", "--add-config")
    done = tool("kafka-configs", *words, "num.io.threads=5,no.such=1,message.max.bytes=2000000")
    told = "kafka-configs: num.io.threads, no.such: kept, but without effect on a broker of momus\n"
    assert done.stdout == f"{told}Completed updating config for broker 1.\n"
