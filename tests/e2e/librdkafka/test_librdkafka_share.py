"""librdkafka's share consumer (a preview in confluent-kafka): records are accepted, released and delivered again."""

from __future__ import annotations

import time

import pytest
from clientwork import LIMIT_S
from confluent_kafka.admin import AlterConfigOpType, ConfigEntry, ConfigResource, ResourceType
from librdkafka_kit import admin_of, create, deliver, producer_of, settled

confluent_kafka = pytest.importorskip("confluent_kafka")
if not hasattr(confluent_kafka, "ShareConsumer"):
    pytest.skip("this confluent-kafka has no share consumer", allow_module_level=True)


def share_consumer(broker, group, **settings):
    return confluent_kafka.ShareConsumer(
        {"bootstrap.servers": broker.bootstrap_servers, "group.id": group, "log_level": 0, **settings}
    )


def test_records_are_accepted_and_released(shared_broker):
    create(shared_broker, "shared", partitions=3)
    earliest = ConfigEntry("share.auto.offset.reset", "earliest", incremental_operation=AlterConfigOpType.SET)
    resource = ConfigResource(ResourceType.GROUP, "sharers", incremental_configs=[earliest])
    admin = admin_of(shared_broker)  # held by name: its requests die with it
    settled(admin.incremental_alter_configs([resource]))
    deliver(
        producer_of(shared_broker), [{"topic": "shared", "value": b"%d" % n, "partition": n % 3} for n in range(100)]
    )

    consumer = share_consumer(shared_broker, "sharers", **{"share.acknowledgement.mode": "explicit"})
    consumer.subscribe(["shared"])
    accepted: dict[tuple[int, int], bytes] = {}
    released: set[tuple[int, int]] = set()
    end = time.monotonic() + LIMIT_S
    while len(accepted) < 100:
        assert time.monotonic() < end, f"{len(accepted)} of 100 records"
        for message in consumer.poll(0.5):
            assert message.error() is None, message.error()
            place = message.partition(), message.offset()
            assert place not in accepted
            if message.offset() % 10 == 5 and place not in released:
                released.add(place)
                consumer.acknowledge(message, confluent_kafka.AcknowledgeType.RELEASE)
            else:
                accepted[place] = message.value()
                consumer.acknowledge(message, confluent_kafka.AcknowledgeType.ACCEPT)
    assert all(error is None for error in consumer.commit_sync(LIMIT_S).values())
    consumer.close()
    assert sorted(int(value) for value in accepted.values()) == list(range(100))
    assert len(released) == 9

    deliver(producer_of(shared_broker), [{"topic": "shared", "value": b"last", "partition": 0}])
    again = share_consumer(shared_broker, "sharers")
    again.subscribe(["shared"])
    found: list[bytes] = []
    end = time.monotonic() + LIMIT_S
    while not found and time.monotonic() < end:
        found += [message.value() for message in again.poll(0.5)]
    again.close()
    assert found == [b"last"], "what was accepted comes again"


def reads_from_the_beginning(broker, group, **configs):
    settings = {"share.auto.offset.reset": "earliest", **configs}
    entries = [ConfigEntry(k, v, incremental_operation=AlterConfigOpType.SET) for k, v in settings.items()]
    admin = admin_of(broker)
    settled(admin.incremental_alter_configs([ConfigResource(ResourceType.GROUP, group, incremental_configs=entries)]))


def polled(consumer, wanted):
    """So many messages at least."""
    found = []
    end = time.monotonic() + LIMIT_S
    while len(found) < wanted:
        assert time.monotonic() < end, f"{len(found)} of {wanted} records"
        found += consumer.poll(0.2)
    return found


def test_record_that_nobody_can_handle_is_archived_after_its_last_delivery(shared_broker, name):
    create(shared_broker, name)
    reads_from_the_beginning(shared_broker, name)
    deliver(producer_of(shared_broker), [{"topic": name, "value": b"%d" % n} for n in range(10)])
    consumer = share_consumer(shared_broker, name, **{"share.acknowledgement.mode": "explicit"})
    consumer.subscribe([name])
    counts: dict[int, list[int]] = {}
    while sum(map(len, counts.values())) < 14:
        for message in polled(consumer, 1):
            assert message.error() is None
            counts.setdefault(message.offset(), []).append(message.delivery_count())
            release = confluent_kafka.AcknowledgeType.RELEASE
            consumer.acknowledge(message, release if message.offset() == 4 else confluent_kafka.AcknowledgeType.ACCEPT)
        consumer.commit_sync(LIMIT_S)
    deliver(producer_of(shared_broker), [{"topic": name, "value": b"behind it"}])
    (last,) = polled(consumer, 1)
    consumer.close()
    assert counts == {offset: [1, 2, 3, 4, 5] if offset == 4 else [1] for offset in range(10)}
    assert last.value() == b"behind it"


def test_lock_of_a_member_that_hangs_expires_by_the_moved_clock(broker_factory, name):
    """30 seconds pass in a moment; sessions go on, for theirs is longer."""
    with broker_factory() as broker:
        create(broker, name)
        reads_from_the_beginning(broker, name, **{"share.record.lock.duration.ms": "30000"})
        deliver(producer_of(broker), [{"topic": name, "value": b"%d" % n} for n in range(20)])
        hangs = share_consumer(broker, name, **{"share.acknowledgement.mode": "explicit"})
        hangs.subscribe([name])
        assert {m.delivery_count() for m in polled(hangs, 20)} == {1}
        other = share_consumer(broker, name)
        other.subscribe([name])
        assert not other.poll(0.5)
        broker.clock.advance(seconds=31)
        found = polled(other, 20)
        assert [m.offset() for m in found] == list(range(20))
        assert {m.delivery_count() for m in found} == {2}
        other.close()
        hangs.close()


def test_eight_members_of_one_partition_get_disjoint_records(shared_broker, name):
    create(shared_broker, name)
    reads_from_the_beginning(shared_broker, name, **{"share.partition.max.record.locks": "2000"})
    members = [share_consumer(shared_broker, name, **{"max.poll.records": 5}) for _ in range(8)]
    for member in members:
        member.subscribe([name])
        member.poll(0.1)
    producer = producer_of(shared_broker)
    for batch in range(40):
        deliver(producer, [{"topic": name, "value": b"%d" % (10 * batch + n)} for n in range(10)])
    found: list[list[int]] = [[] for _ in members]
    end = time.monotonic() + LIMIT_S
    while sum(map(len, found)) < 400:
        assert time.monotonic() < end, f"{sum(map(len, found))} of 400 records"
        for member, offsets in zip(members, found, strict=True):
            offsets += [message.offset() for message in member.poll(0.05)]
    for member in members:
        member.close()
    assert sorted(offset for offsets in found for offset in offsets) == list(range(400))
    assert sum(bool(offsets) for offsets in found) > 1
