"""Kafka Streams counts words over two instances, one of which goes midway; Kafka's tool looks on."""

from __future__ import annotations

import struct
from collections import Counter, defaultdict
from typing import Any

import pytest
from clientwork import until
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import (
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    NewTopic,
    ResourceType,
)

pytestmark = pytest.mark.xdist_group("java")

PARTITIONS = 4
WORDS = ("ant", "bee", "cat", "dog", "elk", "fox", "gnu", "hen", "ibis", "jay")


@pytest.fixture
def session_timeout_ms():
    return 12_000


@pytest.fixture
def broker(broker_factory, session_timeout_ms):
    prompt = {"group.streams.heartbeat.interval.ms": 300, "group.streams.session.timeout.ms": session_timeout_ms}
    prompt["group.streams.min.session.timeout.ms"] = 3000
    return broker_factory(config=prompt)


class Text:
    """What is counted, and what came out."""

    def __init__(self, servers: str, lines: str, counts: str) -> None:
        admin = AdminClient({"bootstrap.servers": servers})
        topics = [NewTopic(name, PARTITIONS, 1) for name in (lines, counts)]
        for future in admin.create_topics(topics).values():
            future.result(60)
        self.lines = lines
        self.expected: Counter[str] = Counter()
        self.seen: defaultdict[str, list[int]] = defaultdict(list)  # the steps of each count, in order
        self._written = 0
        self._producer = Producer({"bootstrap.servers": servers})
        self._consumer = Consumer(
            {
                "bootstrap.servers": servers,
                "group.id": "reader",
                "enable.auto.commit": False,
                "isolation.level": "read_committed",
            }
        )
        self._consumer.assign([TopicPartition(counts, p, 0) for p in range(PARTITIONS)])

    def write(self, lines: int) -> None:
        for number in range(self._written, self._written + lines):
            words = [WORDS[number % 10], WORDS[number // 3 % 10], WORDS[number // 7 % 10]]
            self.expected.update(words)
            self._producer.produce(self.lines, " ".join(words), str(number), partition=number % PARTITIONS)
        self._written += lines
        assert self._producer.flush(60) == 0

    def read(self) -> None:
        for message in self._consumer.consume(500, 0.2):
            assert message.error() is None, message.error()
            self.seen[message.key().decode()].append(struct.unpack(">q", message.value())[0])

    def is_counted(self) -> bool:
        self.read()
        return all(self.seen[word][-1:] == [count] for word, count in self.expected.items())

    def wrong(self) -> dict[str, list[int]]:
        """The counts that did not go up one by one to what they should be."""
        return {word: steps for word, steps in self.seen.items() if steps != list(range(1, self.expected[word] + 1))}

    def close(self) -> None:
        self._consumer.close()


@pytest.fixture
def text(broker):
    made = Text(broker.bootstrap_servers, "lines", "counts")
    yield made
    made.close()


def members_of(tool: Any, group: str) -> list[str]:
    """The lines of the members, as the tool prints them."""
    printed = tool("--describe", "--group", group, "--members", "--verbose")
    return [line for line in printed.splitlines() if line.startswith(group)]


def end_sessions_soon(broker: Any, group: str) -> None:
    """Members that are killed from here on are away for three seconds only, and not two minutes."""
    entry = ConfigEntry("streams.session.timeout.ms", "3000", incremental_operation=AlterConfigOpType.SET)
    admin = AdminClient({"bootstrap.servers": broker.bootstrap_servers})
    resource = ConfigResource(ResourceType.GROUP, group, incremental_configs=[entry])
    for future in admin.incremental_alter_configs([resource]).values():
        future.result(60)
    broker.journal.keep()
    until(lambda: len(broker.journal.entries(api="StreamsGroupHeartbeat")) > 5, "members have sent heartbeats since")


def both_have_counts(*instances: Any) -> bool:
    """Whether some counts are on each instance, and all of them agree on it."""
    hosts = [tuple(instance.host_of(word) for word in WORDS) for instance in instances]
    return len(set(hosts)) == 1 and set(hosts[0]) == {"7001", "7002"}


def test_words_are_counted_while_instances_come_and_go(start, text, tool):
    one = start("app", "lines", "counts", 1)
    text.write(200)
    until(text.is_counted, "the first instance counts")
    assert "app" in tool("--list").split()
    assert one.host_of("ant") == "7001"

    two = start("app", "lines", "counts", 2)
    until(two.is_running, "the second instance runs")
    until(lambda: both_have_counts(one, two), "each instance has some of the counts")
    text.write(200)
    until(text.is_counted, "both count")
    assert len(members_of(tool, "app")) == 2
    assert "Stable" in tool("--describe", "--group", "app", "--state")

    one.stop()
    text.write(200)
    until(text.is_counted, "the second one counts alone")
    until(lambda: {two.host_of(word) for word in WORDS} == {"7002"}, "it has all of the counts")
    assert len(members_of(tool, "app")) == 1
    assert "lines" in tool("--describe", "--group", "app", "--offsets")
    two.stop()
    assert "Empty" in tool("--describe", "--group", "app", "--state")
    assert text.wrong() == {}


def test_words_are_counted_exactly_once_though_an_instance_is_killed(start, text):
    one = start("app", "lines", "counts", 1, "exactly_once_v2")
    two = start("app", "lines", "counts", 2, "exactly_once_v2")
    text.write(200)
    until(text.is_counted, "words are counted")
    until(lambda: both_have_counts(one, two), "each instance has some of the counts")
    text.write(200)
    one.kill()
    text.write(200)
    until(text.is_counted, "the second one counts alone")
    two.stop()
    assert text.wrong() == {}


@pytest.mark.parametrize("session_timeout_ms", [120_000])
def test_static_instance_that_comes_back_has_its_tasks_without_a_new_epoch(start, text, tool):
    one = start("app", "lines", "counts", 1, instance="one")
    two = start("app", "lines", "counts", 2, instance="two")
    text.write(200)
    until(text.is_counted, "words are counted")
    until(lambda: both_have_counts(one, two), "each instance has some of the counts")
    before = tool("--describe", "--group", "app", "--state", "--verbose")
    one.stop()
    assert len(members_of(tool, "app")) == 2, "it is away, and has its place"
    again = start("app", "lines", "counts", 1, instance="one")
    until(again.is_running, "it is back")
    text.write(200)
    until(text.is_counted, "both count again")
    until(lambda: both_have_counts(again, two), "each instance has some of the counts")
    assert tool("--describe", "--group", "app", "--state", "--verbose") == before
    again.stop()
    two.stop()
    assert text.wrong() == {}


@pytest.mark.parametrize("session_timeout_ms", [120_000])
def test_static_instances_count_each_word_once_over_kills_of_broker_and_application(start, text, tool, broker):
    one = start("app", "lines", "counts", 1, "exactly_once_v2", instance="one")
    two = start("app", "lines", "counts", 2, "exactly_once_v2", instance="two")
    text.write(200)
    until(text.is_counted, "words are counted")
    until(lambda: both_have_counts(one, two), "each instance has some of the counts")
    before = tool("--describe", "--group", "app", "--state", "--verbose")
    text.write(200)
    broker.kill()
    broker.start()
    until(text.is_counted, "both go on")

    one.stop()
    broker.kill()
    broker.start()
    again = start("app", "lines", "counts", 1, "exactly_once_v2", instance="one")
    until(again.is_running, "it is back")
    until(lambda: both_have_counts(again, two), "it has its counts")
    assert tool("--describe", "--group", "app", "--state", "--verbose") == before

    end_sessions_soon(broker, "app")
    again.kill()
    text.write(200)
    until(text.is_counted, "the other one counts alone")
    until(lambda: len(members_of(tool, "app")) == 1, "its session is over: until then its name is taken (111)")
    last = start("app", "lines", "counts", 1, "exactly_once_v2", instance="one")
    until(last.is_running, "it is back")
    text.write(200)
    until(text.is_counted, "both count again")
    last.stop()
    two.stop()
    assert text.wrong() == {}
