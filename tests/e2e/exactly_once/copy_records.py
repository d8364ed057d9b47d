"""The records that are copied: fed in transactions, and what came out is checked as it comes."""

from __future__ import annotations

import time
from random import Random

from confluent_kafka import Consumer, ConsumerGroupTopicPartitions, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic
from copy_kit import transformed

SOURCE, TARGET, GROUP = "source", "target", "copiers"
PARTITIONS = 6
LIMIT_S = 120


class Records:
    """What goes in, and what came out so far: who reads committed records sees each once, in order."""

    def __init__(self, servers: str, rng: Random) -> None:
        self.servers = {"bootstrap.servers": servers, "log_level": 2, "metadata.recovery.strategy": "none"}
        self.admin = AdminClient(self.servers)
        for future in self.admin.create_topics([NewTopic(t, PARTITIONS, 1) for t in (SOURCE, TARGET)]).values():
            future.result(LIMIT_S)
        self.expected: list[list[bytes]] = [[] for _ in range(PARTITIONS)]
        self.found: list[list[bytes]] = [[] for _ in range(PARTITIONS)]
        self.fed, self.rng = 0, rng
        self.filler = Producer(self.servers | {"transactional.id": "filler"})
        self.filler.init_transactions(LIMIT_S)
        self.reader = self._consumer(TARGET)

    def feed(self, count: int) -> None:
        """So many records more, in a transaction, now and then behind one that is aborted: what is read has gaps."""
        if self.rng.random() < 0.2:
            self._transact([b"aborted"] * 10, commit=False)
        values = [b"%08d" % number for number in range(self.fed, self.fed + count)]
        while not self._transact(values, commit=True):
            continue
        for at, value in enumerate(values):
            self.expected[at % PARTITIONS].append(transformed(value))
        self.fed += count

    def _transact(self, values: list[bytes], *, commit: bool) -> bool:
        """Whether it was committed; the broker may have been killed a moment ago."""
        self.filler.begin_transaction()
        for at, value in enumerate(values):
            self.filler.produce(SOURCE, value, partition=at % PARTITIONS)
        self.filler.flush(LIMIT_S)
        while True:
            try:
                if commit:
                    self.filler.commit_transaction(LIMIT_S)
                else:
                    self.filler.abort_transaction(LIMIT_S)
                return commit
            except KafkaException as failure:
                commit = commit and not failure.args[0].txn_requires_abort()
                if commit and not failure.args[0].retriable():
                    raise

    def _consumer(self, topic: str) -> Consumer:
        settings = {"group.id": "reader", "enable.auto.commit": False, "isolation.level": "read_committed"}
        consumer = Consumer(self.servers | settings)
        consumer.assign([TopicPartition(topic, partition, 0) for partition in range(PARTITIONS)])
        return consumer

    def look(self, seconds: float) -> int:
        """How many records came out; they are checked as they come, so that a fault is seen at once."""
        for message in self.reader.consume(1000, seconds):
            if message.error() is None:
                partition = message.partition()
                found, expected = self.found[partition], self.expected[partition]
                value = message.value()
                assert len(found) < len(expected), f"{partition}@{message.offset()}: one too many: {value!r}"
                wanted = expected[len(found)]
                assert value == wanted, f"{partition}@{message.offset()}: {value!r} instead of {wanted!r}"
                found.append(value)
        return sum(map(len, self.found))

    def _go_to(self, partition: int, end: int) -> None:
        """Read on until the reader has passed the mark of the last transaction."""
        end_s = time.monotonic() + LIMIT_S
        while (place := self.reader.position([TopicPartition(TARGET, partition)])[0].offset) != end:
            assert time.monotonic() < end_s, f"{partition}: readers stay at {place} of {end}"
            self.look(0.1)

    def members(self) -> set[str]:
        """The client ids of the group's members."""
        described = self.admin.describe_consumer_groups([GROUP])[GROUP].result(LIMIT_S)
        return {member.client_id for member in described.members}

    def check(self) -> None:
        """All is there, nothing follows, no transaction hangs, and the group has committed the whole of its source."""
        assert self.look(1.0) == self.fed
        assert self.found == self.expected
        for partition in range(PARTITIONS):
            _, end = self.reader.get_watermark_offsets(TopicPartition(TARGET, partition), LIMIT_S)
            self._go_to(partition, end)
        assert self.look(0) == self.fed
        self.reader.close()
        asked = self.admin.list_consumer_group_offsets([ConsumerGroupTopicPartitions(GROUP)], require_stable=True)
        committed = {p.partition: p.offset for p in asked[GROUP].result(LIMIT_S).topic_partitions}
        source = self._consumer(SOURCE)
        for partition, values in enumerate(self.expected):
            _, end = source.get_watermark_offsets(TopicPartition(SOURCE, partition), LIMIT_S)
            assert committed[partition] <= end
            assert len(values) <= committed[partition]
        source.close()
