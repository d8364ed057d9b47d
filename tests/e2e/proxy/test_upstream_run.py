"""`pytest --momus-upstream`: a suite on a cluster that others use too, what it skips, and what it leaves there."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from momus import Broker

SUITE = """
import os, pytest

@pytest.mark.momus(topics={"orders": 2}, faults=[{"fault": "delay_on", "ms": 1, "api": "Produce", "topic": "orders"}])
def test_orders(kafka_broker):
    from kafka import KafkaProducer
    orders, billing = kafka_broker.name("orders"), kafka_broker.name("billing")
    producer = KafkaProducer(bootstrap_servers=kafka_broker.bootstrap_servers)
    producer.send(orders, b"x").get(60)
    producer.send(kafka_broker.name("made-by-asking"), b"x").get(60)
    producer.close()
    assert [each.value for each in kafka_broker.consume(orders, 1)] == [b"x"]
    kafka_broker.journal.verify(api="Produce", topic=orders, times=1)
    from kafka import KafkaConsumer
    consumer = KafkaConsumer(orders, bootstrap_servers=kafka_broker.bootstrap_servers, group_id=billing,
                             auto_offset_reset="earliest")
    next(consumer)
    consumer.commit()
    consumer.close()
    assert sum(kafka_broker.committed(billing).values()) == 1

def test_faults_of_one_test_are_not_met_by_the_next(kafka_broker):
    assert kafka_broker.control.ask("GET", kafka_broker.control.prefix + "/faults") == []

def test_time(kafka_broker):
    kafka_broker.clock.advance(days=8)

@pytest.mark.momus(seed=7)
def test_seed(kafka_broker): ...

def test_disk(kafka_broker):
    kafka_broker.faults.slow_disk(3)

def test_process(kafka_process_broker):
    broker, topic = kafka_process_broker, kafka_process_broker.name("killed")
    broker.create_topic(topic)
    broker.produce(topic, "x")
    broker.kill()
    broker.start()
    assert len(broker.consume(topic, 1)) == 1
"""
DYING = """
import os, signal

def test_dies(kafka_broker):
    kafka_broker.create_topic(kafka_broker.name("left"))
    os.kill(os.getpid(), signal.SIGKILL)
"""


def run(folder: Path, suite: str, *words: str) -> subprocess.CompletedProcess[str]:
    (folder / "test_suite.py").write_text(suite)
    command = [sys.executable, "-m", "pytest", "-q", "-W", "ignore", *words]
    environment = {key: value for key, value in os.environ.items() if not key.startswith("PYTEST")}
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=300, env=environment)


@pytest.fixture
def cluster(upstream: Broker) -> Broker:
    """The cluster, with a topic of somebody else's."""
    if "others" not in topics(upstream):
        upstream.create_topic("others")
    return upstream


def topics(broker: Broker) -> set[str]:
    rows: list[dict[str, str]] = broker.control.ask("GET", "/_admin/topics")["topics"]  # type: ignore[index]  # JSON
    return {row["topic"] for row in rows if not row["topic"].startswith("__")}


def test_a_suite_runs_on_a_real_cluster_and_leaves_what_it_did_not_create(cluster, tmp_path):
    there = run(tmp_path, SUITE, "--momus-upstream", cluster.bootstrap_servers)
    assert "3 passed, 3 skipped" in there.stdout, there.stdout
    assert "3 tests need what a real cluster cannot do:" in there.stdout
    assert "test_suite.py::test_time: this is a proxy: the clock is inside" in there.stdout
    assert "test_suite.py::test_seed: this is a proxy: seed cannot be had of a real cluster" in there.stdout
    assert "left in it: topic made-by-asking-cluster-1-" in there.stdout
    left = topics(cluster)
    assert {"others"} == {name for name in left if not name.startswith("made-by-asking")}
    for name in left - {"others"}:
        cluster_delete(cluster, name)
    assert list((tmp_path / ".pytest_cache/d/momus-runs").iterdir()) == []


def cluster_delete(cluster: Broker, name: str) -> None:
    words = [sys.executable, "-m", "momus", "topic", "delete", "-b", cluster.bootstrap_servers, name]
    subprocess.run(words, check=True, capture_output=True, timeout=60)


def test_what_a_killed_run_has_created_goes_at_the_start_of_the_next_one(cluster, tmp_path):
    died = run(tmp_path, DYING, "--momus-upstream", cluster.bootstrap_servers)
    assert died.returncode == -signal.SIGKILL
    (kept,) = (tmp_path / ".pytest_cache/d/momus-runs").glob("*/topics.json")
    assert [name.startswith("left-cluster-1-") for name in json.loads(kept.read_text())["topics"].values()] == [True]
    after = run(tmp_path, "def test_next(kafka_broker): ...", "--momus-upstream", cluster.bootstrap_servers)
    assert "1 passed" in after.stdout
    assert topics(cluster) == {"others"}
    assert list((tmp_path / ".pytest_cache/d/momus-runs").iterdir()) == []
