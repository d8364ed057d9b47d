"""Five librdkafka members over sixty partitions share evenly; one after the other starts again, each record comes once.

The group begins with committed offsets: where a partition has none, librdkafka 2.16 may go back to its first record in
the midst of owning it (with Apache Kafka as well), since a rebalance outdates the answer to its ListOffsets, which
starts a timer of 500 ms that asks for the first offset again and takes it, though the next answer has been taken.
"""

from __future__ import annotations

import subprocess
import sys
from collections import Counter

import pytest
from budget import slow
from clientwork import share_evenly, until
from confluent_kafka import Producer
from members import PROMPT_GROUPS, CommittingMember, begin_at_zero, create

from momus import Broker

MEMBERS, PARTITIONS, EACH = 5, 60, 3


@pytest.fixture(scope="module")
def prompt_broker():
    with Broker(config=PROMPT_GROUPS) as broker:
        yield broker
        assert (broker.stop(), broker.log) == (0, "")


def send(broker: Broker, topic: str, stage: str) -> list[bytes]:
    producer = Producer({"bootstrap.servers": broker.bootstrap_servers, "log_level": 0})
    values = []
    for partition in range(PARTITIONS):
        for number in range(EACH):
            values.append(f"{stage}-{partition}-{number}".encode())
            producer.produce(topic, values[-1], partition=partition)
    assert producer.flush(60) == 0
    return values


@pytest.mark.parametrize("kind", ["dynamic", "static", slow("range")])
def test_five_members_over_sixty_partitions_restart_one_by_one(prompt_broker, name, kind):
    create(prompt_broker, name, PARTITIONS)
    begin_at_zero(prompt_broker, name, name, PARTITIONS)

    def member(number: int) -> CommittingMember:
        settings = {"group_instance_id": f"i{number}"} if kind == "static" else {}
        if kind == "range":
            settings["group_remote_assignor"] = "range"
        made = CommittingMember(prompt_broker, name, name, **settings)
        made.start()
        return made

    members = [member(n) for n in range(MEMBERS)]
    everyone = list(members)
    sent: list[bytes] = []

    def received() -> Counter[bytes]:
        for each in members:
            each.check()
        return Counter(value for each in everyone for value in each.received)

    try:
        until(lambda: share_evenly(members, PARTITIONS), "five members share the topic")
        for turn in range(MEMBERS):
            sent += send(prompt_broker, name, f"turn{turn}")
            if kind == "static":
                kept = members[turn].assigned
            members[turn].leave()
            members[turn] = member(turn)
            everyone.append(members[turn])
            until(lambda: share_evenly(members, PARTITIONS), f"five members share the topic after restart {turn}")
            if kind == "static":
                assert members[turn].assigned == kept
        until(lambda: received().keys() >= set(sent), "every record arrives")
    finally:
        for each in members:
            each.leave()
    assert received() == Counter(sent)


CHILD = """
import sys
from confluent_kafka import Consumer
consumer = Consumer({"bootstrap.servers": sys.argv[1], "group.id": sys.argv[2], "group.protocol": "consumer"})
consumer.subscribe([sys.argv[2]])
while True:
    consumer.poll(0.05)
    if consumer.assignment():
        print(len(consumer.assignment()), flush=True)
"""


@pytest.mark.slow
def test_partitions_of_a_member_that_is_killed_go_to_the_other(broker_factory, name):
    broker = broker_factory(config=PROMPT_GROUPS | {"group.consumer.session.timeout.ms": 6000})
    create(broker, name, 6)
    command = [sys.executable, "-c", CHILD, broker.bootstrap_servers, name]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as child:
        assert child.stdout is not None
        assert child.stdout.readline() == b"6\n"
        member = CommittingMember(broker, name, name)
        member.start()
        until(lambda: len(member.assigned) == 3, "two members share the topic")
        child.kill()
    until(lambda: len(member.assigned) == 6, "the member that is left has all of it")
    member.leave()
