"""`momus offsets` and `momus storage` against a running broker and against the files of one that has stopped."""

from __future__ import annotations

import json
import subprocess
import sys
from collections import Counter

import pytest
from cluster_kit import topics
from confluent_kafka import Consumer, Producer, TopicPartition
from core_requests import commit_request

from momus import Broker
from momus.optimistic import NONE, commit_if
from protocol.messages.share_group import ShareGroupHeartbeatRequest


def momus(*arguments: str, code: int = 0, stdin: str | None = None) -> str:
    command = [sys.executable, "-m", "momus", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, input=stdin)
    assert done.returncode == code, done.stderr
    return done.stdout


@pytest.fixture
def filled(broker_factory, tmp_path):
    """A broker with some offsets in a directory of its own."""
    broker = broker_factory(data_dir=tmp_path)
    at = broker.bootstrap_servers
    momus("topic", "create", "t", "-p", "3", "-b", at)
    commit_if(at, "g", {("t", 0): (5, NONE), ("t", 1): (6, NONE)})
    commit_if(at, "g", {("t", 0): (7, 5)})
    commit_if(at, "other", {("t", 2): (1, NONE)})
    return broker


SHOWN = [("g", "t", 0, 7), ("g", "t", 1, 6), ("other", "t", 2, 1)]
SET = [("g", 0, 5), ("g", 1, 6), ("g", 0, 7), ("other", 2, 1)]


def shown(*where: str) -> list[tuple[str, str, int, int]]:
    rows = json.loads(momus("offsets", "show", "--json", *where))
    return [(row["group"], row["topic"], row["partition"], row["offset"]) for row in rows]


def told(*where: str) -> list[dict]:
    return [json.loads(line) for line in momus("offsets", "history", "--json", *where).splitlines()]


def test_offsets_are_the_same_from_the_broker_and_from_its_files(filled, tmp_path):
    online, offline = ("-b", filled.bootstrap_servers), ("-d", str(tmp_path))
    assert shown(*online) == SHOWN
    exported = momus("offsets", "export", *online)
    history = told(*online)
    filled.stop()
    before = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    assert shown(*offline) == SHOWN
    assert shown("-g", "other", *offline) == SHOWN[2:]
    assert momus("offsets", "export", *offline) == exported
    assert told(*offline) == history
    assert sorted((row["group"], row["partition"], row["offset"]) for row in history) == sorted(SET)
    assert {row["client"] for row in history} == {"momus"}
    assert {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()} == before


def test_history_names_topic_and_partition_wanted(filled):
    at = ("-b", filled.bootstrap_servers)
    assert [row["offset"] for row in told("-g", "g", "-t", "t", "-p", "0", *at)] == [5, 7]
    assert told("-t", "none", *at) == []
    assert "CLIENT" in momus("offsets", "history", *at)


def test_history_shows_refused_commits_beside_accepted_ones(wires):
    with Broker(journal_mb=4) as process, process.create_cluster(name="one") as cluster:
        cluster.create_topic("t", 2)
        at = ("-b", cluster.bootstrap_servers, "--control", process.control.address, "--cluster", "one")
        commit_if(cluster.bootstrap_servers, "g", {("t", 0): (5, NONE)})
        wire = wires(cluster.bootstrap_servers)
        topic_id = topics(wire)["t"]
        for version in (9, 10):  # by name, and by id
            request = commit_request("g", {0: 6, 1: 7}, member_id="gone", generation_id_or_member_epoch=3)
            request.topics[0].topic_id = topic_id
            wire.call(request, version)
        commit_if(cluster.bootstrap_servers, "g", {("t", 0): (8, 5)})
        rows = told(*at)
        # in any order: an accepted and a refused one may be of the same millisecond
        assert Counter((row["partition"], row["offset"], row["refused"]) for row in rows) == {
            (0, 5, None): 1,
            (0, 6, "UNKNOWN_MEMBER_ID"): 2,
            (1, 7, "UNKNOWN_MEMBER_ID"): 2,
            (0, 8, None): 1,
        }
        assert {row["topic"] for row in rows} == {"t"}
        refused = next(row for row in rows if row["refused"])
        assert (refused["member"], refused["generation"], refused["topic"], refused["client"]) == (
            "gone",
            3,
            "t",
            "client",
        )
        assert "gone" in refused["why"]
        assert len(told("-p", "1", *at)) == 2
        text = momus("offsets", "history", *at)
        assert text.count("UNKNOWN_MEMBER_ID") == 4
        assert "REFUSED" in text
        assert all(row["refused"] is None for row in told(*at[:2]))
        process.control.ask("DELETE", "/_admin/clusters/one/journal")
        assert [row["offset"] for row in told(*at)] == [5, 8]


def test_history_tells_what_became_of_the_commits_of_transactions(filled, tmp_path):
    at = filled.bootstrap_servers
    consumer = Consumer({"bootstrap.servers": at, "group.id": "g"})
    producer = Producer({"bootstrap.servers": at, "transactional.id": "x"})
    producer.init_transactions(10)
    for offset, end in ((20, producer.commit_transaction), (21, producer.abort_transaction), (22, None)):
        producer.begin_transaction()
        producer.send_offsets_to_transaction([TopicPartition("t", 0, offset)], consumer.consumer_group_metadata(), 10)
        if end is not None:
            end(10)
    expected = [(5, None), (7, None), (20, "committed"), (21, "aborted"), (22, "open")]
    assert [(row["offset"], row["outcome"]) for row in told("-g", "g", "-p", "0", "-b", at)] == expected
    assert momus("offsets", "history", "-b", at).count("aborted") == 1
    consumer.close()
    filled.kill()
    assert [(row["offset"], row["outcome"]) for row in told("-g", "g", "-p", "0", "-d", str(tmp_path))] == expected
    assert ("g", "t", 0, 20) in shown("-d", str(tmp_path))


def test_share_groups_do_not_keep_the_others_from_being_shown(filled, wires):
    member = "AAAAAAAAAAAAAAAAAAAAAA"
    request = ShareGroupHeartbeatRequest(group_id="s", member_id=member, member_epoch=0, subscribed_topic_names=["t"])
    assert wires(filled.bootstrap_servers).call(request, 1).error_code == 0
    assert shown("-b", filled.bootstrap_servers) == SHOWN
    assert momus("offsets", "export", "-b", filled.bootstrap_servers).count("\n") == len(SHOWN)


def test_exported_offsets_are_imported_elsewhere(filled, broker_factory, tmp_path):
    exported = momus("offsets", "export", "-b", filled.bootstrap_servers)
    other = broker_factory().bootstrap_servers
    momus("offsets", "import", "-b", other, stdin=exported, code=1)
    momus("topic", "create", "t", "-p", "3", "-b", other)
    momus("offsets", "import", "-b", other, stdin=exported)
    assert shown("-b", other) == SHOWN
    momus("offsets", "import", "-b", other, stdin="nonsense", code=2)


def test_storage_check_finds_what_is_damaged_and_repair_cuts_it(filled, tmp_path):
    filled.stop()
    assert all(not row["damage"] for row in json.loads(momus("storage", "check", "--json", "-d", str(tmp_path))))
    log = max(tmp_path.glob("__consumer_offsets-*/*.log"), key=lambda path: path.stat().st_size)
    data = bytearray(log.read_bytes())
    data[-1] ^= 1
    log.write_bytes(data)
    name = log.parent.name
    (row,) = json.loads(momus("storage", "check", "--json", "-d", str(tmp_path), name, code=1))
    assert "wrong CRC" in row["damage"][0]
    assert "gave up" in momus("storage", "repair", "-d", str(tmp_path), name)
    momus("storage", "check", "-d", str(tmp_path), name)
    momus("storage", "check", "-d", str(tmp_path), "nothing-0", code=2)
