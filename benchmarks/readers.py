"""A thousand consumers of one partition: `python -m benchmarks.readers [--peer NAME ...] [--readers 1000]`.

tail   all wait at the end of the partition. A batch is produced; the round ends when each of them has it
log    all read 64 MB from the first offset to the last, each at its own pace

A row has the time of a round (the median) or MB/s over all consumers, the broker's processor time for a reply or a GB,
and the most memory that it had. The loader is one process on a core of its own.
"""

from __future__ import annotations

import argparse
import json
import selectors
import statistics
import struct
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from benchmarks.load_requests import FETCH_V, MARK, PRODUCE_V, Requests
from benchmarks.lone import Line, open_topic
from benchmarks.peers import cpu_s, running
from benchmarks.wire import frame, parse
from protocol.record_batch import build_batch

TOPIC = "readers"
INT32, INT64 = struct.Struct(">i"), struct.Struct(">q")
HEAD_BYTES = 70 + len(TOPIC)  # of a Fetch response with one partition, size field included: its records follow
BUFFER = memoryview(bytearray(1 << 20))
RECORD_BYTES, LOG_BYTES, WARM_ROUNDS, SECONDS = 1000, 64 << 20, 3, 3.0
SCENARIOS = ("tail, 200 B", "tail, 16 kB", "tail, 1 MB", "log, 16 kB", "log, 1 MB")
SIZES = {"200 B": 200, "16 kB": 16_000, "1 MB": 1_000_000}


class Reader:
    """One consumer: the reply that it is given is counted, not kept."""

    def __init__(self, line: Line) -> None:
        self.socket = line.socket
        self.offset = 0
        self.left = -1  # bytes of its reply that have not come; -1: how many is not known yet
        self.size = 0

    def read(self) -> int:
        """Take what has come. The size of the reply's records once that is whole, -1 before."""
        n = self.socket.recv_into(BUFFER)
        if not n:
            raise ConnectionError("the broker closed the connection")
        if self.left < 0:  # the size comes in one piece, and mostly the whole head
            self.size = self.left = 4 + INT32.unpack_from(BUFFER)[0]
            if n >= HEAD_BYTES + 8 and INT64.unpack_from(BUFFER, HEAD_BYTES)[0] != self.offset:
                raise SystemExit("the records are not those that were asked for")
        self.left -= n
        if self.left:
            return -1
        self.left = -1
        return self.size - HEAD_BYTES


class Readers:
    """All of them, on one partition of a broker."""

    def __init__(self, address: str, pid: int, count: int, batch_bytes: int) -> None:
        self.pid = pid
        self.requests = Requests(TOPIC, TOPIC, 1)
        self.producer = Line(address)
        open_topic(self.producer, self.requests)
        records = max(1, batch_bytes // RECORD_BYTES)
        self.records, self.batch = (
            records,
            build_batch([(None, bytes(batch_bytes // records))] * records, timestamp_ms=1),
        )
        self.head, self.tail = frame(self.requests.fetch(0, MARK), FETCH_V).split(INT64.pack(MARK))
        self.selector = selectors.DefaultSelector()
        self.readers = [Reader(Line(address)) for _ in range(count)]
        for reader in self.readers:
            self.selector.register(reader.socket, selectors.EVENT_READ, reader)

    def produce(self) -> None:
        """One batch."""
        answer = self.producer.ask(self.requests.produce(0, self.batch), PRODUCE_V)
        if answer.responses[0].partition_responses[0].error_code:
            raise SystemExit("the batch is refused")

    def ask(self, reader: Reader) -> None:
        """The next Fetch of a consumer."""
        reader.socket.sendall(self.head + INT64.pack(reader.offset) + self.tail)

    def round(self) -> float:
        """Seconds from a batch until all have read it."""
        for reader in self.readers:
            self.ask(reader)
        time.sleep(0.1)  # until they wait
        begin, left = time.perf_counter(), len(self.readers)
        self.producer.socket.sendall(frame(self.requests.produce(0, self.batch), PRODUCE_V))
        while left:
            for key, _ in self.selector.select():
                got = key.data.read()
                if not got:
                    self.ask(key.data)  # it had waited for too long
                elif got > 0:
                    left -= 1
        took = time.perf_counter() - begin
        if parse(0, PRODUCE_V, self.producer.reply()[4:]).responses[0].partition_responses[0].error_code:
            raise SystemExit("the batch is refused")
        for reader in self.readers:
            reader.offset += self.records
        return took

    def tail_figures(self) -> dict[str, float]:
        """Rounds for some seconds."""
        for _ in range(WARM_ROUNDS):
            self.round()
        reset_peak(self.pid)
        times, cpu, end = list[float](), cpu_s(self.pid), time.perf_counter() + SECONDS
        while time.perf_counter() < end:
            times.append(self.round())
        used = (cpu_s(self.pid) - cpu) / len(times) / len(self.readers)
        return {"ms": statistics.median(times) * 1e3, "cpu_us": used * 1e6, "peak_mb": peak_mb(self.pid)}

    def log_figures(self) -> dict[str, float]:
        """The whole log, once to warm up and once to be measured."""
        batches = LOG_BYTES // len(self.batch)
        for _ in range(batches):
            self.produce()
        for part in (self.readers[:10], self.readers):
            reset_peak(self.pid)
            cpu, begin, active, total = cpu_s(self.pid), time.perf_counter(), len(part), 0
            for reader in part:
                reader.offset = 0
                self.ask(reader)
            while active:
                for key, _ in self.selector.select():
                    reader = key.data
                    got = reader.read()
                    if got >= 0:
                        whole = got // len(self.batch)  # Kafka cuts the last one
                        total += whole * len(self.batch)
                        reader.offset += whole * self.records
                        if reader.offset < batches * self.records:
                            self.ask(reader)
                        else:
                            active -= 1
            took, used = time.perf_counter() - begin, cpu_s(self.pid) - cpu
        return {"mb_per_s": total / took / 1e6, "cpu_ms": used / total * 1e12, "peak_mb": peak_mb(self.pid)}


def reset_peak(pid: int) -> None:
    """Forget the most memory that a process had."""
    Path(f"/proc/{pid}/clear_refs").write_text("5")


def peak_mb(pid: int) -> float:
    """The most resident memory since then."""
    status = Path(f"/proc/{pid}/status").read_text()
    return int(status.partition("VmHWM:")[2].split()[0]) * 1024 / 1e6


def measure(name: str, scenario: str, count: int) -> dict[str, float]:
    """One run, against a broker that is started for it."""
    with running(name) as broker:
        command = [sys.executable, "-m", "benchmarks.readers", "--run", scenario, broker.address]
        command += [str(broker.process.pid), "--readers", str(count)]
        done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
    figures: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return figures


def text(each: list[dict[str, float]]) -> str:
    """The medians of some runs."""
    units = {"ms": "ms", "cpu_us": "us of processor a reply", "mb_per_s": "MB/s", "cpu_ms": "ms of processor a GB"}
    units["peak_mb"] = "MB of memory"
    medians = {key: statistics.median(one[key] for one in each) for key in each[0]}
    return ", ".join(f"{value:,.0f} {units[key]}" for key, value in medians.items())


def main() -> None:
    """See the module's text."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.readers", description=__doc__)
    parser.add_argument("--peer", action="append", help="kfake, kfake-disk, kafka, or a checkout")
    parser.add_argument("--only", action="append", help="rows whose name begins so")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--readers", type=int, default=1000)
    parser.add_argument("--run", nargs=3, metavar=("SCENARIO", "HOST:PORT", "PID"), help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.run:
        scenario, address, pid = options.run
        kind, _, size = scenario.partition(", ")
        readers: Any = Readers(address, int(pid), options.readers, SIZES[size])
        print(json.dumps(readers.tail_figures() if kind == "tail" else readers.log_figures()))
        return
    names = ["momus", *(options.peer or ["kfake-disk"])]
    print(f"| {options.readers} consumers | {' | '.join(names)} |\n|---{'|---' * len(names)}|")
    for scenario in SCENARIOS:
        if scenario.startswith(tuple(options.only or [""])):
            found: dict[str, list[dict[str, float]]] = {name: [] for name in names}
            for _ in range(options.rounds):
                for name in names:
                    found[name].append(measure(name, scenario, options.readers))
            print(f"| {scenario} | {' | '.join(map(text, found.values()))} |", flush=True)


if __name__ == "__main__":
    main()
