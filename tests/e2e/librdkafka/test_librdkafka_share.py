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
