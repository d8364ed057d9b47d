"""The journal as a test reads it, with an unmodified client: verify, near misses, expectations, `momus tail`."""

from __future__ import annotations

import json
import socket
import struct
import subprocess
import sys
from contextlib import closing
from threading import Event, Thread
from types import SimpleNamespace
from typing import IO

import pytest
from cluster_kit import Wire
from confluent_kafka import Consumer, Producer, TopicPartition
from test_control import momus

from momus import Broker
from momus.cli import journal_commands
from momus.control import ControlError
from momus.journal import JournalError
from protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic


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


def test_expectation_of_an_api_or_error_that_does_not_exist_is_refused_at_once(broker):
    with pytest.raises(ControlError, match="did you mean OffsetCommit"):
        broker.journal.expect(api="OffsetComit", times=0)
    with pytest.raises(ControlError, match="did you mean NOT_COORDINATOR"):
        broker.journal.verify(error="NOT_COORDINATR", times=0)
    assert list(broker.journal.unmet()) == []


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        ({"topic": ["orders", "bills"]}, "a filter is a text"),
        ({"since": "0"}, "no such filter: since"),
        ({"times": 0, "at_least": 1}, "give times, or"),
        ({"times": 0, "at_most": 1}, "give times, or"),
        ({"at_least": 2, "at_most": 1}, "no number of requests is 2 or more and 1 or less"),
        ({"times": -1}, "no number"),
    ],
)
def test_what_is_asked_is_not_passed_over(broker, wrong, says):
    """A list was taken for a pattern that fits nothing, and limits beside times for none."""
    for ask in (broker.journal.verify, broker.journal.expect):
        with pytest.raises(ValueError, match=says):
            ask(api="Metadata", **wrong)
    assert not list(broker.journal.unmet())


def test_filter_that_is_none_is_left_out_and_no_request_is_at_most_none(broker, name):
    """None was taken for a name that nobody has: times=0 was true of every client."""
    commit(broker, name, 7)
    with pytest.raises(JournalError, match="came 1 time, expected exactly 0"):
        broker.journal.verify(api="OffsetCommit", group=name, client_id=None, times=0)
    assert len(broker.journal.entries(api="OffsetCommit", group=name, client_id=None)) == 1
    assert broker.journal.verify(api="EndTxn", group=None, at_most=0) == []
    with pytest.raises(JournalError, match="came 1 time, expected exactly 0"):
        broker.journal.verify(api="OffsetCommit", group=name, at_most=0)


def test_upper_limit_is_not_kept_by_a_journal_that_is_off(name):
    with Broker(flush="memory") as broker:
        for words in ({"times": 0}, {"at_least": 0, "at_most": 3}):
            with pytest.raises(JournalError, match=r"as far as is known(?s:.*)the journal is off"):
                broker.journal.verify(api="Metadata", **words)
        assert broker.journal.verify(api="Metadata", at_least=0) == []
        with pytest.raises(ControlError, match="no API"):
            broker.journal.verify(api="Metadatum", times=0)


def test_upper_limit_is_not_kept_where_older_requests_had_to_make_room():
    with Broker(flush="memory", journal_mb=1) as broker:
        ask_api_versions(broker, 100)
        assert broker.journal.verify(api="OffsetCommit", times=0) == []
        broker.control.ask("POST", "/_admin/journal", {"bytes": 1 << 16})
        ask_api_versions(broker, 5000)
        with pytest.raises(JournalError, match="older requests had to make room: keep more"):
            broker.journal.verify(api="OffsetCommit", times=0)


def test_upper_limit_is_not_kept_where_a_request_was_too_large_to_be_read(broker):
    producer = Producer({"bootstrap.servers": broker.bootstrap_servers, "client.id": "large"})
    producer.produce("orders", b"x" * 5000)
    assert producer.flush(60) == 0
    with pytest.raises(JournalError, match=r"1 more may be such: above 4 kB .* do not tell topic; ask without topic"):
        broker.journal.verify(api="Produce", topic="invoices", client_id="large", times=0)
    assert len(broker.journal.verify(api="Produce", client_id="large", times=1)) == 1
    assert broker.journal.verify(group="nobody", client_id="large", times=0) == []


@pytest.mark.slow  # ten thousand requests, each decoded
def test_more_requests_than_an_answer_has_are_counted_all():
    with Broker(flush="memory", journal_mb=16) as broker:
        ask_api_versions(broker, 10_050)
        assert len(broker.journal.verify(api="ApiVersions", times=10_050)) == 10_000
        for words in ({"times": 10_000}, {"at_most": 10_000}):
            with pytest.raises(JournalError, match="came 10050 times"):
                broker.journal.verify(api="ApiVersions", **words)


def ask_api_versions(broker: Broker, times: int) -> None:
    """Send so many requests at once, and read all replies."""
    host, _, port = broker.bootstrap_servers.rpartition(":")
    with socket.create_connection((host, int(port))) as wire, wire.makefile("rb") as replies:
        sender = Thread(target=wire.sendall, args=(struct.pack(">ihhih", 10, 18, 0, 1, -1) * times,))
        sender.start()
        for _ in range(times):
            replies.read(int.from_bytes(replies.read(4), "big"))
        sender.join()


def test_fetches_of_a_session_are_found_by_its_topics(broker):
    """`verify(topic="orders", times=1)` passed, and `times=0` after the journal was cleared."""
    wanted = FetchTopic(topic="orders", partitions=[FetchPartition(partition=0, fetch_offset=1, partition_max_bytes=1)])
    words = {"max_wait_ms": 0, "min_bytes": 0, "max_bytes": 1}
    with broker.create_cluster(journal_mb=4) as cluster, closing(Wire(cluster.bootstrap_servers)) as wire:
        cluster.produce("orders", "x")
        answer = wire.call(FetchRequest(session_epoch=0, topics=[wanted], **words), 12)
        later = [FetchRequest(session_id=answer.session_id, session_epoch=epoch, **words) for epoch in (1, 2)]
        assert wire.call(later[0], 12).error_code == 0
        cluster.journal.verify(api="Fetch", topic="orders", times=2)
        cluster.journal.verify(api="Fetch", topic="invoices", times=0)
        cluster.journal.clear()
        assert wire.call(later[1], 12).error_code == 0
        with pytest.raises(JournalError, match=r"1 more may be such: .* a Fetch of a session names topics once"):
            cluster.journal.verify(api="Fetch", topic="orders", times=0)


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


def test_follower_of_a_cluster_that_is_reset_loses_nothing_that_comes_after(broker):
    with broker.create_cluster(journal_mb=4) as cluster:
        path, tail = f"{cluster.control.prefix}/journal", f"{cluster.control.prefix}/journal/tail?since=0"
        for number, begin_anew in enumerate((cluster.reset, cluster.record)):
            for _ in range(20):
                ask_api_versions(cluster, 1)
            if number == 0:
                now, found = cluster.journal.follow(0)
                assert len(found) == 20
                assert cluster.journal.follow(now) == (now, [])
                tail = cluster.control.ask("GET", tail)["next"]
            begin_anew()
            ask_api_versions(cluster, 3)
            at, found = cluster.journal.follow(now)
            assert (len(found), cluster.journal.follow(at)) == (3, (at, []))
            assert len(cluster.control.ask("GET", tail)["entries"]) == 3
        assert cluster.control.ask("GET", f"{path}?since={now}")["now"] == at


def test_follower_gets_requests_that_are_answered_while_it_is_answered():
    with Broker(flush="memory", journal_mb=4) as broker:
        sender = Thread(target=lambda: [ask_api_versions(broker, 10) for _ in range(200)])
        sender.start()
        now, numbers, is_over = 0, [], False
        while not is_over:
            is_over = not sender.is_alive()
            now, found = broker.journal.follow(now, api="ApiVersions")
            numbers += [each["answered"] for each in found]
        sender.join()
        assert len(numbers) == len(set(numbers)) == 2000


@pytest.mark.slow  # as above
def test_follower_gets_all_of_more_requests_than_an_answer_has():
    with Broker(flush="memory", journal_mb=16) as broker:
        ask_api_versions(broker, 1)
        now, _ = broker.journal.follow(0)
        ask_api_versions(broker, 20_050)
        now, found = broker.journal.follow(now, api="ApiVersions")
        assert len({each["answered"] for each in found}) == len(found) == 20_050
        assert broker.journal.follow(now) == (now, [])


def test_tail_says_where_requests_had_to_make_room_before_it_could_show_them(monkeypatch, capsys):
    with Broker(flush="memory", journal_mb=1) as broker:
        broker.control.ask("POST", "/_admin/journal", {"bytes": 1 << 16})
        bursts = iter((1, 5000, 1))

        def sleep(seconds: float) -> None:
            ask_api_versions(broker, next(bursts))

        monkeypatch.setattr(journal_commands, "time", SimpleNamespace(sleep=sleep))
        with pytest.raises(StopIteration):
            journal_commands._show(broker.journal, {"api": "ApiVersions"}, 10, once=False, as_json=False)
        shown = capsys.readouterr()
        assert shown.err.count("had to make room before they could be shown") == 1
        assert 2 < shown.out.count("ApiVersions") < 5000


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
        assert cluster.produce("t", "x") == [(0, 0)]
