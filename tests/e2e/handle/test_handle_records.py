"""Arranging and looking without a client: topics, records, names and headers, and what is refused."""

from __future__ import annotations

import io
import threading
import zipfile
from concurrent.futures import ThreadPoolExecutor

import pytest
from clientwork import until
from confluent_kafka import Producer, TopicPartition
from confluent_kafka.admin import AdminClient
from handle_kit import consumer_of
from test_control import momus

from momus.control import ControlError
from momus.handle import ClusterHandle, WaitTimeoutError


def test_records_that_are_produced_are_those_a_client_reads_and_the_other_way_round(cluster):
    cluster.create_topic("t", partitions=3, config={"retention.ms": 1000000, "message.timestamp.type": "CreateTime"})
    headers = [("h", b"\xff"), ("n", None), ("s", "text")]
    assert cluster.produce("t", "a", b"\x00\xff", None, key=b"\xfe", partition=2, headers=headers) == [
        (2, 0),
        (2, 1),
        (2, 2),
    ]
    assert cluster.produce("t", "d", partition=2, timestamp_ms=5) == [(2, 3)]
    producer = Producer(cluster.client_config("confluent"))
    producer.produce("t", b"\xf0", key=b"k", partition=1, headers=[("x", b"y")], timestamp=1_700_000_000_123)
    producer.flush(60)
    consumer = consumer_of(cluster, "g")
    consumer.assign([TopicPartition("t", 2, 0)])
    seen: list[object] = []
    until(lambda: seen.extend(consumer.consume(10, 0.2)) or len(seen) == 4, "all records are read")
    consumer.close()
    assert [m.value() for m in seen] == [b"a", b"\x00\xff", None, b"d"]
    assert seen[0].key() == b"\xfe"
    assert seen[0].headers() == [("h", b"\xff"), ("n", None), ("s", b"text")]
    assert seen[3].timestamp()[1] == 5
    records = cluster.consume("t", 5)
    assert [(r.topic, r.partition, r.offset, r.value) for r in records] == [
        ("t", 1, 0, b"\xf0"),
        ("t", 2, 0, b"a"),
        ("t", 2, 1, b"\x00\xff"),
        ("t", 2, 2, None),
        ("t", 2, 3, b"d"),
    ]
    assert records[0][3:] == (1_700_000_000_123, b"k", b"\xf0", [("x", b"y")])
    assert [r.value for r in cluster.consume("t", partition=2, offset=3)] == [b"d"]


def test_records_of_an_aborted_transaction_are_left_out_where_that_is_wanted(cluster):
    cluster.create_topic("t")
    for number, end in enumerate(("commit_transaction", "abort_transaction", "commit_transaction")):
        producer = Producer({**cluster.client_config("confluent"), "transactional.id": "id"})
        producer.init_transactions(60)
        producer.begin_transaction()
        producer.produce("t", f"{number}".encode())
        producer.flush(60)
        getattr(producer, end)(60)
    until(lambda: len(cluster.consume("t", isolation="committed")) == 2, "the last marker is written")
    for word in ("committed", "read_committed"):  # the kit's word, and Kafka's
        assert [r.value for r in cluster.consume("t", isolation=word)] == [b"0", b"2"]
    every = cluster.consume("t", isolation="uncommitted")
    assert cluster.consume("t", isolation="read_uncommitted") == every
    assert len(every) > 2
    assert [r.value for r in cluster.consume("t")] == [b"0", b"1", b"2"]


def test_consume_begins_where_the_log_begins(cluster):
    cluster.create_topic("t", 2)
    cluster.produce("t", "a", "b", "c", partition=0)
    cluster.produce("t", "other", partition=1)
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap_servers})
    for before, left in ((2, [b"c", b"other"]), (3, [b"other"])):
        for done in admin.delete_records([TopicPartition("t", 0, before)]).values():
            assert done.result(10).low_watermark == before
        assert [r.value for r in cluster.consume("t")] == left
    cluster.produce("t", "d")
    assert [(r.offset, r.value) for r in cluster.consume("t", 1, partition=0, offset=1)] == [(3, b"d")]
    with pytest.raises(ControlError, match="OFFSET_OUT_OF_RANGE"):
        cluster.consume("t", partition=0, offset=5)


def test_all_records_are_consumed_however_many_answers_they_take(cluster):
    cluster.create_topic("t", partitions=2)
    values = [str(number) for number in range(10_050)]
    cluster.produce("t", *values, partition=0)
    cluster.produce("t", "last", partition=1)
    found = cluster.consume("t")
    assert [r.value.decode() for r in found] == [*values, "last"]
    assert [(r.partition, r.offset) for r in found[-2:]] == [(0, 10_049), (1, 0)]
    assert len(cluster.consume("t", 10_051, timeout=0)) == 10_051
    assert [r.offset for r in cluster.consume("t", partition=0, offset=10)] == list(range(10, 10_050))
    with pytest.raises(WaitTimeoutError, match="t has 10051 records after 0 s, not 10052"):
        cluster.consume("t", 10_052, timeout=0)
    late = threading.Timer(0.5, cluster.produce, ("t", "late"), {"partition": 0})
    late.start()
    waited = cluster.consume("t", 10_052, timeout=60)  # last of all, or of its partition where reading took as long
    assert b"late" in (waited[-1].value, waited[10_050].value)
    late.join()


@pytest.mark.parametrize("is_reset", [True, False])
def test_records_of_two_topics_of_one_name_are_not_taken_for_one(process, is_reset, monkeypatch):
    """A reset, or a deletion of the topic, between two answers: ids repeat with a seed, and the offsets go on."""
    with process.create_cluster(seed=7) as cluster:
        cluster.produce("t", *["old"] * 10_001)
        ask, asked, admin = ClusterHandle._ask, [], AdminClient(cluster.client_config("confluent"))

        def ask_and_begin_anew(self, method, path, body=None):
            answer = ask(self, method, path, body)
            asked.append(path)
            if asked.count("/topics/t/consume?check=false") == 1 and path == "/topics/t/consume?check=false":
                if is_reset:
                    cluster.reset()
                else:
                    admin.delete_topics(["t"])["t"].result(60)
                cluster.produce("t", *["new"] * 10_001)
            return answer

        monkeypatch.setattr(ClusterHandle, "_ask", ask_and_begin_anew)
        with pytest.raises(ControlError, match="t is no longer the topic whose records were read"):
            cluster.consume("t", 10_001, timeout=60)
        assert {record.value for record in cluster.consume("t", 10_001)} == {b"new"}


def test_topic_that_is_made_anew_before_it_has_records_is_waited_for(cluster):
    cluster.create_topic("t")
    admin = AdminClient(cluster.client_config("confluent"))
    with ThreadPoolExecutor() as pool:
        waiting = pool.submit(cluster.consume, "t", 1, timeout=60)
        while not cluster.control.ask("GET", cluster.control.prefix)["waits"]:
            pass
        admin.delete_topics(["t"])["t"].result(60)
        cluster.create_topic("t")
        cluster.produce("t", "one")
        assert [record.value for record in waiting.result(60)] == [b"one"]


def test_answer_of_http_that_has_not_all_records_says_where_to_go_on(cluster):
    cluster.create_topic("t", partitions=2)
    for partition in range(2):
        cluster.produce("t", *"abc", partition=partition)
    path, offsets, found = f"{cluster.control.prefix}/topics/t/consume", {}, []
    for size, more in ((2, True), (2, True), (2, True), (0, False)):
        answer = cluster.control.ask("POST", path, {"most": 2, "offsets": offsets})
        assert (len(answer["records"]), answer["more"], answer["met"]) == (size, more, True)
        offsets = answer["offsets"]
        found += [(row["partition"], row["offset"]) for row in answer["records"]]
    assert found == [(partition, offset) for partition in range(2) for offset in range(3)]
    assert offsets == {"0": 3, "1": 3}
    with pytest.raises(ControlError, match='"offsets" takes numbers of partitions, not x'):
        cluster.control.ask("POST", path, {"offsets": {"x": 1}})


def test_records_of_an_aborted_transaction_stay_out_where_an_answer_begins_within_it(cluster):
    producer = Producer({**cluster.client_config("confluent"), "transactional.id": "tx"})
    producer.init_transactions(60)
    producer.begin_transaction()
    for number in range(4):
        producer.produce("t", str(number), partition=0)
    producer.flush(60)
    producer.abort_transaction(60)
    cluster.produce("t", "kept")
    path = f"{cluster.control.prefix}/topics/t/consume"
    words = {"isolation": "committed", "offsets": {"0": 2}, "least": 1, "timeout_ms": 20_000}
    assert [row["value"] for row in cluster.control.ask("POST", path, words)["records"]] == ["kept"]


def test_names_of_topics_clusters_faults_and_snapshots_are_taken_as_they_are(cluster, process):
    cluster.produce("ab", "x")
    for call in (cluster.consume, lambda topic: cluster.produce(topic, "x")):
        with pytest.raises(ControlError, match="topic a%62: INVALID_TOPIC_EXCEPTION"):
            call("a%62")
    cluster.snapshot("ab")
    with pytest.raises(ControlError, match="a%62"):
        cluster.remove_snapshot("a%62")
    assert cluster.snapshots() == ["ab"]
    fault = cluster.faults.fail_write(name="ü")
    assert fault.state()["name"] == "ü"
    with process.create_cluster(name="ab"):
        control = ("--control", process.control.address)
        wrong = [(each, "a%62") for each in ("reset", "remove", "snapshot", "fork")]
        for words in (*wrong, ("restore", "--from", "s", "a%62"), ("snapshot", "ab", "--remove", "a%62")):
            done = momus("cluster", *words, *control)
            assert done.returncode == 1, words
            assert words[-1] in done.stderr, words


def test_calls_are_recorded_with_their_names_as_a_client_asks_for_them(cluster):
    cluster.record()
    with pytest.raises(ControlError):
        cluster.control.ask("POST", f"{cluster.control.prefix}/groups/a%252Fb/seek", {"to": "nowhere"})
    with zipfile.ZipFile(io.BytesIO(cluster.recording())) as run:
        assert any(b"/groups/a%252Fb/seek" in run.read(name) for name in run.namelist())


def test_consume_waits_for_records_that_come_later_and_no_longer_than_it_is_told(cluster):
    cluster.create_topic("t")
    with pytest.raises(WaitTimeoutError, match="0 records after 0"):
        cluster.consume("t", 1, timeout=0)
    timer = threading.Timer(0.1, lambda: cluster.produce("t", "late"))
    timer.start()
    assert [r.value for r in cluster.consume("t", 1, timeout=60)] == [b"late"]
    timer.join()


def test_consume_of_what_does_not_exist_is_no_empty_answer(cluster):
    """`assert consume("oders") == []` passed."""
    cluster.create_topic("orders", 3)
    with pytest.raises(ControlError, match="no topic oders: create it, or ask for a number of records"):
        cluster.consume("oders")
    with pytest.raises(ControlError, match="orders has no partition 3, but 0 to 2"):
        cluster.consume("orders", partition=3)
    for partition, what in ((None, "no topic oders"), (7, "no partition oders-7")):
        with pytest.raises(WaitTimeoutError, match=f"there is {what} after 0 s"):
            cluster.consume("oders", 1, partition=partition, timeout=0)
    timer = threading.Timer(0.1, lambda: cluster.produce("later", "made"))
    timer.start()
    assert [r.value for r in cluster.consume("later", 1, timeout=60)] == [b"made"]
    timer.join()
    assert cluster.consume("orders") == cluster.consume("orders", partition=2) == []


def test_headers_are_taken_from_a_dict_as_from_pairs(cluster):
    """The two letters of a key were its name and its value."""
    for headers in ({"id": "7", "no": None}, [("id", "7"), ("no", None)]):
        cluster.produce("t", "x", headers=headers)
        assert cluster.consume("t")[-1].headers == [("id", b"7"), ("no", None)]


def test_place_or_user_that_is_none_is_refused(cluster):
    """The end of a partition, as Kafka writes it, was its beginning; and a user without security was nobody."""
    cluster.produce("t", "x")
    for words in ({"offset": -1}, {"offset": -2, "partition": 0}):
        with pytest.raises(ControlError, match='"offset" and "offsets" take 0 or more'):
            cluster.consume("t", **words)
    with pytest.raises(ControlError, match='"offset" and "offsets" take 0 or more'):
        cluster.control.ask("POST", f"{cluster.control.prefix}/topics/t/consume", {"offsets": {"0": -1}})
    with pytest.raises(ValueError, match="user='alice': this cluster has no users; make it with security="):
        cluster.client_config("confluent", user="alice")


def test_what_cannot_be_done_is_refused_in_kafkas_words(cluster):
    cluster.create_topic("t")
    for call, why in (
        (lambda: cluster.create_topic("t"), "TOPIC_ALREADY_EXISTS"),
        (lambda: cluster.create_topic("a b"), "INVALID_TOPIC_EXCEPTION"),
        (lambda: cluster.create_topic("u", config={"retention.ms": "long"}), "INVALID_CONFIG"),
        (lambda: cluster.produce("t", "x", partition=7), "no partition 7"),
        (lambda: cluster.produce("t", "x" * 2_000_000), "RECORD_TOO_LARGE|MESSAGE_TOO_LARGE"),
        (lambda: cluster.wait_for_group("g", "happy"), '"state" takes one of'),
        (lambda: cluster.consume("t", isolation="none"), "isolation"),
    ):
        with pytest.raises(ControlError, match=why):
            call()
