"""The control endpoint with real clients: virtual brokers that stop and start, and a clock that moves."""

from __future__ import annotations

import asyncio
import json
import signal
import socket
import subprocess
import sys
import threading
from collections import Counter
from datetime import UTC, datetime, timedelta

import pytest
from clientwork import seen_by, until
from confluent_kafka import Consumer, KafkaException, Message, Producer, TopicPartition
from kafka import KafkaConsumer, KafkaProducer

from momus import Broker
from momus.control import ControlError

PROMPT = {"group.initial.rebalance.delay.ms": 0}


def momus(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-m", "momus", *arguments], capture_output=True, text=True, timeout=60)


def ask_momus(broker: Broker, *arguments: str):
    done = momus(*arguments, "--json", "-b", broker.bootstrap_servers)
    assert done.returncode in (0, 1), done.stderr  # describe exits 1 where there is no such group
    return json.loads(done.stdout)


def test_clock_stands_moves_and_runs_on():
    with Broker() as broker:
        assert abs(broker.clock.now() - datetime.now(UTC)) < timedelta(seconds=30)
        at = datetime.now(UTC).replace(microsecond=0) + timedelta(days=400)
        broker.clock.set(at)
        assert (broker.clock.now(), broker.clock.stands()) == (at, True)
        broker.clock.advance(hours=1, milliseconds=1)
        assert broker.clock.now() == at + timedelta(hours=1, milliseconds=1)
        broker.clock.resume()
        assert not broker.clock.stands()
        until(lambda: broker.clock.now() > at + timedelta(hours=1, milliseconds=1), "the clock runs")
        producer = KafkaProducer(bootstrap_servers=broker.bootstrap_servers)
        producer.send("t", b"x").get(60)
        producer.close()
        assert broker.stop() == 0


def commit(broker: Broker, group: str, offset: int) -> None:
    consumer = Consumer({"bootstrap.servers": broker.bootstrap_servers, "group.id": group})
    consumer.commit(offsets=[TopicPartition("t", 0, offset)], asynchronous=False)
    consumer.close()


def committed(broker: Broker, group: str) -> int:
    consumer = Consumer({"bootstrap.servers": broker.bootstrap_servers, "group.id": group})
    try:
        offset: int = consumer.committed([TopicPartition("t", 0)], timeout=60)[0].offset
    finally:
        consumer.close()
    return offset


def test_offsets_expire_under_the_moved_clock_and_stay_expired():
    with Broker() as broker:
        momus("topic", "create", "t", "-b", broker.bootstrap_servers)
        commit(broker, "old", 5)
        broker.clock.advance(days=6)
        commit(broker, "new", 6)
        assert committed(broker, "old") == 5
        broker.clock.advance(days=1, hours=1)
        assert (committed(broker, "old"), committed(broker, "new")) == (-1001, 6)
        broker.kill()
        broker.start()
        assert (committed(broker, "old"), committed(broker, "new")) == (-1001, 6)


def test_member_that_is_silent_times_out_under_the_moved_clock(shared_broker, name):
    producer = KafkaProducer(bootstrap_servers=shared_broker.bootstrap_servers)
    producer.send(name, b"x").get(60)
    producer.close()
    consumer = KafkaConsumer(
        name,
        bootstrap_servers=shared_broker.bootstrap_servers,
        group_id=name,
        group_instance_id="one",
        session_timeout_ms=45_000,
        auto_offset_reset="earliest",
    )
    seen_by(consumer, name)
    next(consumer)
    consumer.close()  # a static member: it does not leave
    (member,) = ask_momus(shared_broker, "group", "describe", name)[0]["members"]
    assert member["instance"] == "one"
    shared_broker.clock.advance(seconds=46)
    described = ask_momus(shared_broker, "group", "describe", name)[0]
    assert (described["state"], described["members"]) == ("Empty", [])


def test_transaction_is_aborted_and_its_id_forgotten_under_the_moved_clock(shared_broker, name):
    settings = {"bootstrap.servers": shared_broker.bootstrap_servers, "transactional.id": name}
    producer = Producer({**settings, "transaction.timeout.ms": 600_000})
    producer.init_transactions(60)
    producer.begin_transaction()
    producer.produce(name, b"never")
    producer.flush(60)
    shared_broker.clock.advance(minutes=11)
    with pytest.raises(KafkaException):
        producer.commit_transaction(60)
    consumer = Consumer(
        {
            "bootstrap.servers": shared_broker.bootstrap_servers,
            "group.id": name,
            "auto.offset.reset": "earliest",
            "enable.partition.eof": True,
        }
    )
    consumer.subscribe([name])
    seen = []
    until(lambda: seen.append(consumer.poll(0.5)) or any(m is not None and m.error() for m in seen), "the end is told")
    consumer.close()
    assert [m.value() for m in seen if m is not None and not m.error()] == []
    assert name in momus("txn", "list", "-b", shared_broker.bootstrap_servers).stdout
    shared_broker.clock.advance(days=8)
    assert name not in momus("txn", "list", "-b", shared_broker.bootstrap_servers).stdout


def test_records_are_removed_by_age_under_the_moved_clock(shared_broker, name):
    create = ("topic", "create", name, "-c", "retention.ms=3600000", "-c", "segment.ms=60000")
    assert momus(*create, "-b", shared_broker.bootstrap_servers).returncode == 0
    producer = KafkaProducer(bootstrap_servers=shared_broker.bootstrap_servers)
    producer.send(name, b"old").get(60)
    shared_broker.clock.advance(hours=2)
    described = ask_momus(shared_broker, "topic", "describe", name)[0]["partitions"][0]
    producer.close()
    assert (described["start"], described["end"]) == (1, 1)


class Reader(threading.Thread):
    """A consumer of the group that commits what it has read, until told to stop."""

    def __init__(self, servers: str, topic: str) -> None:
        super().__init__(daemon=True)
        self.settings = {
            "bootstrap.servers": servers,
            "group.id": topic,
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
        }
        self.topic = topic
        self.seen: Counter[bytes] = Counter()
        self.refused = 0
        self.wanted = threading.Event()
        self.start()

    def run(self) -> None:
        consumer = Consumer(self.settings)
        consumer.subscribe([self.topic])
        last: dict[int, Message] = {}  # of each partition, if it is not committed yet
        try:
            while last or not self.wanted.is_set():
                message = consumer.poll(0.2)
                if message is not None and not message.error():
                    self.seen[message.value()] += 1
                    last[message.partition()] = message
                for partition in list(last):
                    try:
                        consumer.commit(last[partition], asynchronous=False)
                        del last[partition]
                    except KafkaException:  # its coordinator has moved, or its group changes: then later
                        self.refused += 1
        finally:
            consumer.close()


def test_clients_survive_brokers_that_stop_and_start_and_nothing_is_lost(name):
    with Broker(brokers=3, config=PROMPT) as broker:
        assert momus("topic", "create", name, "-p", "6", "-b", broker.bootstrap_servers).returncode == 0
        reader = Reader(broker.bootstrap_servers, name)
        failed = []
        producer = Producer({"bootstrap.servers": broker.bootstrap_servers, "enable.idempotence": True, "linger.ms": 1})
        sent = 0

        def send(count: int) -> None:
            nonlocal sent
            for _ in range(count):
                producer.produce(
                    name, b"%d" % sent, partition=sent % 6, on_delivery=lambda e, m: failed.append(e) if e else None
                )
                sent += 1
                producer.poll(0)

        def all_is_read() -> bool:
            return len(reader.seen) == sent

        # The reader has to catch up: librdkafka 2.16 can forget a coordinator that moves there and back within 10 ms
        for node_id in (1, 2, 3, 2, 1):
            send(60)
            broker.stop_broker(node_id)
            send(60)
            assert producer.flush(60) == 0
            until(all_is_read, f"every record is read without broker {node_id}")
            broker.start_broker(node_id)
            until(all_is_read, f"every record is read with broker {node_id} again")
        send(60)
        assert producer.flush(60) == 0
        assert failed == []
        until(all_is_read, "every record is read")
        reader.wanted.set()
        reader.join(60)
        (group,) = ask_momus(broker, "group", "describe", name)
        assert {row["partition"]: row["lag"] for row in group["offsets"]} == dict.fromkeys(range(6), 0)
        assert broker.stop() == 0
        assert "Traceback" not in broker.log


def test_stopped_broker_refuses_connections_until_it_starts(trio):
    address = trio.bootstrap_servers.split(",")[1]
    host, _, port = address.rpartition(":")
    with socket.create_connection((host, int(port))) as wire:
        trio.stop_broker(2)
        wire.settimeout(60)
        assert wire.recv(1) == b""
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection((host, int(port)))
    trio.stop_broker(2)  # once more does no harm
    trio.start_broker(2)
    socket.create_connection((host, int(port))).close()
    assert [broker["up"] for broker in trio.control.brokers()] == [True] * 3


def test_follower_lags_and_is_released_by_python_twin_and_command(trio):
    trio.lag_follower(2)
    trio.lag_follower(2)  # once more does no harm
    assert [broker["lags"] for broker in trio.control.brokers()] == [False, True, False]
    asyncio.run(trio.aio.release_follower(2))
    assert [broker["lags"] for broker in trio.control.brokers()] == [False] * 3
    control = ("--control", trio.control.address)
    assert momus("broker", "lag", "3", *control).stdout == "3 lags\n"
    assert "3  lags  " in momus("broker", "list", *control).stdout
    trio.reset()
    assert momus("broker", "release", "3", *control).stdout == "3 follows\n"
    trio.stop_broker(2)
    with pytest.raises(ControlError, match="broker 2 is stopped: it cannot lag"):
        trio.lag_follower(2)
    trio.start_broker(2)


def test_commands_move_the_clock_and_stop_brokers(trio):
    control = ("--control", trio.control.address)
    assert momus("broker", "stop", "3", *control).stdout == "stopped 3\n"
    assert "3  stopped  " in momus("broker", "list", *control).stdout
    assert momus("broker", "start", "3", *control).stdout == "started 3\n"
    before = trio.clock.now()
    assert momus("clock", "advance", "1h30m", *control).returncode == 0
    assert trio.clock.now() - before >= timedelta(minutes=90)
    assert momus("clock", "set", "2099-01-01T00:00Z", *control).returncode == 0
    assert momus("clock", "show", *control).stdout == "2099-01-01T00:00:00+00:00, standing\n"
    assert momus("clock", "resume", *control).returncode == 0
    for words, code in (
        (("clock", "advance", "soon"), 2),
        (("clock", "advance", "9" * 20 + "d"), 2),
        (("clock", "set", "2000-01-01"), 1),
        (("clock", "set", "yesterday"), 2),
        (("broker", "stop", "9"), 1),
    ):
        done = momus(*words, *control)
        assert (done.returncode, "Traceback" in done.stderr) == (code, False), done.stderr


@pytest.mark.parametrize("address", ["0.0.0.0:0", "example.org:1", "127.example.org:1", "[::]:0"])
def test_endpoint_is_not_opened_to_the_world_unless_told(tmp_path, address):
    done = momus("serve", "--control", address, "--data-dir", str(tmp_path))
    assert done.returncode == 2
    assert "is not loopback" in done.stderr


@pytest.mark.parametrize(("options", "lines"), [((), 1), (("--control", "127.0.0.1:0"), 2)])
def test_endpoint_is_named_in_a_line_of_its_own(tmp_path, options, lines):
    command = [sys.executable, "-m", "momus", "serve", "--listen", "127.0.0.1:0", "-d", str(tmp_path), *options]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        first = process.stdout.readline()
        process.send_signal(signal.SIGTERM)
        told = [first, *process.stdout.read().splitlines(keepends=True)]
    assert [line.rsplit(" ", 1)[0] for line in told] == ["momus ready", "momus control"][:lines]
    assert process.returncode == 0


def test_port_that_is_taken_ends_in_one_line(tmp_path):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        done = momus("serve", "--listen", "127.0.0.1:0", "-d", str(tmp_path), "--control", f"127.0.0.1:{port}")
    assert done.returncode == 1
    assert "Traceback" not in done.stderr
    assert str(port) in done.stderr
