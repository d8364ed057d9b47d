"""Batches, transactions and deletions, as events of random histories of one partition of data."""

from __future__ import annotations

from typing import Any, NamedTuple

from core_broker import DATA, SimulatedCrash
from stepped_kit import History, ended
from txn_kit import Producer

from protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from protocol.messages.topics import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsTopic,
    DeleteTopicsRequest,
)
from protocol.record_batch import TRANSACTIONAL, build_batch

OUT_OF_ORDER, OUT_OF_RANGE = 45, 1
OPEN, COMMITTED, ABORTED = "open", "committed", "aborted"
Row = tuple[int, bytes, bytes]  # offset, key, value


class Sent(NamedTuple):
    """The last batch of a producer: as it was sent, and where it went."""

    records: bytes
    base_offset: int
    version: int


class DataTraffic(History):
    """What clients do to the partition, and what readers should find then."""

    # -- what clients do

    def produce(self, records: bytes, name: str | None, version: int) -> Any:
        part = PartitionProduceData(index=0, records=records)
        topics = [TopicProduceData(name="t", partition_data=[part])]
        request = ProduceRequest(transactional_id=name, acks=-1, timeout_ms=1000, topic_data=topics)
        return self.client.call(request, version).responses[0].partition_responses[0]

    def batch(self, **fields: Any) -> tuple[list[tuple[bytes, bytes]], bytes]:
        """Some records with few keys and values of their own."""
        value = f"{len(self.lines)}".encode()
        rows = [(b"k%d" % self.rng.randrange(5), value + b".%d" % at) for at in range(self.rng.randint(1, 3))]
        return rows, build_batch(rows, leader_epoch=-1, timestamp_ms=self.world.clock.now_ms(), **fields)

    def written(self, rows: list[tuple[bytes, bytes]], base_offset: int, number: int | None) -> None:
        self.note("at", base_offset)
        taken = {row[0] for row, _ in self.rows}
        for at, (key, value) in enumerate(rows, base_offset):
            assert at not in taken, f"offset {at} was given twice"
            self.rows.append(((at, key, value), number))
        self.rows.sort()

    def do_plain(self) -> None:
        rows, records = self.batch()
        answer = self.produce(records, None, 12)
        assert answer.error_code == 0
        self.written(rows, answer.base_offset, None)

    def producer(self, number: int) -> Producer | None:
        """None: it could not be initialised."""
        if number not in self.producers:
            producer = Producer(self.client, f"tx{number}", v2=number != 0)
            if producer.init(timeout_ms=900_000) != 0:
                return None
            self.producers[number] = producer
        return self.producers[number]

    def do_transactional(self, *, may_fail: bool = False) -> None:
        number = self.rng.randrange(3)
        self.note("producer", number)
        producer = self.producer(number)
        if producer is None or (not producer.v2 and set(producer.add({"t": [0]}).values()) != {0}):
            self.note("cannot begin")
            assert may_fail
            return
        sequence = producer.sequences.get(("t", 0), 0)
        rows, records = self.batch(
            producer_id=producer.id, producer_epoch=producer.epoch, base_sequence=sequence, attributes=TRANSACTIONAL
        )
        version = 12 if producer.v2 else 11
        answer = self.produce(records, producer.name, version)
        if answer.error_code == 0:
            producer.sequences["t", 0] = sequence + len(rows)
            if number not in self.open:
                self.open[number] = len(self.fates)
                self.fates.append(OPEN)
            self.written(rows, answer.base_offset, self.open[number])
            self.last[number] = Sent(records, answer.base_offset, version)
            return
        self.note("refused", answer.error_code)
        if not may_fail:
            # only a producer whose records are all gone may be unknown
            assert answer.error_code == OUT_OF_ORDER
            mine = [row[0] for row, each in self.rows if each is not None and each == self.open.get(number)]
            assert not mine or min(mine) < self.partition.log.log_start_offset
        if may_fail:
            self.world.files.heal()
            self.world.run()
        if not may_fail or self.is_likely(0.7):
            self.give_up(number)

    def give_up(self, number: int) -> None:
        """As clients do: the next instance aborts what is open, and may be told to come again."""
        producer = self.producers[number]
        assert 0 in [producer.init(timeout_ms=900_000) for _ in range(3)]
        self.last.pop(number, None)
        if number in self.open:
            self.fates[self.open.pop(number)] = ABORTED

    def do_send_again(self) -> None:
        """A batch whose answer was lost is not appended again."""
        numbers = sorted(self.open.keys() & self.last.keys())
        if not numbers or not self.keeps_producers:
            return
        number = self.rng.choice(numbers)
        sent = self.last[number]
        self.note("producer", number, "at", sent.base_offset)
        if sent.base_offset < self.partition.log.log_start_offset:
            return
        answer = self.produce(sent.records, self.producers[number].name, sent.version)
        assert (answer.error_code, answer.base_offset) == (0, sent.base_offset)

    def do_fail(self) -> None:
        kinds = ("write",) if self.flush == "os" else ("write", "sync")
        self.world.files.inject(self.rng.randint(1, 2), kinds=kinds, short_bytes=self.rng.choice([0, 30]))
        self.do_transactional(may_fail=True)
        self.world.files.heal()
        self.world.run()

    def do_end(self) -> None:
        if self.open:
            number, commit = self.rng.choice(list(self.open)), self.is_likely(0.5)
            self.note("producer", number, "commits" if commit else "aborts")
            assert self.producers[number].end(commit=commit) == 0
            self.fates[self.open.pop(number)] = COMMITTED if commit else ABORTED
            self.last.pop(number, None)

    def do_init(self) -> None:
        if self.producers:
            self.give_up(self.rng.choice(list(self.producers)))

    def do_delete_records(self) -> None:
        partition = self.partition
        offset = self.rng.randint(partition.log_start_offset, partition.high_watermark)
        self.note("before", offset)
        rows = [DeleteRecordsPartition(partition_index=0, offset=offset)]
        request = DeleteRecordsRequest(topics=[DeleteRecordsTopic(name="t", partitions=rows)], timeout_ms=1)
        answer = self.client.call(request, 2).topics[0].partitions[0]
        assert answer.error_code in (0, OUT_OF_RANGE)
        if answer.error_code == 0:
            self.start = max(self.start, offset)
        else:
            assert self.partition.log_start_offset > offset  # retention came between

    def do_remake_topic(self) -> None:
        for number in self.open:
            assert self.producers[number].end(commit=False) == 0
        if self.is_likely(0.5):
            self.go_on(self.world.restart())  # its log may not be open then
        request = DeleteTopicsRequest(topic_names=["t"], timeout_ms=1000)
        if self.is_likely(0.5):
            self.note("killed")
            self.world.files.kill_at(self.rng.randint(1, 12))
            ended(lambda: self.client.call(request, 5), SimulatedCrash)
            files = self.world.files.crash()
            files.kill_at(self.rng.randint(1, 12))
            if ended(lambda: self.world.again(files), SimulatedCrash):  # the start is killed as well
                self.note("once")
            self.go_on(self.world.again(files.crash()))
        if "t" in self.world.broker.metadata.topics:
            self.client.call(request, 5)
        if self.is_likely(0.5):
            self.world.settle()
        self.world.files.sync_dir(DATA)  # MemoryFiles cannot take back half of a renamed directory
        if self.is_likely(0.3):
            self.go_on(self.world.crash())
        self.make_topic()
        self.begin_again()
        for producer in self.producers.values():
            producer.sequences.clear()
        for number in self.producers:
            self.give_up(number)
