"""Events that a fault makes: the cluster really changes at the request, and later answers agree with it."""

from __future__ import annotations

import pytest
from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition

from momus.faults import on_call


@pytest.fixture
def cluster(kafka_broker):
    kafka_broker.create_topic("orders", 1)
    kafka_broker.produce("orders", *(f"order {number}" for number in range(4)))
    return kafka_broker


def consumer_of(cluster, **settings):
    made = Consumer(
        {
            **cluster.client_config("confluent"),
            "group.id": "billing",
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
            **settings,
        }
    )
    made.subscribe(["orders"])
    return made


def read(consumer, count):
    found = []
    while len(found) < count:
        message = consumer.poll(0.1)
        if message is not None and message.error() is None:
            found.append(message)
    return found


def commit_error(consumer, message):
    try:
        consumer.commit(message, asynchronous=False)
    except KafkaException as error:
        return error.args[0].name()
    return ""


def events(cluster):
    return [
        (each["event"], each["outcome"]) for each in cluster.control.ask("GET", f"{cluster.control.prefix}/made-events")
    ]


@pytest.mark.parametrize("when", ["before", "after"])
def test_rebalance_at_a_commit_takes_the_commit_and_tells_the_member_by_heartbeat(cluster, when):
    """As in Kafka: while a classic group prepares a rebalance, its members still commit."""
    fault = cluster.faults.make_event("rebalance", "OffsetCommit", when, group="billing", trigger=on_call(2))
    consumer = consumer_of(cluster, **{"heartbeat.interval.ms": 50})
    first, second = read(consumer, 2)
    assert commit_error(consumer, first) == commit_error(consumer, second) == ""
    assert cluster.committed("billing") == {("orders", 0): 2}
    assert fault.state()["outcome"] == "made"
    while not cluster.journal.entries(api="Heartbeat", error="REBALANCE_IN_PROGRESS"):
        consumer.poll(0.01)
    consumer.close()


def test_expelled_member_is_told_so_by_every_answer(cluster):
    cluster.faults.make_event("expel_member", "OffsetCommit", group="billing", trigger="once")
    consumer = consumer_of(cluster)
    (first,) = read(consumer, 1)
    assert commit_error(consumer, first) == "UNKNOWN_MEMBER_ID"
    assert cluster.wait_for_group("billing", "empty") == []
    assert events(cluster) == [("expel_member", "made")]
    consumer.close()


@pytest.mark.parametrize(("when", "committed"), [("before", {}), ("after", {("orders", 0): 1})])
def test_restart_at_a_commit_keeps_what_had_taken_effect(cluster, when, committed):
    cluster.faults.make_event("restart", "OffsetCommit", when, trigger="once")
    consumer = consumer_of(cluster)
    (first,) = read(consumer, 1)
    consumer.commit(first, asynchronous=True)
    cluster_events = []
    while not cluster_events:
        consumer.poll(0.01)
        cluster_events = events(cluster)
    assert cluster_events == [("restart", "made")]
    assert cluster.committed("billing").keys() >= committed.keys()
    consumer.close()


def test_faults_and_the_journal_go_on_over_a_restart_that_is_made(cluster):
    made = cluster.faults.make_event("restart", "JoinGroup", "after", trigger="once")
    refused = cluster.faults.inject_error("OffsetCommit", "COORDINATOR_LOAD_IN_PROGRESS", trigger={"on_call": 2})
    cluster.journal.expect(api="JoinGroup", at_least=2)
    consumer = consumer_of(cluster)
    for message in read(consumer, 2):
        consumer.commit(message, asynchronous=False)
    assert (made.state()["outcome"], made.state()["hits"]) == ("made", 1)
    assert refused.state()["hits"] == 1
    first, *_ = cluster.journal.entries(api="JoinGroup")
    (refusal,) = cluster.journal.entries(api="OffsetCommit", error="COORDINATOR_LOAD_IN_PROGRESS")
    assert refusal["number"] > first["number"]
    assert {entry["connection"] for entry in cluster.journal.entries(api="JoinGroup")} > {first["connection"]}
    consumer.close()


@pytest.mark.momus(brokers=3)
@pytest.mark.parametrize("event", ["move_coordinator", "move_leader"])
def test_another_broker_leads_and_the_client_follows(cluster, event):
    api = "SyncGroup" if event == "move_coordinator" else "Fetch"
    fault = cluster.faults.make_event(event, api, trigger="once")
    consumer = consumer_of(cluster)
    for message in read(consumer, 4):
        consumer.commit(message, asynchronous=False)
    assert fault.state()["outcome"] == "made"
    assert cluster.committed("billing") == {("orders", 0): 4}
    refused = "NOT_COORDINATOR" if event == "move_coordinator" else "NOT_LEADER_OR_FOLLOWER"
    cluster.journal.verify(api=api, error=refused, times=1)
    consumer.close()


def test_one_broker_cannot_hand_a_partition_over_and_says_so(cluster):
    fault = cluster.faults.make_event("move_leader", "Fetch", trigger="once")
    consumer = consumer_of(cluster)
    read(consumer, 4)
    assert fault.state()["outcome"] == "one broker runs: nothing else can lead"
    consumer.close()


def producer_of(cluster):
    made = Producer({**cluster.client_config("confluent"), "transactional.id": "copier"})
    made.init_transactions(10)
    made.begin_transaction()
    made.produce("orders", b"five")
    made.flush(10)
    return made


@pytest.mark.parametrize(
    ("event", "error"), [("abort_transaction", "INVALID_PRODUCER_EPOCH"), ("fence_producer", "_FENCED")]
)
def test_transaction_that_was_ended_by_others_cannot_be_committed(cluster, event, error):
    cluster.faults.make_event(event, "EndTxn", transactional_id="copier", trigger="once")
    producer = producer_of(cluster)
    with pytest.raises(KafkaException) as caught:
        producer.commit_transaction(10)
    assert events(cluster) == [(event, "made")]
    assert caught.value.args[0].name() in (error, "_FENCED", "PRODUCER_FENCED")
    assert len(cluster.consume("orders", isolation="committed")) == 4


def test_offsets_expire_while_a_group_has_no_members(cluster):
    first = consumer_of(cluster)
    messages = read(first, 4)
    first.commit(messages[-1], asynchronous=False)
    first.close()
    fault = cluster.faults.make_event("expire_offsets", "JoinGroup", group="billing", trigger="once")
    second = consumer_of(cluster)
    assert [each.offset() for each in read(second, 4)] == [0, 1, 2, 3]
    assert fault.state()["outcome"] == "made"
    second.close()


def test_offsets_of_members_do_not_expire(cluster):
    fault = cluster.faults.make_event("expire_offsets", "OffsetCommit", "after", group="billing", trigger="once")
    consumer = consumer_of(cluster)
    consumer.commit(read(consumer, 1)[0], asynchronous=False)
    assert fault.state()["outcome"].endswith("GROUP_SUBSCRIBED_TO_TOPIC")
    assert consumer.committed([TopicPartition("orders", 0)], 10)[0].offset == 1
    consumer.close()


def test_requests_are_told_by_what_they_name(cluster):
    consumer = consumer_of(cluster, **{"client.id": "billing-1"})
    consumer.commit(read(consumer, 1)[0], asynchronous=False)
    consumer.close()
    told = cluster.control.ask("GET", f"{cluster.control.prefix}/journal/requests")["requests"]
    assert {each["client_id"] for each in told if each["known"]} == {"billing-1"}
    (commit,) = [each for each in told if each["api"] == "OffsetCommit"]
    assert (commit["groups"], commit["topics"], bool(commit["member"])) == (["billing"], ["orders"], True)
    assert all(each["topics"] == ["orders"] for each in told if each["api"] == "Fetch")
