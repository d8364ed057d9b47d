"""kafka-python: kill -9 in the middle of commits, of records and of a group's work, and on it goes."""

from __future__ import annotations

import threading

from clientwork import LEDGER_PARTITIONS, commit_through_kills, seen_by, until
from kafka import TopicPartition
from kafka.structs import OffsetAndMetadata
from kafka_python_kit import committed_offsets, committer_of, consumer_of, create, producer_of, read


def test_commits_survive_kill_9_whole_and_none_is_invented(broker_factory, crash_rounds):
    broker = broker_factory()
    create(broker, "t", LEDGER_PARTITIONS)
    commit_through_kills(
        broker,
        lambda: committer_of(broker, "g", "t"),
        lambda: committed_offsets(broker, "g", "t"),
        crash_rounds,
    )


def test_group_goes_on_after_kill_9_exactly_where_it_was(broker_factory):
    broker = broker_factory(config={"group.initial.rebalance.delay.ms": 0})
    with producer_of(broker) as producer:
        for number in range(20):
            producer.send("t", b"%d" % number).get(60)
    with consumer_of(broker, group_id="g", max_poll_records=12, group_instance_id="i") as consumer:
        consumer.subscribe(["t"])
        seen_by(consumer, "t")
        assert len(read(consumer, 12)) == 12
        consumer.commit()
        generation_id = consumer.group_metadata().generation_id
        broker.kill()
        broker.start()
        assert [int(record.value) for record in read(consumer, 8)] == list(range(12, 20))
        consumer.commit({TopicPartition("t", 0): OffsetAndMetadata(12, "", -1)})
        assert consumer.group_metadata().generation_id == generation_id  # the group was loaded, not made anew
    with consumer_of(broker, group_id="g", group_instance_id="i") as consumer:
        consumer.subscribe(["t"])
        seen_by(consumer, "t")
        assert [int(record.value) for record in read(consumer, 8)] == list(range(12, 20))


def test_idempotent_producer_writes_each_record_once_through_kill_9(broker_factory):
    broker = broker_factory()
    create(broker, "t")
    acknowledged: list[tuple[int, int]] = []
    stopping = threading.Event()

    def produce() -> None:
        with producer_of(broker, enable_idempotence=True, request_timeout_ms=3000) as producer:
            number = 0
            while not stopping.is_set():
                sent = [(number + i, producer.send("t", b"%d" % (number + i))) for i in range(20)]
                acknowledged.extend((each, future.get(60).offset) for each, future in sent)
                number += 20

    thread = threading.Thread(target=produce, daemon=True)
    thread.start()
    for _ in range(2):
        goal = len(acknowledged) + 100
        until(lambda goal=goal: len(acknowledged) >= goal, "records are acknowledged")
        broker.kill()
        broker.start()
    stopping.set()
    thread.join(120)
    assert not thread.is_alive()
    with consumer_of(broker) as consumer:
        partition = TopicPartition("t", 0)
        consumer.assign([partition])
        (end,) = consumer.end_offsets([partition]).values()
        values = [int(record.value) for record in read(consumer, end)]
    assert values == list(range(len(acknowledged)))
    assert acknowledged == [(number, number) for number in range(len(acknowledged))]
