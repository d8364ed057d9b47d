"""kafka-python: members share a topic, come and go, and the group goes on where it was."""

from __future__ import annotations

import subprocess
import sys

import pytest
from clientwork import play_group, seen_by, share_evenly, until
from kafka import TopicPartition
from kafka.admin import MemberToRemove
from kafka.coordinator.assignors.cooperative_sticky import CooperativeStickyAssignor
from kafka.coordinator.assignors.range import RangePartitionAssignor
from kafka.coordinator.assignors.sticky.sticky_assignor import StickyPartitionAssignor
from kafka.errors import NoError, UnknownMemberIdError
from kafka.structs import OffsetAndMetadata
from kafka_python_kit import (
    KafkaPythonMember,
    admin_of,
    committed_offsets,
    consumer_of,
    create,
    producer_of,
    read,
)


@pytest.mark.parametrize("assignor", [RangePartitionAssignor, StickyPartitionAssignor, CooperativeStickyAssignor])
def test_group_of_three_rebalances_when_one_leaves_and_one_joins(shared_broker, name, assignor):
    create(shared_broker, name, 6)
    with producer_of(shared_broker) as producer:

        def send(partition: int, values: list[bytes]) -> None:
            for sent in [producer.send(name, value, partition=partition) for value in values]:
                sent.get(60)

        play_group(
            lambda: KafkaPythonMember(shared_broker, name, name, partition_assignment_strategy=[assignor]),
            send,
            lambda: committed_offsets(shared_broker, name, name),
        )


def test_cooperative_rebalance_takes_only_what_moves(shared_broker, name):
    create(shared_broker, name, 6)
    settings = {"partition_assignment_strategy": [CooperativeStickyAssignor]}
    members = [KafkaPythonMember(shared_broker, name, name, **settings) for _ in range(2)]
    members[0].start()
    until(lambda: share_evenly(members[:1], 6), "the first member owns all")
    members[1].start()
    until(lambda: share_evenly(members, 6), "both share")
    revoked = set(members[0].revoked)
    assert len(revoked) == 3
    assert revoked == members[1].assigned
    for member in members:
        member.leave()


def test_static_member_that_returns_in_time_keeps_its_share_without_a_rebalance(shared_broker, name):
    create(shared_broker, name, 4)

    def member(instance: str) -> KafkaPythonMember:
        return KafkaPythonMember(shared_broker, name, name, group_instance_id=instance)

    def generation() -> tuple[str, int]:
        with admin_of(shared_broker) as admin:
            described = admin.describe_groups([name])[name]
        return described["group_state"], len(described["members"])

    members = [member("a"), member("b")]
    for each in members:
        each.start()
    until(lambda: share_evenly(members, 4), "both share")
    share, other_id = members[0].assigned, members[1].member_id
    members[0].leave()  # a static member sends no LeaveGroup
    assert generation() == ("Stable", 2)
    members[0] = member("a")
    members[0].start()
    until(lambda: share_evenly(members, 4), "the member is back")
    assert members[0].assigned == share
    assert members[1].member_id == other_id
    for each in members:
        each.leave()
    with admin_of(shared_broker) as admin:
        gone = admin.remove_group_members(name, [MemberToRemove(group_instance_id=each) for each in "abc"])
    assert list(gone.values()) == [NoError, NoError, UnknownMemberIdError]
    until(lambda: generation() == ("Empty", 0), "both are removed")


SILENT = """
import sys, kafka
consumer = kafka.KafkaConsumer("{name}", group_id="{name}", bootstrap_servers="{servers}",
                               session_timeout_ms=3000, heartbeat_interval_ms=100)
while "{name}" not in consumer.topics():
    pass
while not consumer.assignment():
    consumer.poll(50)
print("in", flush=True)
while True:
    consumer.poll(50)
"""


def test_member_that_dies_silently_is_expelled_after_its_session(shared_broker, name):
    create(shared_broker, name, 2)
    survivor = KafkaPythonMember(shared_broker, name, name)
    survivor.start()
    script = SILENT.format(name=name, servers=shared_broker.bootstrap_servers)
    with subprocess.Popen([sys.executable, "-W", "ignore", "-c", script], stdout=subprocess.PIPE, text=True) as silent:
        try:
            assert silent.stdout.readline() == "in\n"
            until(lambda: survivor.check() or len(survivor.assigned) == 1, "both share")
        finally:
            silent.kill()
    until(lambda: share_evenly([survivor], 2), "the dead one has lost its share")
    survivor.leave()


def test_commit_with_metadata_is_read_back_and_an_unknown_one_is_none(shared_broker, name):
    create(shared_broker, name, 2)
    first, second = TopicPartition(name, 0), TopicPartition(name, 1)
    with consumer_of(shared_broker, group_id=name) as consumer:
        consumer.assign([first, second])
        assert consumer.committed(first) is None
        consumer.commit({first: OffsetAndMetadata(17, "größe €", -1)})
        assert consumer.committed(first) == 17
        assert consumer.committed(first, metadata=True) == OffsetAndMetadata(17, "größe €", -1)
        assert consumer.committed(second) is None


def test_group_goes_on_where_it_committed(shared_broker, name):
    with producer_of(shared_broker) as producer:
        for number in range(10):
            producer.send(name, b"%d" % number, partition=0).get(60)
    for expected in (range(4), range(4, 8), range(8, 10)):
        with consumer_of(shared_broker, group_id=name, max_poll_records=len(expected)) as consumer:
            consumer.subscribe([name])
            seen_by(consumer, name)
            assert [int(record.value) for record in read(consumer, len(expected))] == list(expected)
            consumer.commit()


def test_group_on_three_brokers_finds_its_coordinator_and_its_leaders(trio, name):
    create(trio, name, 6)
    with admin_of(trio) as admin:
        (described,) = admin.describe_topics([name])
        leaders = [partition["leader_id"] for partition in described["partitions"]]
        assert {leader: leaders.count(leader) for leader in leaders} == dict.fromkeys(set(leaders), 2)
        assert len(admin.describe_cluster()["brokers"]) == 3
    with producer_of(trio) as producer:

        def send(partition: int, values: list[bytes]) -> None:
            for sent in [producer.send(name, value, partition=partition) for value in values]:
                sent.get(60)

        play_group(lambda: KafkaPythonMember(trio, name, name), send, lambda: committed_offsets(trio, name, name))
