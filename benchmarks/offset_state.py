"""What one process does with a log of committed offsets: how fast it is read, and how long its image holds others up.

No sockets and no other process: a broker object over a directory of its own, its background steps run by hand. Rates
are of processor time, on one core.
"""

from __future__ import annotations

import gc
import resource
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import Any

from broker.broker import Broker
from broker.cluster.data.directory import DataDirectory
from broker.cluster.listeners import make_nodes
from broker.config.settings import BrokerConfig
from broker.coordinator.offsets.columns import Committed
from broker.coordinator.offsets.imaging import take_image
from broker.coordinator.offsets.provenance import provenance
from broker.coordinator.offsets.table import OffsetTable
from broker.coordinator.records import offset_key_prefix, offset_value
from broker.coordinator.runtime import READY
from broker.shell.server import COLLECTIONS
from protocol.errors import KafkaError
from storage.files.env import system_env

SETTINGS = {"log.cleaner.enable": "false", "flush": "os"}
SHARDS = 50  # Kafka's default
TOPIC = "load"
OFFSET, TIME_MS = 1_000_000, 1_760_000_000_000  # as large as real ones
PAUSE_LIMIT_MS = 5.0


class Process:
    """A broker without a server, whose shards are loaded."""

    def __init__(self, directory: str, shards: int) -> None:
        env = system_env()
        settings = {**SETTINGS, "offsets.topic.num.partitions": str(shards), "log.dirs": directory}
        config = BrokerConfig.load(settings)
        self._ready: list[Callable[[], None]] = []
        self.broker = Broker(
            env,
            config,
            DataDirectory.open(env, directory, config),
            make_nodes(config, "127.0.0.1:0", 1),
            call_soon=self._ready.append,
            start_sync=lambda logs: None,
        )
        self.broker.open()
        self.shards = self.broker.groups.shards
        for shard in self.shards:
            while shard.state is not READY:
                try:
                    shard.require()
                except KafkaError:  # it is being loaded
                    self.broker.turn.jobs.step()
        self.turn()

    def turn(self) -> None:
        """End the turn."""
        ready, self._ready[:] = self._ready[:], []
        for call in ready:
            call()

    def commit(self, group: str, partitions: Iterator[int] | range, offset: int) -> None:
        """One commit, as a client of the group makes it."""
        now_ms = self.broker.turn.begin()
        prefix = offset_key_prefix(group, TOPIC)
        value = offset_value(Committed(offset, commit_timestamp_ms=now_ms))
        records: list[Any] = [(prefix + p.to_bytes(4, "big"), value) for p in partitions]
        records[0] = (*records[0], provenance("", None, -1, "load"))
        self.broker.groups.of(group).append(records, now_ms)
        self.turn()

    def fill(self, entries: int, partitions: int) -> None:
        """So many entries, each committed once, a group at a time."""
        for n in range(entries // partitions):
            self.commit(f"load-{n}", range(partitions), n)

    def close(self) -> None:
        self.broker.close()
        self.broker.turn.env.files.close()


def mixed(entries: int) -> None:
    """Resident bytes an entry where each partition of a group was committed alone: its own offset, epoch and time."""
    print("\n| partitions a group | bytes an entry, alike | bytes an entry, each of its own |\n|---|---|---|")
    for partitions in (100, 10, 1):
        with ProcessPoolExecutor(1, get_context("spawn"), max_tasks_per_child=1) as pool:
            alike, own = (pool.submit(_table_bytes, entries, partitions, differ).result() for differ in (False, True))
        print(f"| {partitions} | {alike / entries:.0f} | {own / entries:.0f} |", flush=True)


def _table_bytes(entries: int, partitions: int, differ: bool) -> int:
    """What a table of committed offsets takes, with the names of its groups; `differ`: epochs and times do."""
    table = OffsetTable()
    topic_id = bytes(15) + b"t"
    gc.collect()
    before = _resident_bytes()
    for n in range(entries // partitions):
        group_id = f"load-{n}"
        if not differ:
            every = range(partitions)
            offsets, epochs = [OFFSET + n] * partitions, [5] * partitions
            table.replay_run(group_id, TOPIC, topic_id, every, offsets, epochs, TIME_MS + n, dense=True)
            continue
        for partition in range(partitions):
            row = (partition,), (OFFSET + n + partition,), ((n + partition) % 10,)
            table.replay_run(group_id, TOPIC, topic_id, *row, TIME_MS + n + partition, dense=True)
    gc.collect()
    return _resident_bytes() - before


def _resident_bytes() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize()


def _filled(directory: str, entries: int, partitions: int, *, gaps: bool = False) -> int:
    """Write a log; answers how many records it has. With `gaps`, half of each commit was overwritten and cleaned."""
    process = Process(directory, 1)
    process.fill(entries, partitions)
    log = process.shards[0].log
    if gaps:
        for n in range(entries // partitions):
            process.commit(f"load-{n}", range(0, partitions, 2), n + 1)
        log.roll()
        for _ in log.clean(process.broker.turn.now_ms, log.end_offset, commits=True):
            pass
    records = sum(header.record_count for header, _ in log.batches(0))
    process.close()
    return records


def replay(entries: int) -> None:
    """Records a second of processor time, from the log alone."""
    print("\n| log | records | bytes a record | replayed |\n|---|---|---|---|")
    for name, partitions, gaps in (
        ("100 records a batch", 100, False),
        ("10 records a batch", 10, False),
        ("1 record a batch", 1, False),
        ("100 a batch, half of them overwritten and cleaned away", 100, True),
    ):
        directory = tempfile.mkdtemp(prefix="bench-replay-")
        try:
            records = _filled(directory, entries, partitions, gaps=gaps)
            size = sum(path.stat().st_size for path in Path(directory).rglob("*.log"))
            gc.collect()
            gc.freeze()
            begin = time.process_time()
            process = Process(directory, 1)
            rate = records / (time.process_time() - begin)
            assert process.shards[0].machine.offsets.size == entries // partitions * partitions
            process.close()
            print(f"| {name} | {records:,} | {size / records:.0f} | {rate:,.0f}/s |", flush=True)
        finally:
            shutil.rmtree(directory, ignore_errors=True)


def pause(entries: int) -> bool:
    """The longest slice while an image of so many entries is written; whether it keeps the promise."""
    print("\n| partitions a group | images | slices | longest, by the clock | of processor time | all |")
    print("|---|---|---|---|---|---|")
    good = True
    for partitions in (100, 10, 1):
        directory = tempfile.mkdtemp(prefix="bench-pause-")
        try:
            process = Process(directory, SHARDS)
            process.fill(entries, partitions)
            gc.collect()
            gc.freeze()
            gc.set_threshold(*COLLECTIONS)  # as the server does
            slices = [each for shard in process.shards for each in _slices(take_image(shard))]
            image = sum(path.stat().st_size for path in Path(directory).rglob("*.momus-state"))
            process.close()
            wall_ms, own_ms = (max(column) for column in zip(*slices, strict=True))
            good = good and own_ms <= PAUSE_LIMIT_MS
            print(
                f"| {partitions} | {image / 1e6:.1f} MB | {len(slices):,} | {wall_ms:.1f} ms | {own_ms:.1f} ms"
                f" | {sum(own for _, own in slices):,.0f} ms |",
                flush=True,
            )
        finally:
            shutil.rmtree(directory, ignore_errors=True)
    return good


def _slices(steps: Iterator[None]) -> list[tuple[float, float]]:
    """Milliseconds of each step, by the clock and of processor time. Other work on the machine lengthens the first."""
    took = []
    while True:
        begin, own = time.perf_counter(), time.thread_time()
        more = next(steps, steps) is None
        took.append(((time.perf_counter() - begin) * 1000, (time.thread_time() - own) * 1000))
        if not more:
            return took
        if took[-1][0] < 0.01:  # it waits for the disk
            time.sleep(0.001)
