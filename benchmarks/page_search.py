"""What a search of the page costs: a million records by a literal and by a JSON path, and the commits beside it.

    python -m benchmarks.page_search [--records 1000000] [--rounds 3]

One topic of four partitions with records of 200 bytes, in lz4 batches of 16 kB. Printed: seconds of a search that goes
through all of it, for a text that one record has, for a number by a JSON path, for a part of a value, for another
value than the given one, so that each record is parsed, and for a path whose names no record has; and p50 and p99 of an
OffsetCommit, 200 a second on a connection of its own. Before each search as many seconds without one are measured, so
that other work of the machine is in both; the ratio is that of the p99 of all rounds.
"""

from __future__ import annotations

import argparse
import functools
import json
import random
import socket
import statistics
import threading
import time
import urllib.parse
import urllib.request
from collections.abc import Callable

from benchmarks.page import frames
from benchmarks.wire import frame
from momus import Broker
from protocol.compression import LZ4
from protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from protocol.record_batch import build_batch

PARTITIONS = 4
IN_BATCH = 80  # of 200 bytes: 16 kB
RATE = 200
SEARCHES = {
    "literal": {"value": "needle-4321"},
    "JSON path, in all": {"path": "$.order.number == 4321"},
    "JSON path, a part": {"path": "$.order.table ~ 4321"},
    "JSON path, each is parsed": {"path": "$.order.item != coffee"},
    "JSON path, in none": {"path": "$.absent.number == 4321"},
}


def value(number: int, chance: random.Random) -> bytes:
    """200 bytes of JSON, a half of which no codec makes shorter than by half."""
    found = {"order": {"number": number, "table": number % 97, "item": "needle-4321" if number == 4321 else "coffee"}}
    text = json.dumps(found)
    note = chance.randbytes(100).hex()[: 200 - len(text) - 12]
    return f'{text[:-1]}, "note": "{note}"}}'.encode()


def fill(broker: Broker, records: int) -> None:
    """The topic, as a producer with lz4 and batch.size=16384 writes it."""
    chance = random.Random(1)
    broker.create_topic("large", partitions=PARTITIONS)
    host, _, port = broker.bootstrap_servers.rpartition(":")
    with socket.create_connection((host, int(port))) as wire, wire.makefile("rb") as replies:
        for at in range(0, records, IN_BATCH):
            rows = [(b"k", value(number, chance), [], None) for number in range(at, min(at + IN_BATCH, records))]
            batch = build_batch(rows, timestamp_ms=1_700_000_000_000, attributes=LZ4)
            partition = at // IN_BATCH % PARTITIONS
            data = [PartitionProduceData(index=partition, records=batch)]
            topic = TopicProduceData(name="large", partition_data=data)
            wire.sendall(frame(ProduceRequest(acks=-1, timeout_ms=1000, topic_data=[topic]), 9))
            replies.read(int.from_bytes(replies.read(4), "big"))


class Commits(threading.Thread):
    """RATE commits a second, and how long each took, in ms."""

    def __init__(self, address: str) -> None:
        super().__init__()
        self.address = address
        self.took: list[float] = []
        self.ended = threading.Event()

    def run(self) -> None:
        """Until `ended` is set."""
        host, _, port = self.address.rpartition(":")
        _, commit = frames()
        with socket.create_connection((host, int(port))) as wire, wire.makefile("rb") as replies:
            begin_s, n = time.monotonic(), 0
            while not self.ended.is_set():
                n += 1
                time.sleep(max(0.0, begin_s + n / RATE - time.monotonic()))
                sent_s = time.perf_counter()
                wire.sendall(commit)
                replies.read(int.from_bytes(replies.read(4), "big"))
                self.took.append((time.perf_counter() - sent_s) * 1000)

    def stop(self) -> list[float]:
        """Returns how long each took."""
        self.ended.set()
        self.join()
        return self.took


def p99(took: list[float]) -> float:
    """In ms."""
    return statistics.quantiles(took, n=100)[98]


def measured(broker: Broker, during: Callable[[], float]) -> tuple[float, list[float]]:
    """What `during` returns, and the commits meanwhile."""
    commits = Commits(broker.bootstrap_servers)
    commits.start()
    return during(), commits.stop()


def search(broker: Broker, words: dict[str, str]) -> float:
    """Seconds. Errors: AssertionError: it has not gone through all, or found nothing that is there."""
    url = f"http://{broker.control.address}/_admin/topics/large/search?{urllib.parse.urlencode(words)}"
    begin_s = time.perf_counter()
    with urllib.request.urlopen(url, timeout=600) as answer:
        last = json.loads(answer.read().splitlines()[-1])
    assert last["end"] == "all", last
    assert last["hits"] == ("absent" not in words.get("path", "") and "~" not in words.get("path", "")), last
    return time.perf_counter() - begin_s


def rest(seconds: float) -> float:
    """No search."""
    time.sleep(seconds)
    return seconds


def main() -> None:
    """Print the figures."""
    parser = argparse.ArgumentParser(description="what a search of the page costs")
    parser.add_argument("--records", type=int, default=1_000_000)
    parser.add_argument("--rounds", type=int, default=3)
    asked = parser.parse_args()
    with Broker(flush="os") as broker:
        broker.create_topic("topic-00000")
        fill(broker, asked.records)
        print(f"{broker.control.ask('GET', '/_admin/topics')['topics'][1]['bytes']} bytes in all")
        seconds = {what: [search(broker, words)] for what, words in SEARCHES.items()}
        without = {what: list[float]() for what in SEARCHES}
        beside = {what: list[float]() for what in SEARCHES}
        for _ in range(asked.rounds):
            for what, words in SEARCHES.items():
                without[what] += measured(broker, functools.partial(rest, seconds[what][-1]))[1]
                took_s, commits = measured(broker, functools.partial(search, broker, words))
                seconds[what].append(took_s)
                beside[what] += commits
        for what, took in seconds.items():
            of_all = f"{', '.join(f'{each:.1f}' for each in took)} s"
            before, during = p99(without[what]), p99(beside[what])
            print(f"{what}: {of_all}; commits p99 {before:.2f} ms without, {during:.2f} beside: {during / before:.2f}")


if __name__ == "__main__":
    main()
