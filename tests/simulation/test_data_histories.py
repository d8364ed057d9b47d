"""Random histories of one partition of data, compared with what was acknowledged after each step.

Transactions, plain batches and batches sent again meet retention, DeleteRecords, compaction, snapshots of producers,
failed writes, kills, power cuts, starts in slices, forks, and topics deleted and made again; jobs go on step by step.
"""

from __future__ import annotations

from typing import Any

import pytest
from budget import short_and_slow
from core_broker import SimulatedCrash
from data_traffic_history import COMMITTED, OPEN, DataTraffic, Row, Sent
from stepped_kit import Pace, SteppedWorld, ended, remove_backwards
from txn_kit import Producer, end_of, not_aborted

from broker.partitions import partition as partition_module
from broker.upkeep import maintenance
from protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from protocol.messages.topics import (
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
)
from storage.files.sim_env import MemoryFiles
from storage.segments import recovery, scan

STEPS = 150


class DataHistory(DataTraffic):
    """One history, and what readers should find."""

    WEIGHTS = (
        "transactional:14 plain:5 end:9 init:1 send_again:2 fail:4 delete_records:2 "
        "advance:8 advance_badly:3 snapshot:2 roll:2 fork:1 remake_topic:1 "
        "crash:4 restart:3 power:3 kill:5 slices:3"
    )

    def __init__(self, seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
        super().__init__(seed)
        rng = self.rng
        monkeypatch.setattr(partition_module, "SNAPSHOT_EVERY_BYTES", rng.choice([300, 1 << 24]))
        monkeypatch.setattr(partition_module, "SNAPSHOT_BYTES_A_PRODUCER", 1)
        if self.is_likely(0.5):
            monkeypatch.setattr(MemoryFiles, "remove_tree", remove_backwards)
        self.is_compacted = self.is_likely(0.4)
        self.configs = {
            "internal.segment.bytes": str(rng.choice([300, 900, 1 << 20])),
            "retention.ms": rng.choice(["-1", "20000"]),
            "retention.bytes": rng.choice(["-1", "2000"]),
            "cleanup.policy": "compact,delete" if self.is_compacted else "delete",
            "min.cleanable.dirty.ratio": "0",
            "delete.retention.ms": "2000",
        }
        self.keeps_producers = self.is_likely(0.5)
        self.pace = Pace(rng, rng.choice([None, (0, 0, 1, 2, 3, 10)]))
        self.world = SteppedWorld(
            self.flush,
            pace=self.pace,
            offsets_topic_num_partitions="1",
            transaction_state_log_num_partitions="1",
            log_retention_check_interval_ms="1500",
            log_cleaner_backoff_ms="1500",
            producer_id_expiration_ms="86400000" if self.keeps_producers else "8000",
            log_flush_offset_checkpoint_interval_ms=rng.choice(["1500", "60000"]),
            producer_state=rng.choice(["lookup", "latest", "batches"]),
        )
        self.connect()
        self.begin_again()
        self.make_topic()
        assert Producer(self.client, "first").init() == 0

    def begin_again(self) -> None:
        """Nothing is in the topic."""
        self.rows: list[tuple[Row, int | None]] = []  # with the transaction
        self.fates: list[str] = []  # of the transactions
        self.open: dict[int, int] = {}  # producer -> its transaction
        self.last: dict[int, Sent] = {}
        self.start = 0  # what DeleteRecords has promised

    def make_topic(self) -> None:
        configs = [CreatableTopicConfig(name=name, value=value) for name, value in self.configs.items()]
        topic = CreatableTopic(name="t", num_partitions=1, replication_factor=1, configs=configs)
        answer = self.client.call(CreateTopicsRequest(topics=[topic], timeout_ms=1000), 7).topics[0]
        assert answer.error_code == 0, answer.error_message

    @property
    def partition(self) -> Any:
        return self.world.broker.partitions.get(self.world.broker.metadata.topics["t"], 0)

    # -- what readers find

    def read(self, offset: int, most_bytes: int) -> tuple[int, list[Row], int]:
        """The error code; committed records, as clients find them, in as many Fetches as it takes; their end."""
        found: list[Row] = []
        while True:
            part = FetchPartition(partition=0, fetch_offset=offset, partition_max_bytes=most_bytes)
            request = FetchRequest(
                session_epoch=-1,
                isolation_level=1,
                max_wait_ms=0,
                min_bytes=0,
                max_bytes=1 << 24,
                topics=[FetchTopic(topic="t", partitions=[part])],
            )
            answer = self.client.call(request, 12).responses[0].partitions[0]
            data = bytes(answer.records or b"")
            if answer.error_code or not data:
                return answer.error_code, found, answer.last_stable_offset
            for record in not_aborted(data, answer.aborted_transactions):
                if record.offset >= offset:
                    found.append((record.offset, bytes(record.key), bytes(record.value)))
            offset = end_of(data)

    def check(self) -> None:
        partition = self.partition
        start = partition.log.log_start_offset
        assert start >= self.start, "deleted records are back"
        begin = self.rng.choice([start, start, self.rng.randint(start, max(start, partition.high_watermark))])
        code, found, stable = self.read(begin, self.rng.choice([1, 300, 1 << 20]))
        if partition.log.log_start_offset > start:
            return  # retention came between
        assert code == 0
        firsts = [row[0] for row, number in self.rows if number is not None and self.fates[number] == OPEN]
        wanted = max(start, min(firsts, default=partition.high_watermark))
        if min(firsts, default=start) >= start:  # else its first records are deleted, and nobody knows of the others
            assert stable == wanted, f"the last stable offset is {stable}, not {wanted}"
        rows = [
            row
            for row, number in self.rows
            if begin <= row[0] < stable and (number is None or self.fates[number] == COMMITTED)
        ]
        if self.is_compacted:
            assert set(found) <= set(rows), f"too many: {sorted(set(found) - set(rows))[:5]}"
            rows = list({row[1]: row for row in rows}.values())
            assert set(rows) <= set(found), f"lost: {sorted(set(rows) - set(found))[:5]}"
        else:
            assert found == rows, (
                f"too many: {sorted(set(found) - set(rows))[:5]}, lost: {sorted(set(rows) - set(found))[:5]}"
            )

    # -- what the broker does

    def do_advance(self) -> None:
        self.world.advance(self.rng.choice([400, 1600, 3100, 9000]))

    def do_advance_badly(self) -> None:
        """Upkeep meets a disk on which no file can be made."""
        kinds = self.rng.choice([("replace",), ("replace", "rename"), ("remove",)])
        self.world.files.inject(self.rng.choice([1, 1, 2]), kinds=kinds, forever=True)
        self.world.advance(self.rng.choice([1600, 3100, 25_000]))
        self.world.files.heal()

    def do_snapshot(self) -> None:
        self.partition.take_snapshot()

    def do_roll(self) -> None:
        self.partition.log.roll()

    def do_fork(self) -> None:
        files = self.world.copied()
        if self.is_likely(0.5):  # the origin goes on, and must not change the copy
            self.produce(self.batch()[1], None, 12)
            self.world.advance(1600)
        self.go_on(self.world.again(files))

    # -- what ends the process

    def go_on(self, world: Any) -> None:
        """Jobs of the start may be left for later."""
        self.world = world
        self.connect()
        world.run()

    def do_kill(self) -> None:
        act = self.rng.choice(["advance", "delete_records", "snapshot"])
        self.note("in", act)
        self.world.files.kill_at(self.rng.randint(1, 12), short_bytes=self.rng.choice([0, 40]))
        if act == "advance":
            ended(lambda: self.world.advance(3100), SimulatedCrash)
        elif act == "snapshot":
            ended(self.partition.take_snapshot, SimulatedCrash)
        else:
            ended(self.do_delete_records, SimulatedCrash)
        self.world.files.heal()
        self.go_on(self.world.crash(lose_unsynced=self.loses_power()))

    def do_slices(self) -> None:
        """A start whose recovery goes on step by step, with forks, a stop or a kill before it has ended."""
        with self.pace.held():
            new = self.world.crash(lose_unsynced=self.loses_power())
            new.step_jobs(self.rng.randint(0, 30))
            if self.is_likely(0.4):
                files = new.copied()
                if self.is_likely(0.5):
                    new.step_jobs(self.rng.randint(0, 30))
                    new = new.again(files)
            if self.is_likely(0.4):
                new.broker.close()
                new = new.again(new.files.crash())
            elif self.is_likely(0.3):
                new = new.crash()
        self.go_on(new)


@pytest.fixture(autouse=True)
def _small_slices(monkeypatch):
    """Recovery has many slices, and every log is worth an index."""
    monkeypatch.setattr(scan, "SLICE", 3)
    monkeypatch.setattr(recovery, "SLICE", 3)
    monkeypatch.setattr(maintenance, "WORTH_AN_INDEX_BYTES", 1)


@pytest.mark.parametrize("seed", short_and_slow(range(360), 32))
def test_readers_find_what_was_committed(seed, monkeypatch):
    history = DataHistory(seed, monkeypatch)
    with history.told():
        for _ in range(STEPS):
            history.step()
            history.check()
