"""`momus produce` and `momus consume` against a running broker, and real clients on the other side."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest
from confluent_kafka import Producer
from kafka import KafkaConsumer, TopicPartition
from momus_command import Done, run_momus

from momus.cli.records.client import RecordClient
from protocol.compression import CODEC_NAMES


def run(*words: str, data: bytes = b"") -> Done:
    return run_momus(*words, data=data.decode())


@pytest.fixture
def produce(trio, name):
    def write(*words: str, data: bytes = b"", code: int = 0) -> str:
        done = run("produce", "-t", name, "-b", trio.bootstrap_servers, *words, data=data)
        assert done.returncode == code, done.stderr
        return done.stderr

    return write


@pytest.fixture
def consume(trio, name):
    def read(*words: str, code: int = 0) -> str:
        done = run("consume", "-t", name, "-b", trio.bootstrap_servers, *words)
        assert done.returncode == code, done.stderr
        return done.stdout if code == 0 else done.stderr

    return read


@pytest.mark.parametrize("codec", ["none", "gzip", "snappy", "lz4", "zstd"])
def test_what_is_produced_arrives_at_a_real_consumer(trio, name, produce, codec):
    trio.create_topic(name, partitions=3)
    produce("-K", ":", "-H", "from=momus", "-z", codec, data=b"a:one\nb:two\na:three")
    consumer = KafkaConsumer(name, auto_offset_reset="earliest", **trio.client_config("kafka-python"))
    records = [next(consumer) for _ in range(3)]
    consumer.close()
    assert {(r.key, r.value) for r in records} == {(b"a", b"one"), (b"b", b"two"), (b"a", b"three")}
    assert all(r.headers == [("from", b"momus")] for r in records)
    assert len({r.partition for r in records if r.key == b"a"}) == 1
    with RecordClient(trio.bootstrap_servers) as client:
        leaders = client.leaders(name)
        batches = [header for each, leader in leaders.items() for header, _ in client.batches(name, each, leader)]
    assert {CODEC_NAMES[header.codec] for header in batches} == {codec}


def test_key_goes_where_librdkafkas_java_partitioner_sends_it(trio, name, produce):
    trio.create_topic(name, partitions=7)
    landed = {}
    producer = Producer({**trio.client_config("confluent"), "partitioner": "murmur2_random"})
    for key in ("a", "order-17", "x" * 33):
        producer.produce(name, b"v", key=key, on_delivery=lambda _, m: landed.__setitem__(m.key(), m.partition()))
    producer.flush()
    for key in landed:
        produce("-k", key.decode(), "-v", "ours")
    ours = {r.key: r.partition for r in trio.consume(name, 6) if r.value == b"ours"}
    assert ours == landed


def test_records_without_a_key_go_round_and_the_place_of_each_is_printed(trio, name):
    trio.create_topic(name, partitions=3)
    words = ("produce", "-t", name, "-b", trio.bootstrap_servers)
    data = b"".join(b"k:%d\n" % n if n == 2 else b":%d\n" % n for n in range(1201))  # more than a batch
    printed = run(*words, "-K", ":", "-Z", data=data).stdout.split("\n")[:-1]
    assert printed[:5] == ["0 0", "1 0", "2 0", "2 1", "0 1"]  # the third has a key
    there = {f"{r.partition} {r.offset}": r.value for r in trio.consume(name, 1201)}
    assert [there[place] for place in printed] == [b"%d" % n for n in range(1201)]
    assert run(*words, "-v", "x", "-q").stdout == ""
    assert run(*words, "-v", "x", "-p", "2", "-v", "y").stdout.split() == ["2", "401", "2", "402"]


def test_consume_shows_keys_headers_and_places_by_a_format(trio, name, produce, consume):
    produce("-k", "table 4", "-H", "a=1", "-p", "0", "--timestamp", "1700000000000", "-v", "one", "-v", "two")
    assert consume("-e", "-f", r"%t-%p@%o %T %k=%s %h\n") == (
        f"{name}-0@0 1700000000000 table 4=one a=1\n{name}-0@1 1700000000000 table 4=two a=1\n"
    )
    assert consume("-e", "-K", "|") == "table 4|one\ntable 4|two\n"


def test_json_of_one_topic_is_produced_into_another_as_it_is(trio, name, produce, consume):
    trio.create_topic(name, partitions=3)
    lines = [{"key": "k", "value": None, "partition": 2, "timestamp_ms": 5, "headers": {"a": {"base64": "/w=="}}}]
    lines += [{"value": {"base64": "/w=="}, "partition": 1, "timestamp_ms": 7}]
    produce("--json", data="\n".join(map(json.dumps, lines)).encode())
    shown = consume("-e", "--json")
    rows = sorted((json.loads(line) for line in shown.splitlines()), key=lambda row: row["timestamp_ms"])
    assert [(r["partition"], r["key"], r["value"], r["headers"], r["timestamp_ms"]) for r in rows] == [
        (2, "k", None, [["a", {"base64": "/w=="}]], 5),
        (1, None, {"base64": "/w=="}, [], 7),
    ]
    produce("--json", data=shown.encode())
    again = [json.loads(line) for line in consume("-e", "--json").splitlines()]
    assert len(again) == 4
    assert {json.dumps(r | {"offset": 0}) for r in again} == {json.dumps(r | {"offset": 0}) for r in rows}
    produce("--json", "-p", "0", data=shown.encode())
    assert sum(json.loads(line)["partition"] == 0 for line in consume("-e", "--json").splitlines()) == 2


def test_places_count_and_times_bound_what_is_read(trio, name, produce, consume):
    for n in range(6):
        produce("-p", "0", "--timestamp", str(1000 * n), "-v", str(n))
    assert consume("-o", "4", "-e").split() == ["4", "5"]
    assert consume("-o", "-1", "-e").split() == ["5"]
    produce("-p", "0", "--timestamp", "8000", "-v", "6", "-v", "7", "-v", "8")
    assert consume("-o", "7", "-e").split() == ["7", "8"]  # from the middle of a batch
    assert consume("-c", "2").split() == ["0", "1"]
    assert consume("-o", "s@2500", "-o", "e@4000", "-e").split() == ["3"]
    assert consume("-o", "s@9999", "-e") == ""
    assert consume("-o", "end", "--idle", "0.2") == ""
    assert "holds 0 up to 9" in consume("-o", "77", "-e", code=1)


def test_stored_begins_where_the_group_has_committed(trio, name, produce, consume):
    produce("-p", "0", *(word for n in range(4) for word in ("-v", str(n))))
    consumer = KafkaConsumer(group_id=name, enable_auto_commit=False, **trio.client_config("kafka-python"))
    consumer.assign([TopicPartition(name, 0)])
    consumer.seek(TopicPartition(name, 0), 3)
    consumer.commit()
    consumer.close()
    assert consume("-o", "stored", "-g", name, "-e").split() == ["3"]


def test_aborted_and_open_transactions_are_left_out_unless_asked_for(trio, name, consume):
    trio.create_topic(name)
    producer = Producer({**trio.client_config("confluent"), "transactional.id": name})
    producer.init_transactions()
    for value, end in (
        ("no", producer.abort_transaction),
        ("yes", producer.commit_transaction),
        ("no 2", producer.abort_transaction),
    ):
        producer.begin_transaction()
        producer.produce(name, value)
        producer.flush()
        end()
    producer.begin_transaction()
    producer.produce(name, "open")
    producer.flush()
    assert consume("-e").split("\n")[:-1] == ["yes"]
    assert consume("-e", "--isolation", "read_uncommitted").split("\n")[:-1] == ["no", "yes", "no 2", "open"]
    producer.abort_transaction()


def test_delimiters_files_and_tombstones(trio, name, produce, consume, tmp_path):
    (tmp_path / "one").write_bytes(b"a\nb")
    produce("-p", "0", str(tmp_path / "one"))
    produce("-p", "0", "-D", r"\x1e", data=b"c\nd\x1ee")
    produce("-p", "0", "-Z", "-K", ":", data=b"k:\n")
    assert consume("-e", "-D", "|", "-Z") == "a\nb|c\nd|e|NULL|"
    assert consume("-e", "-o", "3", "-f", "%k %K %S") == "k 1 -1"


@pytest.mark.heavy
def test_follows_what_comes_later_and_a_leader_that_moves(broker_factory, name):
    broker = broker_factory(brokers=3)
    broker.create_topic(name, partitions=1)
    reader = subprocess.Popen(
        [sys.executable, "-m", "momus", "consume", "-t", name, "-b", broker.bootstrap_servers, "-c", "2"],
        stdout=subprocess.PIPE,
    )
    assert reader.stdout is not None
    broker.produce(name, "one")
    assert reader.stdout.readline() == b"one\n"
    for stopped in (1, 2):
        broker.stop_broker(stopped)
    broker.produce(name, "two")
    assert reader.communicate(timeout=60)[0] == b"two\n"
    assert reader.returncode == 0


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("produce",), "Missing option '-t'"),
        (("produce", "-t", "{t}", "--json", "-v", "x"), "record 1: this is not JSON"),
        (("produce", "-t", "{t}", "-K", ":", "-v", "x"), "record 1 has no ':' between"),
        (("produce", "-t", "{t}", "-p", "9", "-v", "x"), "has no partition 9, but 0 to 0"),
        (("produce", "-t", "{t}", "--timestamp", "noon", "-v", "x"), "'noon' is no time"),
        (("consume", "-t", "{t}", "-f", "%q"), "%q is no field"),
        (("consume", "-t", "{t}", "-o", "middle"), "'middle' is no place"),
        (("consume", "-t", "{t}", "-o", "stored"), "belong together"),
        (("consume", "-t", "{t}", "-f", "%s", "--json"), "not both"),
    ],
)
def test_words_that_are_not_understood_exit_2_with_the_reason(shared_broker, name, words, said):
    done = run(*(word.replace("{t}", "t") for word in words), "-b", shared_broker.bootstrap_servers)
    assert done.returncode == 2, done.stderr
    assert said in done.stderr
    assert "Traceback" not in done.stderr


def test_records_of_partitions_that_a_copy_lacks_go_by_their_keys_with_a_word(shared_broker):
    address = shared_broker.bootstrap_servers
    shared_broker.create_topics({"wide": 3, "narrow": 1})
    for partition in range(3):
        shared_broker.produce("wide", f"of {partition}", partition=partition, key="k")
    lines = run("consume", "-t", "wide", "-e", "--json", "-b", address).stdout
    done = run("produce", "-t", "narrow", "--json", "-b", address, data=lines.encode())
    assert (done.returncode, done.stderr.count("go by their keys")) == (0, 1)
    assert "narrow has no partition" in done.stderr
    assert sorted(record.value for record in shared_broker.consume("narrow", 3)) == [b"of 0", b"of 1", b"of 2"]


def test_topic_that_is_not_made_by_itself_is_told_at_once(shared_broker):
    """With a time limit of ten minutes: it is not waited for."""
    with shared_broker.create_cluster(config={"auto.create.topics.enable": "false"}) as cluster:
        address = cluster.bootstrap_servers
        done = run("produce", "-t", "nowhere", "-v", "x", "-b", address, "--timeout", "600")
    assert (done.returncode, "UNKNOWN_TOPIC_OR_PARTITION" in done.stderr) == (1, True)


def test_topic_or_partition_that_is_not_there_exits_1(shared_broker):
    address = shared_broker.bootstrap_servers
    gone = run("consume", "-t", "nowhere", "-e", "-b", address)
    assert (gone.returncode, "UNKNOWN_TOPIC_OR_PARTITION" in gone.stderr) == (1, True)
    shared_broker.create_topic("small")
    beyond = run("consume", "-t", "small", "-p", "4", "-e", "-b", address)
    assert (beyond.returncode, "small has no partition 4, but 0 to 0" in beyond.stderr) == (1, True)
    refused = run("produce", "-t", "bad name", "-v", "x", "-b", address)
    assert (refused.returncode, "INVALID_TOPIC_EXCEPTION" in refused.stderr) == (1, True)


@pytest.mark.parametrize("command", ["produce", "consume"])
def test_help_says_what_the_command_does(command):
    done = run(command, "--help")
    assert done.returncode == 0
    assert "Exit code 1" in done.stdout
