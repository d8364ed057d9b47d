"""The journal as a test reads it, with an unmodified client: verify, near misses, expectations, `momus tail`."""

from __future__ import annotations

import json
import subprocess
import sys
from threading import Event, Thread
from typing import IO

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from test_control import momus

from momus import Broker
from momus.control import ControlError
from momus.journal import JournalError


@pytest.fixture(scope="module")
def broker():
    with Broker(journal_mb=16) as broker:
        producer = Producer({"bootstrap.servers": broker.bootstrap_servers})
        producer.produce("orders", b"x")
        assert producer.flush(60) == 0
        yield broker


def commit(broker: Broker, group: str, *offsets: int) -> None:
    client = Consumer(
        {"bootstrap.servers": broker.bootstrap_servers, "group.id": group, "client.id": f"{group}-client"}
    )
    for offset in offsets:
        client.commit(offsets=[TopicPartition("orders", 0, offset)], asynchronous=False)
    client.close()


def test_verify_answers_the_decoded_requests(broker, name):
    commit(broker, name, 7, 8)
    found = broker.journal.verify(api="OffsetCommit", group=name, times=2)
    rows = [each["request"]["topics"][0]["partitions"][0]["committed_offset"] for each in found]
    assert rows == [7, 8]
    assert all(each["software"].startswith("confluent-kafka-python") for each in found)
    assert all(each["client_id"] == f"{name}-client" for each in found)
    assert all(each["latency_ms"] >= 0 for each in found)


def test_verify_that_fails_shows_what_came_near(broker, name):
    commit(broker, name, 7)
    with pytest.raises(JournalError) as failed:
        broker.journal.verify(api="OffsetCommit", group=name, topic="invoices", times=1)
    text = str(failed.value)
    assert text.startswith(f"api=OffsetCommit group={name} topic=invoices came 0 times, expected exactly 1")
    assert "but for topic=invoices: " in text
    assert f"group={name}  topic=orders" in text


def test_verify_of_too_many_shows_them(broker, name):
    commit(broker, name, 7, 8)
    with pytest.raises(JournalError, match="came 2 times, expected 0 to 1"):
        broker.journal.verify(api="OffsetCommit", group=name, at_least=0, at_most=1)


def test_expectation_that_is_not_met_is_told_at_the_end(broker, name):
    journal = broker.journal
    journal.expect(api="OffsetCommit", group=name, times=1)
    assert len(list(journal.unmet())) == 1
    commit(broker, name, 7)
    assert list(broker.journal.unmet()) == []
    journal.clear()


def test_error_is_a_filter_and_the_fault_is_named(broker, name):
    fault = broker.faults.inject_error("OffsetCommit", "COORDINATOR_LOAD_IN_PROGRESS", group=name, trigger="once")
    commit(broker, name, 7)
    (refused,) = broker.journal.verify(error="COORDINATOR_LOAD_IN_PROGRESS", group=name, times=1)
    assert refused["fault"] == fault.name
    assert f"({fault.name})" in broker.journal.last()
    fault.remove()


def test_journal_that_is_off_says_so(name):
    with Broker() as broker:
        with pytest.raises(JournalError, match="the journal is off"):
            broker.journal.verify(api="Metadata")
        broker.journal.keep(1)
        Producer({"bootstrap.servers": broker.bootstrap_servers}).list_topics(timeout=60)
        assert broker.journal.verify(api="Metadata")
        with pytest.raises(ControlError, match="0 bytes, for none"):
            broker.control.ask("POST", "/_admin/journal", {"bytes": 5})
        for words in ("limit=0", "limit=x", "since=-1"):
            with pytest.raises(ControlError, match="whole number"):
                broker.control.ask("GET", f"/_admin/journal?{words}")


def test_tail_shows_requests_as_lines_and_as_json(broker, name):
    commit(broker, name, 7)
    control = ("--control", broker.control.address)
    lines = momus("tail", "--once", "--api", "OffsetCommit", "--group", name, *control).stdout.splitlines()
    assert len(lines) == 1
    assert f"group={name}  topic=orders" in lines[0]
    (text,) = momus("tail", "--once", "--json", "--group", name, "--api", "OffsetCommit", *control).stdout.splitlines()
    assert json.loads(text)["request"]["group_id"] == name


def test_tail_follows(broker, name):
    words = ["tail", "-n", "0", "--group", name, "--api", "OffsetCommit", "--control", broker.control.address]
    with subprocess.Popen([sys.executable, "-u", "-m", "momus", *words], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        seen = Event()
        lines: list[str] = []

        def read(pipe: IO[str]) -> None:
            lines.append(pipe.readline())
            seen.set()

        reader = Thread(target=read, args=(process.stdout,), daemon=True)
        reader.start()
        try:
            while not seen.is_set():  # it may not have begun to look
                commit(broker, name, 7)
        finally:
            process.terminate()
        assert f"group={name}" in lines[0]


def test_tail_turns_a_journal_on_that_is_off():
    with Broker() as broker:
        assert momus("tail", "--once", "--control", broker.control.address).returncode == 0
        Producer({"bootstrap.servers": broker.bootstrap_servers}).list_topics(timeout=60)
        assert "Metadata" in momus("tail", "--once", "--control", broker.control.address).stdout


def test_clusters_have_journals_of_their_own_which_a_reset_empties(broker):
    with broker.create_cluster() as cluster:
        Producer({"bootstrap.servers": cluster.bootstrap_servers}).list_topics(timeout=60)
        seen = {each["connection"] for each in cluster.journal.verify(api="Metadata")}
        assert not seen & {each["connection"] for each in broker.journal.entries()}
        cluster.reset()
        assert cluster.journal.entries() == []
        Producer({"bootstrap.servers": cluster.bootstrap_servers}).list_topics(timeout=60)
        assert cluster.journal.verify(api="Metadata")


def test_faults_of_one_cluster_are_not_met_in_another(broker):
    with broker.create_cluster(flush="os") as cluster:
        cluster.faults.inject_error("Metadata", "UNKNOWN_SERVER_ERROR")
        full = cluster.faults.full_disk()
        assert broker.faults.list() == []
        broker.produce("orders", "x")
        with pytest.raises(ControlError):
            cluster.create_topic("t")
        assert full.hits
        cluster.reset()
        assert cluster.faults.list() == []
        cluster.create_topic("t")
        assert cluster.produce("t", "x") == [0]
