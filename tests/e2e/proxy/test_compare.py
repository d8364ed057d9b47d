"""What passes a proxy is recorded, played on a fresh momus, and compared."""

from __future__ import annotations

import json
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
from kafka import KafkaProducer
from kafka.errors import KafkaError as KafkaPythonError

from momus import Broker

PROGRAM = """
import os
from confluent_kafka import Consumer, Producer
servers = os.environ["BOOTSTRAP_SERVERS"]
producer = Producer({"bootstrap.servers": servers, "transactional.id": "copier"})
producer.init_transactions(60)
for number in range(4):
    producer.begin_transaction()
    for each in range(10):
        producer.produce("compared", str(each), key=str(each))
    producer.commit_transaction(60) if number % 2 else producer.abort_transaction(60)
consumer = Consumer({"bootstrap.servers": servers, "group.id": "readers", "auto.offset.reset": "earliest"})
consumer.subscribe(["compared"])
found = 0
while found < 20:
    found += sum(message.error() is None for message in consumer.consume(100, 5))
consumer.commit(asynchronous=False)
consumer.close()
"""


def run(*words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-m", "momus", *words], capture_output=True, text=True, timeout=300)


def test_a_program_meets_the_same_answers_on_momus(upstream, tmp_path):
    upstream.create_topic("compared", 2)
    paths = {name: str(tmp_path / name) for name in ("run.momus", "result.md", "result.xml")}
    options = ["--record", paths["run.momus"], "--markdown", paths["result.md"], "--junit", paths["result.xml"]]
    command = ["--", sys.executable, "-c", PROGRAM]
    done = run("compare", "--to", upstream.bootstrap_servers, *options, *command)
    assert done.returncode == 0, done.stdout + done.stderr
    first = done.stdout.splitlines()[0]
    assert " answers, 0 different, " in first
    assert int(first.split()[0].replace(",", "")) > 30
    assert first.rstrip(".") in Path(paths["result.md"]).read_text()
    again = run("replay", paths["run.momus"])
    assert (again.returncode, " 0 different, " in again.stdout) == (0, True), again.stdout + again.stderr


def test_momus_is_set_as_the_cluster_was(tmp_path):
    path = tmp_path / "run.momus"
    settings = {
        "num.partitions": 7,
        "offsets.topic.num.partitions": 5,
        "message.max.bytes": 1000,
        "group.consumer.heartbeat.interval.ms": 5100,
    }
    with Broker(config=settings) as upstream, Broker(upstream=upstream.bootstrap_servers) as proxy:
        proxy.record_file = str(path)
        proxy.stop()
        proxy.start()
        producer = KafkaProducer(bootstrap_servers=proxy.bootstrap_servers, enable_idempotence=False, retries=0)
        with pytest.raises(KafkaPythonError):
            producer.send("made-by-asking", b"x" * 5000).get(60)
        producer.close()
        proxy.stop()
    with zipfile.ZipFile(path) as file:
        told = json.loads(file.read("about.json"))["config"]
    assert {name: told[name] for name in settings} == {name: str(value) for name, value in settings.items()}
    again = run("replay", str(path))
    assert (again.returncode, " 0 different, " in again.stdout) == (0, True), again.stdout + again.stderr


def test_a_difference_is_named_and_no_secret_is_in_the_file(tmp_path):
    path = tmp_path / "run.momus"
    upstream = Broker(security="sasl_plaintext", users={"alice": "pencil"})
    with upstream:
        upstream.create_topic("small", config={"max.message.bytes": 1000})  # settings of topics are not recorded
        proxy = Broker(upstream=upstream.bootstrap_servers)
        proxy.upstream_config = {
            "security.protocol": "SASL_PLAINTEXT",
            "sasl.mechanism": "SCRAM-SHA-256",
            "sasl.username": "alice",
            "sasl.password": "pencil",
        }
        proxy.record_file = str(path)
        with proxy:
            producer = KafkaProducer(bootstrap_servers=proxy.bootstrap_servers, enable_idempotence=False, retries=0)
            with pytest.raises(KafkaPythonError):
                producer.send("small", b"x" * 5000).get(60)
            producer.close()
            proxy.stop()
    again = run("replay", str(path))
    assert again.returncode == 1
    assert "partition_responses[0].error_code was 10 in the recording, and is 0 now" in again.stdout
    with zipfile.ZipFile(path) as file:
        assert all(b"pencil" not in file.read(name) for name in file.namelist())
