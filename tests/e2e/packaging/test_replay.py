"""A failing test is kept as one file, and `momus replay` plays its requests again and names an answer that differs."""

from __future__ import annotations

import json
import random
import shutil
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from kafka import KafkaProducer
from test_control import momus

from momus import Broker
from momus.cli.replay.bundle import EVENT, SENT, TOOK, Bundle, frames
from protocol.api import ApiKey, response_class
from protocol.codegen import codec
from protocol.header import decode_request_header, response_header_version

pytest_plugins = ["pytester"]

ALONE = ("-p", "no:cacheprovider", "-p", "no:asyncio", "-p", "no:xdist", "-W", "ignore")
COPIES = """
import pytest
from kafka import KafkaConsumer, KafkaProducer
from kafka.structs import OffsetAndMetadata, TopicPartition

@pytest.mark.momus(topics={"orders": 2})
def test_copies(kafka_broker):
    kafka_broker.produce("orders", "a", "b", "c")
    words = kafka_broker.client_config("kafka-python")
    consumer = KafkaConsumer(
        "orders", group_id="billing", auto_offset_reset="earliest", enable_auto_commit=False, **words
    )
    producer = KafkaProducer(transactional_id="copier", **words)
    producer.init_transactions()
    for number in range(3):
        record = next(consumer)
        producer.begin_transaction()
        producer.send("copies", record.value)
        offsets = {TopicPartition(record.topic, record.partition): OffsetAndMetadata(record.offset + 1, "", -1)}
        producer.send_offsets_to_transaction(offsets, consumer.group_metadata())
        producer.abort_transaction() if record.value == b"b" else producer.commit_transaction()
    consumer.close()
    producer.close()
    assert len(kafka_broker.consume("copies", isolation="committed")) == 3

def test_passes(kafka_broker):
    kafka_broker.create_topic("orders")
"""
MEMBERS = """
import pytest
from confluent_kafka import Consumer, KafkaException, Producer

@pytest.mark.momus(brokers=2, topics={"orders": 4}, seed=7)
def test_members(kafka_broker):
    producer = Producer({**kafka_broker.client_config("confluent"), "enable.idempotence": True})
    for number in range(20):
        producer.produce("orders", b"%d" % number, partition=number % 4)
    producer.flush(30)
    fault = kafka_broker.faults.inject_error("OffsetCommit", "COORDINATOR_LOAD_IN_PROGRESS", trigger="once")
    words = {
        **kafka_broker.client_config("confluent"),
        "group.id": "billing",
        "auto.offset.reset": "earliest",
        "enable.auto.commit": False,
    }
    first, second = Consumer({**words, "group.protocol": "consumer"}), Consumer({**words, "group.protocol": "consumer"})
    for consumer in (first, second):
        consumer.subscribe(["orders"])
    seen = 0
    while seen < 20:
        for consumer in (first, second):
            message = consumer.poll(0.1)
            if message is not None and message.error() is None:
                seen += 1
                try:
                    consumer.commit(message, asynchronous=False)
                except KafkaException as error:  # the members of the group change meanwhile
                    print(error)
    second.close()
    kafka_broker.clock.advance(minutes=1)
    kafka_broker.wait_for_group("billing", "dead", timeout=0.1)
    first.close()
"""


@pytest.fixture
def keep_run(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], Path]:
    """Runs tests, of which one fails, and answers the file that is kept of it."""
    for name in ("MOMUS_ADDRESS", "MOMUS_FLUSH", "MOMUS_SEED"):
        monkeypatch.delenv(name, raising=False)

    def run(code: str, *options: str) -> Path:
        pytester.makepyfile(code)
        result = pytester.runpytest_subprocess(*ALONE, "--momus-keep-failed", "kept", *options)
        found = list((pytester.path / "kept").iterdir())
        assert len(found) == 1, result.stdout.str()
        result.stdout.fnmatch_lines([f"*momus replay kept/{found[0].name}*"])
        return found[0]

    return run


def replay(path: Path, *options: str) -> tuple[int, Any]:
    """Exit code, and what it tells."""
    done = momus("replay", str(path), "--json", *options)
    assert done.stdout, done.stderr
    return done.returncode, json.loads(done.stdout)


def changed(path: Path, api: ApiKey, change: Callable[[Any], None]) -> tuple[Path, int]:
    """The file with another answer to the last request of an API; and the number of that request."""
    asked: dict[tuple[int, int], tuple[int, int, int]] = {}
    events, number, last = list(Bundle(str(path)).events()), 0, (-1, -1, 0)
    for at, event in enumerate(events):
        for index, frame in enumerate(frames(event.data) if event.kind in (TOOK, SENT) else ()):
            if event.kind == TOOK:
                number += 1
                header, _ = decode_request_header(frame, 0)
                asked[event.connection, header.correlation_id] = number, header.api_key, header.api_version
                continue
            of, key, version = asked[event.connection, int.from_bytes(frame[:4], "big")]
            if key == api:
                last, found_version = (at, index, of), version
    at, wanted, of = last
    parts = []
    for index, frame in enumerate(frames(events[at].data)):
        if index == wanted:
            start = 4 + response_header_version(api, found_version)
            message, _ = codec(response_class(api), found_version).decode(frame, start)
            change(message)
            frame = frame[:start] + codec(response_class(api), found_version).encode(message)
        parts.append(len(frame).to_bytes(4, "big") + frame)
    events[at] = events[at]._replace(data=b"".join(parts))
    other = path.with_name("changed.momus")
    with zipfile.ZipFile(path) as source, zipfile.ZipFile(other, "w") as target:
        for name in source.namelist():
            data = source.read(name)
            if name == "events":
                data = b"".join(EVENT.pack(*event[:4], len(event.data)) + event.data for event in events)
            target.writestr(name, data)
    return other, of


def test_run_with_transactions_and_a_group_is_played_again_without_a_difference(keep_run):
    path = keep_run(COPIES)
    code, told = replay(path)
    assert (code, told["difference"], told["notes"]) == (0, None, [])
    assert told["compared"] > 25
    with zipfile.ZipFile(path) as file:
        assert {"about.json", "events", "journal.jsonl", "log.txt", "report.txt", "test.json"} <= {*file.namelist()}
        assert "assert 2 == 3" in file.read("report.txt").decode()
        apis = {json.loads(line)["api"] for line in file.read("journal.jsonl").splitlines()}
        assert {"EndTxn", "TxnOffsetCommit", "JoinGroup"} <= apis
        assert json.loads(file.read("about.json"))["is_whole"]


def test_answer_that_was_changed_is_named_with_its_request(keep_run):
    path = keep_run(COPIES)

    def refuse(answer: Any) -> None:
        answer.error_code = 49

    other, number = changed(path, ApiKey.END_TXN, refuse)
    code, told = replay(other)
    assert code == 1
    assert (told["difference"]["number"], told["difference"]["api"]) == (number, "EndTxn")
    assert told["difference"]["path"] == "error_code"
    assert (told["difference"]["recorded"], told["difference"]["found"]) == (49, 0)

    def move(answer: Any) -> None:
        answer.topics[0].partitions[0].error_code = 25

    other, number = changed(path, ApiKey.TXN_OFFSET_COMMIT, move)
    done = momus("replay", str(other))
    assert done.returncode == 1
    assert done.stdout.startswith(f"request {number}, TxnOffsetCommit v")
    assert "topics[0].partitions[0].error_code was 25 in the recording, and is 0 now" in done.stdout


def test_members_faults_moved_clocks_and_brokers_are_played_again(keep_run):
    path = keep_run(MEMBERS)
    code, told = replay(path)
    assert (code, told["difference"], told["notes"]) == (0, None, [])
    assert told["compared"] > 50


@pytest.mark.parametrize("flush", ["os", "fsync"])
def test_runs_on_disk_are_kept_as_well(keep_run, flush):
    assert replay(keep_run(COPIES, "--momus-flush", flush))[0] == 0


def test_run_is_played_against_a_broker_that_is_there_already(keep_run):
    path = keep_run(COPIES)
    with Broker(config={"num.partitions": 1}) as broker:
        for _ in range(3):  # its producer ids are other ones, and the epochs of this name
            producer = KafkaProducer(**broker.client_config("kafka-python"), transactional_id="copier")
            producer.init_transactions()
            producer.close()
        code, told = replay(path, "--against", broker.bootstrap_servers)
        assert (code, told["difference"], told["notes"]) == (0, None, [])
        assert [record.value for record in broker.consume("copies", isolation="committed")] == [b"a", b"c"]


def test_reset_and_restore_in_a_run_are_played_again(keep_run):
    path = keep_run(
        """
from kafka import KafkaProducer

def test_it(kafka_broker):
    def send(value):
        producer = KafkaProducer(**kafka_broker.client_config("kafka-python"))
        producer.send("orders", value).get(30)
        producer.close()
    send(b"a")
    snapshot = kafka_broker.snapshot()
    send(b"b")
    kafka_broker.reset()
    send(b"c")
    kafka_broker.restore(snapshot)
    send(b"d")
    assert [record.value for record in kafka_broker.consume("orders")] == []
"""
    )
    code, told = replay(path)
    assert (code, told["difference"], told["notes"]) == (0, None, [])


def test_file_that_is_no_run_is_refused(tmp_path):
    (tmp_path / "x").write_text("no run")
    done = momus("replay", str(tmp_path / "x"))
    assert (done.returncode, "is not a run that momus has kept" in done.stderr) == (1, True)
    assert momus("replay", str(tmp_path / "none")).returncode == 2


def test_passing_tests_leave_nothing(pytester):
    pytester.makepyfile("def test_it(kafka_broker):\n    kafka_broker.create_topic('t')\n")
    pytester.runpytest_subprocess(*ALONE, "--momus-keep-failed", "kept").assert_outcomes(passed=1)
    assert not (pytester.path / "kept").exists()
    shutil.rmtree(pytester.path)


SAMPLE = Path(__file__).parents[1] / "samples" / "0.1.0" / "run.momus"


@pytest.mark.parametrize("command", ["replay", "open"])
def test_recording_that_is_cut_off_ends_in_a_sentence(command, tmp_path):
    path = tmp_path / "theirs.momus"
    path.write_bytes(SAMPLE.read_bytes()[:-300])
    done = momus(command, str(path))
    assert done.returncode == 1
    assert done.stderr.startswith(f"Error: {path} is not a run that momus has kept: ")


@pytest.mark.parametrize("seed", range(4))
def test_recording_with_other_bytes_in_its_requests_is_played_or_refused_by_its_name(seed, tmp_path):
    """Whole frames of nonsense: what reads them on the way ends in no traceback, and not in exit code 0."""
    chance, path = random.Random(seed), tmp_path / "theirs.momus"
    with zipfile.ZipFile(SAMPLE) as file, zipfile.ZipFile(path, "w") as made:
        for name in file.namelist():
            data = bytearray(file.read(name))
            if name == "events":
                position = 0
                while position < len(data):
                    kind, size = data[position], EVENT.unpack_from(data, position)[4]
                    position += EVENT.size
                    for _ in range(3 if kind in (TOOK, SENT) and size > 20 and chance.random() < 0.3 else 0):
                        data[position + chance.randrange(4 if kind == SENT else 12, size)] = chance.randrange(256)
                    position += size
            made.writestr(name, bytes(data))
    done = momus("replay", str(path))
    assert "Traceback" not in done.stderr
    assert (done.returncode, bool(done.stdout)) == (1, True) or str(path) in done.stderr, done
