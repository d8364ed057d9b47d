"""Arranging and looking without a client: topics, records, groups, committed offsets, and the twins to await."""

from __future__ import annotations

import asyncio
import io
import threading
import zipfile
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from datetime import UTC, datetime, timedelta

import pytest
from clientwork import until
from cluster_kit import Wire
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient
from core_requests import commit_request
from test_control import momus

from broker.coordinator.groups.classic.states import State as ClassicState
from broker.coordinator.groups.common.group import State
from broker.shell.control.of_cluster.groups import STATES
from momus import Broker
from momus.cluster import Cluster, ClusterError
from momus.control import ControlError
from momus.handle import ClusterHandle, WaitTimeoutError
from protocol.messages.consumer_group import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatRequestTopicPartitions,
    ConsumerGroupHeartbeatResponse,
)

AT = datetime(2030, 1, 1, tzinfo=UTC)


@pytest.fixture(scope="module")
def process():
    with Broker(seed=5) as broker:
        yield broker
        assert broker.stop() == 0


@pytest.fixture
def cluster(process):
    with process.create_cluster(brokers=3, config={"group.min.session.timeout.ms": 1000}) as cluster:
        yield cluster
    assert cluster.log == ""


def consumer_of(cluster: Cluster, group: str, **settings: object) -> Consumer:
    return Consumer(
        {
            **cluster.client_config("confluent"),
            "group.id": group,
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
            **settings,
        }
    )


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
    assert [r.value for r in cluster.consume("t", isolation="committed")] == [b"0", b"2"]
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
            if asked.count("/topics/t/consume") == 1 and path == "/topics/t/consume":
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
        assert (len(answer["records"]), answer["more"], answer["reached"]) == (size, more, True)
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


def test_group_of_any_name_is_asked_for_by_its_own_name(cluster):
    names = ["ab", "a/b", "a?b", "a b", "a%62", "a#c", "a+b", "ü", ".."]
    cluster.create_topic("t")
    for number, group in enumerate(names):
        consumer = consumer_of(cluster, group)
        consumer.commit(offsets=[TopicPartition("t", 0, number)], asynchronous=False)
        consumer.close()
    assert [cluster.committed(group) for group in names] == [{("t", 0): number} for number in range(len(names))]
    for group in names:
        assert cluster.wait_for_group(group, "empty", timeout=0) == []
    assert cluster.committed("a%63") == {}


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


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_group_is_waited_for_and_its_offsets_are_told(cluster, protocol):
    cluster.create_topic("t", partitions=2)
    cluster.produce("t", "a", "b", partition=1)
    cluster.wait_for_group("g", "dead", members=0, timeout=0)
    consumer = consumer_of(cluster, "g", **{"group.protocol": protocol})
    consumer.subscribe(["t"])
    seen: list[object] = []
    until(lambda: seen.extend(consumer.consume(2, 0.2)) or len(seen) == 2, "the records are read")
    (member,) = cluster.wait_for_group("g", members=1)
    assert member == consumer.memberid()
    with pytest.raises(WaitTimeoutError, match="stable with 1 members after 0 s, not stable with 2 members"):
        cluster.wait_for_group("g", members=2, timeout=0)
    consumer.commit(seen[-1], asynchronous=False)
    assert cluster.committed("g") == {("t", 1): 2}
    consumer.close()
    assert cluster.wait_for_group("g", "empty", timeout=60) == []
    assert cluster.committed("nobody") == {}


def test_state_and_members_that_a_wait_compares_are_of_one_moment(process):
    """A group that a second member joins while the answers wait for syncs is not stable with two members."""

    def beat(wire: Wire, **words: object) -> ConsumerGroupHeartbeatResponse:
        return wire.call(ConsumerGroupHeartbeatRequest(rebalance_timeout_ms=60_000, **words), 1)

    def commit(wire: Wire) -> None:
        while not is_over.is_set():
            wire.call(commit_request("other", {0: 1}, "t"), 8)

    is_over = threading.Event()
    with (
        process.create_cluster(flush="fsync", config={"offsets.topic.num.partitions": 1}) as cluster,
        ExitStack() as closing,
    ):
        cluster.create_topic("t", 2)
        cluster.faults.slow_disk(20, topic="__consumer_offsets")
        first, second, third = wires = tuple(Wire(cluster.bootstrap_servers) for _ in range(3))
        committing = threading.Thread(target=commit, args=(third,))
        committing.start()
        closing.callback(lambda: (is_over.set(), committing.join(), [each.socket.close() for each in wires]))
        for number in range(12):
            joins = {"group_id": f"g{number}", "member_epoch": 0, "subscribed_topic_names": ["t"]}
            answer = beat(first, member_id="a" * 22, topic_partitions=[], **joins)
            (given,) = answer.assignment.topic_partitions
            has = [ConsumerGroupHeartbeatRequestTopicPartitions(topic_id=given.topic_id, partitions=given.partitions)]
            beat(first, **{**joins, "member_epoch": answer.member_epoch}, member_id="a" * 22, topic_partitions=has)
            cluster.wait_for_group(f"g{number}", members=1)
            words = {"member_id": "b" * 22, "topic_partitions": [], **joins}
            joining = threading.Timer(0.05 + number * 0.003, beat, (second,), words)
            joining.start()
            with pytest.raises(WaitTimeoutError, match="is reconciling with 2 members"):
                cluster.wait_for_group(f"g{number}", members=2, timeout=0.3)
            joining.join()


def test_group_without_a_coordinator_is_not_dead_and_is_waited_for(process):
    """A test that waited for the end of a group passed while no broker could say that it is there."""
    config = {"offsets.topic.replication.factor": 2, "offsets.topic.num.partitions": 3}
    with process.create_cluster(brokers=3, config=config) as cluster:
        cluster.create_topic("t")
        groups = [f"g{number}" for number in range(12)]
        for group in groups:
            consumer = consumer_of(cluster, group)
            consumer.commit(offsets=[TopicPartition("t", 0, 1)], asynchronous=False)
            consumer.close()
        for node_id in (1, 2):  # those of one of the three partitions
            cluster.stop_broker(node_id)
        path, orphans = f"{cluster.control.prefix}/groups", []
        for group in groups:
            try:
                state = cluster.control.ask("GET", f"{path}/{group}")["state"]
            except ControlError as error:
                assert "has no coordinator: no broker leads __consumer_offsets-" in str(error)  # noqa: PT017  # some have one
                orphans.append(group)
            else:
                assert state == "Empty"
        assert 0 < len(orphans) < len(groups)
        for state in ("dead", "empty"):
            with pytest.raises(WaitTimeoutError, match=f"is unknown .*, not {state}: .* has no coordinator"):
                cluster.wait_for_group(orphans[0], state, timeout=0.1)
        back = threading.Timer(0.3, cluster.start_broker, (2,))
        back.start()
        assert cluster.wait_for_group(orphans[0], "empty", timeout=60) == []
        back.join()


def test_each_state_of_a_group_can_be_waited_for(cluster):
    """A streams group whose topics do not fit its topology is NotReady."""
    assert set(STATES.values()) == {each.value for states in (State, ClassicState) for each in states}
    for state in STATES.keys() - {"dead"}:
        with pytest.raises(WaitTimeoutError, match=f"is dead with 0 members after 0 s, not {state}"):
            cluster.wait_for_group("nobody", state, timeout=0)


def test_session_of_45_seconds_ends_when_the_clock_is_moved(cluster):
    cluster.create_topic("t")
    consumer = consumer_of(cluster, "g", **{"group.instance.id": "one", "session.timeout.ms": 45_000})
    consumer.subscribe(["t"])
    until(lambda: consumer.poll(0.1) or consumer.assignment(), "it has joined")
    consumer.close()  # a static member does not leave
    cluster.wait_for_group("g", members=1, timeout=0)
    cluster.clock.freeze()
    cluster.clock.advance(seconds=44)
    cluster.wait_for_group("g", members=1, timeout=0)
    cluster.clock.advance(seconds=46)
    cluster.wait_for_group("g", "empty", members=0, timeout=0)


async def test_twins_are_awaited_and_leave_the_loop_free(process):
    cluster = process.create_cluster(at=AT)
    twin = cluster.aio
    await twin.create_topic("t")
    assert await twin.clock.now() == AT
    await twin.clock.advance(hours=1)
    assert cluster.clock.now() == AT + timedelta(hours=1)
    waits = asyncio.create_task(twin.consume("t", 1, timeout=60))
    await asyncio.sleep(0)
    assert await twin.produce("t", b"x") == [(0, 0)]
    assert [r.value for r in await waits] == [b"x"]
    assert twin.name == cluster.name
    fault = await twin.faults.inject_error("Heartbeat", "NOT_COORDINATOR")
    assert await twin.faults.list() == [await fault.state()]
    assert (fault.name, await fault.hits) == ("fault-1", 0)
    waits = asyncio.create_task(fault.wait_until_hit(timeout=60))
    await asyncio.sleep(0)
    assert not waits.done()
    await fault.remove()
    with pytest.raises(ControlError, match="fault-1"):
        await waits
    before = await twin.snapshot("before")
    assert (str(before), await twin.snapshots() != []) == ("before", True)
    async with await before.fork() as fork:
        assert [each.value for each in await fork.consume("t")] == [b"x"]
        await fork.produce("t", "y")
    assert len(await twin.consume("t")) == 1
    await twin.restore(before)
    await before.remove()
    assert await twin.snapshots() == []
    await twin.close()
    with pytest.raises(ControlError, match="no such cluster"):
        cluster.produce("t", "x")


def test_calls_of_the_test_meet_no_fault_and_are_no_connections(cluster):
    cluster.create_topic("t")
    fault = cluster.faults.inject_error(["Produce", "Fetch", "Metadata"], "NOT_LEADER_OR_FOLLOWER")
    assert cluster.produce("t", "x") == [(0, 0)]
    assert [r.value for r in cluster.consume("t", 1)] == [b"x"]
    assert fault.calls == 0
    assert cluster.control.ask("GET", cluster.control.prefix)["connections"] == 0


@pytest.mark.parametrize(("end", "says"), [("reset", "the cluster was reset"), ("close", "the cluster was removed")])
def test_waits_end_when_their_cluster_is_reset_or_removed(cluster, end, says):
    cluster.create_topic("t")
    errors: list[Exception] = []

    def wait(call, *arguments):
        try:
            call(*arguments, timeout=60)
        except ControlError as error:
            errors.append(error)

    threads = [
        threading.Thread(target=wait, args=arguments)
        for arguments in ((cluster.consume, "t", 1), (cluster.wait_for_group, "g"))
    ]
    for thread in threads:
        thread.start()
    until(lambda: cluster.control.ask("GET", cluster.control.prefix)["waits"] == 2, "both wait in the broker")
    getattr(cluster, end)()
    for thread in threads:
        thread.join(60)
    assert [str(error) for error in errors] == [says] * 2


def test_cluster_refuses_what_would_end_its_neighbours(cluster, process):
    for call in (cluster.kill, cluster.stop, cluster.start, cluster.restart):
        with pytest.raises(ClusterError, match="kafka_process_broker"):
            call()
    assert process.running


def test_handle_of_a_process_does_the_same_for_its_first_cluster():
    with Broker(seed=3, brokers=2) as broker:
        first = broker.control.ask("GET", "/_admin/clusters/default")
        assert first["seed"] == 3
        broker.create_topic("t", 2)
        assert broker.produce("t", "x", partition=1) == [(1, 0)]
        broker.reset()
        with pytest.raises(ControlError, match="no topic t"):
            broker.consume("t")
        assert broker.control.ask("GET", "/_admin/clusters/default")["cluster_id"] != first["cluster_id"]
        assert broker.committed("g") == {}
