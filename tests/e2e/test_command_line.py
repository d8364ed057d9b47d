"""The `momus` command against a running broker, and its exit codes: 0 good, 1 failed, 2 bad usage."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys

import pytest


def momus(*arguments: str, env: dict[str, str] | None = None) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "momus", *arguments],
        capture_output=True,
        text=True,
        timeout=60,
        env=os.environ | (env or {}),
    )


@pytest.fixture
def ask(broker):
    """Runs a command against the broker and returns its JSON."""

    def run(*arguments: str) -> object:
        done = momus(*arguments, "--json", "-b", broker.bootstrap_servers)
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)

    return run


def test_topic_is_created_listed_described_and_deleted(ask):
    assert ask("topic", "create", "-t", "orders", "-p", "3", "-c", "retention.ms=1000") == [
        {"name": "orders", "error": None, "message": None}
    ]
    assert ask("topic", "list") == [{"name": "orders", "partitions": 3, "replicas": 1, "internal": False}]
    (described,) = ask("topic", "describe", "orders")
    assert described["configs"] == {"retention.ms": "1000"}
    assert [(p["partition"], p["start"], p["end"]) for p in described["partitions"]] == [
        (0, 0, 0),
        (1, 0, 0),
        (2, 0, 0),
    ]
    assert ask("topic", "delete", "orders") == [{"name": "orders", "error": None, "message": None}]
    assert ask("topic", "list") == []


def test_topic_created_twice_exits_1_unless_told_otherwise(broker):
    create = ("topic", "create", "t", "-b", broker.bootstrap_servers)
    assert momus(*create).returncode == 0
    again = momus(*create)
    assert again.returncode == 1
    assert "TOPIC_ALREADY_EXISTS" in again.stderr
    assert momus(*create, "--if-not-exists").returncode == 0


@pytest.mark.parametrize("verb", ["describe", "delete"])
def test_topic_that_does_not_exist_exits_1(broker, verb):
    done = momus("topic", verb, "nowhere", "-b", broker.bootstrap_servers)
    assert done.returncode == 1
    assert "UNKNOWN_TOPIC_OR_PARTITION" in done.stderr
    assert "Traceback" not in done.stderr


def test_group_shows_what_it_committed_and_its_lag(broker, ask):
    from kafka import KafkaConsumer, KafkaProducer, OffsetAndMetadata, TopicPartition

    config = broker.client_config("kafka-python")
    producer = KafkaProducer(**config)
    for n in range(5):
        producer.send("orders", b"%d" % n).get(60)
    producer.close()
    consumer = KafkaConsumer(**config, group_id="billing", enable_auto_commit=False)
    consumer.assign([TopicPartition("orders", 0)])
    consumer.commit({TopicPartition("orders", 0): OffsetAndMetadata(3, "so far", -1)})
    consumer.close()

    assert [g["group"] for g in ask("group", "list")] == ["billing"]
    (described,) = ask("group", "describe", "-g", "billing")
    assert described["state"] == "Empty"
    (offset,) = described["offsets"]
    assert (offset["topic"], offset["partition"], offset["metadata"]) == ("orders", 0, "so far")
    assert (offset["committed"], offset["end"], offset["lag"]) == (3, 5, 2)
    assert "billing" in momus("group", "list", "-b", broker.bootstrap_servers).stdout


def test_group_with_members_shows_what_each_was_assigned(broker, ask):
    from confluent_kafka import Consumer

    ask("topic", "create", "orders", "-p", "2")
    consumer = Consumer({**broker.client_config("confluent"), "group.id": "billing"})
    consumer.subscribe(["orders"])
    while not consumer.assignment():
        consumer.poll(0.1)
    (described,) = ask("group", "describe", "billing")
    consumer.close()
    assert described["state"] == "Stable"
    (member,) = described["members"]
    assert {(row["partition"], row["member"], row["state"]) for row in described["assignments"]} == {
        (f"orders-{index}", member["member"], "has") for index in (0, 1)
    }


def test_group_that_does_not_exist_is_dead_and_exits_1(broker):
    done = momus("group", "describe", "nobody", "--json", "-b", broker.bootstrap_servers)
    assert done.returncode == 1
    assert json.loads(done.stdout)[0]["state"] == "Dead"


def test_health_is_0_with_a_broker_and_1_without(broker):
    address = broker.bootstrap_servers
    assert momus("health", "-b", address).returncode == 0
    broker.stop()
    gone = momus("health", "-b", address)
    assert gone.returncode == 1
    assert f"cannot reach {address}" in gone.stderr


def test_bootstrap_server_may_come_from_the_environment(broker):
    assert momus("health", env={"MOMUS_BOOTSTRAP_SERVERS": broker.bootstrap_servers}).returncode == 0


@pytest.mark.parametrize(
    "arguments",
    [
        ("serve", "--listen", "nonsense"),
        ("serve", "--listen", "localhost:70000"),
        ("serve", "--flush", "sometimes"),
        ("serve", "--brokers", "0"),
        ("serve", "--set", "num.partitions"),
        ("serve", "--config", "no-such-file"),
        ("serve", "--statsd", "8125"),
        ("serve", "extra"),
        ("topic",),
        ("topic", "create"),
        ("topic", "create", "t", "-c", "x"),
        ("group", "describe"),
        ("nonsense",),
    ],
    ids=" ".join,
)
def test_bad_usage_exits_2_and_says_why(arguments):
    done = momus(*arguments)
    assert done.returncode == 2
    assert done.stderr
    assert "Traceback" not in done.stderr


def test_serve_says_ready_first_and_exits_0_on_sigterm(tmp_path):
    (tmp_path / "server.properties").write_text("num.partitions=3\nauto.create.topics.enable=false\n")
    command = [
        sys.executable,
        "-m",
        "momus",
        "serve",
        "--listen",
        "127.0.0.1:0",
        "-d",
        str(tmp_path / "data"),
    ]
    command += ["--config", str(tmp_path / "server.properties"), "--set", "num.partitions=2"]
    serving = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        address = serving.stdout.readline().removeprefix("momus ready ").strip()
        assert momus("topic", "create", "t", "-b", address).returncode == 0
        listed = momus("topic", "list", "--json", "-b", address)
        assert json.loads(listed.stdout)[0]["partitions"] == 2  # --set is stronger than --config
        serving.send_signal(signal.SIGTERM)
        assert serving.wait(60) == 0
    finally:
        serving.kill()
        serving.communicate()


def test_serve_with_several_listeners_sends_each_client_back_where_it_came_in(tmp_path):
    from momus.client.kafka_client import Client

    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        inside = f"127.0.0.1:{free.getsockname()[1]}"
    settings = {
        "listeners": f"HOST://127.0.0.1:0,INSIDE://{inside}",
        "advertised.listeners": "HOST://localhost:1111,INSIDE://broker:2222",
        "listener.security.protocol.map": "HOST:PLAINTEXT,INSIDE:PLAINTEXT",
    }
    command = [sys.executable, "-m", "momus", "serve", "-d", str(tmp_path / "data")]
    for key, value in settings.items():
        command += ["--set", f"{key}={value}"]
    serving = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        host = serving.stdout.readline().removeprefix("momus ready ").strip()
        for address, advertised in ((host, ("localhost", 1111)), (inside, ("broker", 2222))):
            with Client(address) as client:
                assert [(node.host, node.port) for node in client.cluster().brokers] == [advertised]
    finally:
        serving.kill()
        serving.communicate()


def test_repair_gives_up_what_is_damaged_and_only_then_the_broker_serves_it(broker_factory, tmp_path):
    from kafka import KafkaConsumer, KafkaProducer, TopicPartition

    broker = broker_factory(data_dir=tmp_path)
    config = broker.client_config("kafka-python")
    producer = KafkaProducer(**config)
    for n in range(3):
        producer.send("t", b"%d" % n).get(60)
    producer.close()
    repair = ("repair", "-d", str(tmp_path), "t-0")
    assert "stop it first" in momus(*repair).stderr
    broker.stop()
    assert momus(*repair).stdout == "t-0: not damaged\n"

    segment = tmp_path / "t-0" / f"{0:020d}.log"
    data = bytearray(segment.read_bytes())
    size = len(data) // 3
    data[size + 40] ^= 1  # in the second of three batches
    segment.write_bytes(data)
    done = momus(*repair)
    assert done.returncode == 0, done.stderr
    assert f"gave up {2 * size} bytes" in done.stdout

    broker.start()
    consumer = KafkaConsumer("t", **config, auto_offset_reset="earliest")
    assert next(consumer).value == b"0"
    assert consumer.end_offsets([TopicPartition("t", 0)]) == {TopicPartition("t", 0): 1}
    consumer.close()


def test_repair_of_a_log_that_is_not_there_is_bad_usage(tmp_path):
    done = momus("repair", "-d", str(tmp_path), "t-0")
    assert done.returncode == 2
    assert "holds no log t-0" in done.stderr


@pytest.mark.parametrize(("typed", "meant"), [("topik", "topic"), ("consum", "consume"), ("serv", "serve")])
def test_command_that_is_mistyped_is_asked_about(typed, meant):
    done = momus(typed)
    assert done.returncode == 2
    assert f"Did you mean '{meant}'?" in done.stderr


def test_every_command_shows_its_help_and_is_listed():
    from momus.cli.main import COMMANDS

    listed = momus("--help").stdout
    for name in COMMANDS:
        assert f"\n  {name} " in listed
        shown = momus(name, "--help")
        assert (shown.returncode, "sage: momus" in shown.stdout) == (0, True), name  # argparse writes it small
