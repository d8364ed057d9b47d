"""How long commits wait while the broker keeps its logs in order: p99 with each kind of upkeep, over p99 without any.

All rows have the same load: commits as fast as they are answered, and beside them 10 MB a second into one partition.
All commits go to one log, so that its cleaner and its images always have work. The segments have the same size; the
rows differ only in the upkeep that is forced to run all the time:

none        the cleaner, the images and retention are off
cleaner     of the logs of committed offsets, ten times a second
images      of the committed offsets, twice a second
retention   of the partition, ten times a second
all         the three together
rarer       none, and segments of 100 MB: what it costs to begin new segments of 1 MB so often

The rows are measured in turn; a ratio is the median over the rounds. Upkeep that had nothing to do costs nothing: so a
row says how many images were taken, how many times its segments were cleaned, and how far retention came.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from benchmarks.load_requests import PRODUCE_V, Requests
from benchmarks.lone import Line
from benchmarks.peers import removed_after, running
from protocol.messages.topics import CreatableTopic, CreateTopicsRequest
from protocol.record_batch import build_batch

LIMIT = 1.5  # of p99, with all upkeep, over p99 without
SHAPES = ((16, 1, 1), (16, 16, 1), (16, 4, 100))  # connections, in flight, partitions
TOPIC, BATCH_BYTES, BATCHES_A_SECOND = "retained", 100_000, 100
LOOK_EVERY_S = 0.05

ONE_LOG = ("offsets.topic.num.partitions=1",)
SMALL = (*ONE_LOG, "offsets.topic.segment.bytes=1048576", "log.segment.bytes=1048576")
CLEANER = ("log.cleaner.backoff.ms=100",)
IMAGES = ("offsets.image.interval.ms=500",)
RETENTION = ("log.retention.bytes=4194304", "log.retention.check.interval.ms=100")
NO_CLEANER, NO_IMAGES = ("log.cleaner.enable=false",), ("offsets.image.interval.ms=0",)
ROWS = {
    "none": (*SMALL, *NO_CLEANER, *NO_IMAGES),
    "cleaner": (*SMALL, *CLEANER, *NO_IMAGES),
    "images": (*SMALL, *NO_CLEANER, *IMAGES),
    "retention": (*SMALL, *NO_CLEANER, *NO_IMAGES, *RETENTION),
    "all": (*SMALL, *CLEANER, *IMAGES, *RETENTION),
    "rarer": (*ONE_LOG, *NO_CLEANER, *NO_IMAGES),
}


@contextmanager
def producing(address: str) -> Iterator[None]:
    """Write to one partition at an even rate. Ends with an error if a batch was refused."""
    line, ended, refused = Line(address), threading.Event(), []
    topic = CreatableTopic(name=TOPIC, num_partitions=1, replication_factor=1)
    line.ask(CreateTopicsRequest(topics=[topic], timeout_ms=60_000), 5)
    records = build_batch([(None, os.urandom(BATCH_BYTES - 100))], timestamp_ms=int(time.time() * 1000))
    request = Requests(TOPIC, "", 1).produce(0, records)

    def produce() -> None:
        due_s = time.perf_counter()
        while not ended.wait(max(0.0, due_s - time.perf_counter())):
            answer = line.ask(request, PRODUCE_V)
            if answer.responses[0].partition_responses[0].error_code:
                refused.append(answer)
                return
            due_s += 1 / BATCHES_A_SECOND

    thread = threading.Thread(target=produce)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()
    if refused:
        raise SystemExit(f"records were refused: {refused[0]}")


class Watch:
    """Counts, while a broker runs, the images that appear, the passes of the cleaner, and the starts of the partition.

    It looks often enough to see most of them, and costs all rows the same.
    """

    def __init__(self, data: Path) -> None:
        self._data = data
        self._images: set[str] = set()
        self._first: set[int] = set()  # inodes of the oldest segment
        self._starts: set[str] = set()
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._look_often)

    def __enter__(self) -> Watch:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._thread.join()

    def _look_often(self) -> None:
        while not self._ended.wait(LOOK_EVERY_S):
            commits = self._data / "__consumer_offsets-0"
            self._images.update(path.name for path in commits.glob("*.momus-state"))
            for found, seen in ((commits, self._first), (self._data / f"{TOPIC}-0", self._starts)):
                names = sorted(path.name for path in found.glob("*.log"))
                if names and seen is self._starts:
                    self._starts.add(names[0])
                elif names:
                    with suppress(FileNotFoundError):  # the cleaner was quicker
                        self._first.add((found / names[0]).stat().st_ino)

    def told(self) -> dict[str, int]:
        """How much upkeep there was."""
        passes, removed = (max(0, len(seen) - 1) for seen in (self._first, self._starts))
        return {"images": len(self._images), "passes": passes, "removed": removed}


def measured(
    shape: tuple[int, int, int], settings: tuple[str, ...], seconds: float, flush: str, kept: list[Path]
) -> dict[str, Any]:
    """Figures of one run, and how much upkeep there was. `kept` takes its directory."""
    with running("momus", flush, settings, kept) as broker:
        command = [sys.executable, "-m", "benchmarks.load", "commit", broker.address, "--seconds", str(seconds)]
        for name, count in zip(("--conns", "--inflight", "--partitions"), shape, strict=True):
            command += [name, str(count)]
        with producing(broker.address), Watch(broker.directory / "data") as watch:
            done = subprocess.run(command, capture_output=True, text=True, check=True)
        return {**json.loads(done.stdout.splitlines()[-1]), **watch.told()}


def waits(rounds: int, seconds: float, flush: str) -> bool:
    """Print the table. Returns whether the p99 with all upkeep stays within the limit, and all of it was at work."""
    print(f"\n| --flush {flush} | upkeep | p99 | of none's | commits/s | images, cleaned, retained |")
    print("|---|---|---|---|---|---|")
    with removed_after() as kept:
        return _rows(rounds, seconds, flush, kept)


def _rows(rounds: int, seconds: float, flush: str, kept: list[Path]) -> bool:
    good = True
    for shape in SHAPES:
        runs: dict[str, list[dict[str, Any]]] = {name: [] for name in ROWS}
        for _ in range(rounds):
            for name, settings in ROWS.items():
                runs[name].append(measured(shape, settings, seconds, flush, kept))
        for name, found in runs.items():
            ratio = statistics.median(a["p99_us"] / b["p99_us"] for a, b in zip(found, runs["none"], strict=True))
            p99, rate, images, passes, removed = (
                statistics.median(each[key] for each in found)
                for key in ("p99_us", "ops_per_s", "images", "passes", "removed")
            )
            print(
                f"| {' x '.join(map(str, shape))} | {name} | {p99:,.0f} us | {ratio:.2f} | {rate:,.0f}"
                f" | {images:.0f}, {passes:.0f}, {removed:.0f} |",
                flush=True,
            )
            if name == "all":
                good = good and ratio <= LIMIT and min(images, passes, removed) > 0
    return good
