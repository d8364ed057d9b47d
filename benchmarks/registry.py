"""What the schema registry costs: lookups by id beside commits, its first use, and ten thousand schemas.

    python -m benchmarks.registry [--only lookups first many] [--seconds 3] [--rounds 5]

lookups  commits at COMMITS a second, alone and beside LOOKUPS lookups a second, in turn: the medians of the rounds, and
         the ratio of the p99 of commits. Then as many lookups as are answered beside the commits. Lookups go over
         CONNECTIONS connections that are kept, each for an id that is not the one before.
first    from the opening of a registry until its first Avro schema is registered, beside a Python that only imports
         the library; and the processor time of both, which other work on the machine changes less.
many     SCHEMAS schemas of some 700 bytes: memory, and from a start after kill -9 until one of them is answered, beside
         a broker that has none.

Loads are processes of their own. On a machine that has other work only ratios say something.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import resource
import socket
import statistics
import subprocess
import sys
import tempfile
import threading
import time
import urllib.parse
from pathlib import Path
from typing import Any

from benchmarks.kits import resident_mb
from benchmarks.load_requests import COMMIT_V, MARK, PRODUCE_V, Requests
from benchmarks.lone import INT64, Line, open_topic, patiently
from benchmarks.peers import cpu_s
from benchmarks.wire import frame, parse, quantile
from broker.registry.records import dump
from momus import Broker
from protocol.messages.cluster import FindCoordinatorRequest
from protocol.record_batch import build_batch

PARTS = ("lookups", "first", "many")
COMMITS, LOOKUPS, CONNECTIONS, IDS, SCHEMAS = 1000, 2000, 8, 200, 10_000
BATCH = 500  # records of one Produce
LIBRARY = "import json, sys, warnings, avro.errors, avro.name, avro.schema"


def schema(number: int) -> str:
    """An Avro schema of ten fields, unlike all others."""
    fields = [{"name": f"field_{each}", "type": ["null", "string"], "default": None} for each in range(10)]
    return json.dumps({"type": "record", "name": f"Order{number}", "namespace": "shop", "fields": fields})


def fill(broker: Broker, count: int) -> None:
    """Write schemas into the topic as another registry would."""
    broker.create_topic("_schemas", config={"cleanup.policy": "compact"})
    line, requests = Line(broker.bootstrap_servers), Requests("_schemas", "", 1)
    for start in range(1, count + 1, BATCH):
        rows: list[tuple[bytes, bytes, tuple[()], None]] = []
        for number in range(start, min(start + BATCH, count + 1)):
            subject = f"orders-{number}-value"
            key = {"keytype": "SCHEMA", "subject": subject, "version": 1, "magic": 1}
            value = {"subject": subject, "version": 1, "id": number, "schema": schema(number), "deleted": False}
            rows.append((dump(key), dump(value), (), None))
        batch = build_batch(rows, timestamp_ms=int(time.time() * 1000))
        answer = line.ask(requests.produce(0, batch), PRODUCE_V)
        assert not answer.responses[0].partition_responses[0].error_code, answer


# -- the loads, each in a process of its own


def commits(address: str, seconds: float) -> dict[str, float]:
    """COMMITS a second on one connection: milliseconds from send to answer."""
    line, requests = Line(address), Requests("load", "load", 1)
    open_topic(line, requests)
    patiently(line, FindCoordinatorRequest(key="load", key_type=0), 2, lambda answer: not answer.error_code)
    first = requests.commit("load", 0)
    patiently(line, first, COMMIT_V, lambda answer: not answer.topics[0].partitions[0].error_code)
    head, tail = frame(requests.commit("load"), COMMIT_V).split(INT64.pack(MARK))
    took: list[tuple[float, int]] = []
    begin_s, n = time.perf_counter() + 0.3, 0
    while (due_s := begin_s + n / COMMITS) < begin_s + seconds:
        time.sleep(max(0.0, due_s - time.perf_counter()))
        sent_s, n = time.perf_counter(), n + 1
        line.socket.sendall(head + INT64.pack(n) + tail)
        answer = line.reply()
        took.append((time.perf_counter() - sent_s, 1))
        assert n % 500 or not parse(8, COMMIT_V, answer[4:]).topics[0].partitions[0].error_code
    lasted_s = time.perf_counter() - begin_s
    return {"per_s": n / lasted_s, "p50_us": quantile(took, 0.5), "p99_us": quantile(took, 0.99)}


class Web:
    """A connection to a registry that is kept."""

    def __init__(self, url: str) -> None:
        place = urllib.parse.urlsplit(url)
        self.socket = socket.create_connection((place.hostname or "", place.port or 0))
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.host = place.netloc

    def look_up(self, number: int) -> bytes:
        """The answer's body, to the request of python-requests."""
        self.socket.sendall(
            f"GET /schemas/ids/{number} HTTP/1.1\r\nHost: {self.host}\r\nUser-Agent: python-requests/2.32.3\r\n"
            "Accept-Encoding: gzip, deflate\r\nAccept: application/vnd.schemaregistry.v1+json\r\n"
            "Connection: keep-alive\r\n\r\n".encode()
        )
        data = self.socket.recv(65_536)
        head, found, body = data.partition(b"\r\n\r\n")
        assert found, data
        assert head.startswith(b"HTTP/1.1 200 "), head
        length = int(head.lower().partition(b"content-length: ")[2].partition(b"\r\n")[0])
        while len(body) < length:
            body += self.socket.recv(65_536)
        return body


def lookups(url: str, seconds: float, rate: int) -> dict[str, float]:
    """RATE a second, one connection after the other; 0: as many as are answered, on all of them at once."""
    webs = [Web(url) for _ in range(CONNECTIONS)]
    begin_s = time.perf_counter() + 0.2
    if not rate:
        counts = [0] * CONNECTIONS
        runs = [threading.Thread(target=_closed, args=(web, begin_s, seconds, counts, i)) for i, web in enumerate(webs)]
        for run in runs:
            run.start()
        for run in runs:
            run.join()
        return {"per_s": sum(counts) / seconds}
    n = 0
    while (due_s := begin_s + n / rate) < begin_s + seconds:
        time.sleep(max(0.0, due_s - time.perf_counter()))
        body = webs[n % CONNECTIONS].look_up(1 + n % IDS)
        n += 1
        assert b'"schema":' in body, body
    return {"per_s": n / (time.perf_counter() - begin_s)}


def _closed(web: Web, begin_s: float, seconds: float, counts: list[int], index: int) -> None:
    time.sleep(max(0.0, begin_s - time.perf_counter()))
    while time.perf_counter() < begin_s + seconds:
        web.look_up(1 + (counts[index] * CONNECTIONS + index) % IDS)
        counts[index] += 1


def begun(name: str, *words: object) -> subprocess.Popen[str]:
    """One of the loads."""
    command = [sys.executable, "-m", "benchmarks.registry", "--load", name, *(str(word) for word in words)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)


def ended(process: subprocess.Popen[str]) -> dict[str, float]:
    """What a load came to."""
    told, _ = process.communicate(timeout=600)
    assert process.returncode == 0
    found: dict[str, float] = json.loads(told)
    return found


# -- the parts


def measure_lookups(options: argparse.Namespace) -> None:
    """Print what commits and lookups do to each other."""
    with Broker(registry=True) as broker:
        fill(broker, IDS)
        url, rows = broker.registry_url, []
        for _ in range(options.rounds):
            alone = ended(begun("commits", broker.bootstrap_servers, options.seconds))
            both = begun("commits", broker.bootstrap_servers, options.seconds)
            asking = begun("lookups", url, options.seconds, LOOKUPS)
            beside, asked = ended(both), ended(asking)
            both = begun("commits", broker.bootstrap_servers, options.seconds)
            rows.append((alone, beside, asked, ended(begun("lookups", url, options.seconds, 0))))
            ended(both)
        used_s = cpu_s(broker.pid)
        only = ended(begun("lookups", url, options.seconds, 0))
        used_us = 1e6 * (cpu_s(broker.pid) - used_s) / (only["per_s"] * options.seconds)

    def middle(column: int, name: str) -> float:
        return statistics.median(row[column][name] for row in rows)

    shown = {
        "commits alone, p50 and p99 us": [middle(0, "p50_us"), middle(0, "p99_us")],
        "commits beside, p50 and p99 us": [middle(1, "p50_us"), middle(1, "p99_us")],
        "commits beside, a second": [middle(1, "per_s")],
        "lookups beside, a second": [middle(2, "per_s")],
        "ratio of p99, by round": [row[1]["p99_us"] / row[0]["p99_us"] for row in rows],
        "ratio of p50, by round": [row[1]["p50_us"] / row[0]["p50_us"] for row in rows],
        "most lookups a second beside commits": [middle(3, "per_s")],
        "most lookups a second": [only["per_s"]],
        "processor time of the broker, us a lookup": [used_us],
    }
    for name, figures in shown.items():
        print(f"{name}: {'  '.join(f'{each:.2f}' if each < 100 else f'{each:.0f}' for each in figures)}", flush=True)


def used_ms(pid: int) -> float:
    """Processor time of a process's threads, to the microsecond."""
    return sum(int(each.read_text().split()[0]) for each in Path(f"/proc/{pid}/task").glob("*/schedstat")) / 1e6


def children(pid: int) -> list[int]:
    """The processes that a process has begun."""
    return [int(each) for each in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def measure_first(options: argparse.Namespace) -> None:
    """Print what the first use waits for."""
    opened, registered, imports, used, used_by_imports = [], [], [], [], []
    for _ in range(options.rounds):
        begin_s, before = time.perf_counter(), resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run([sys.executable, "-I", "-c", LIBRARY], check=True)
        imports.append(time.perf_counter() - begin_s)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        used_by_imports.append(1000 * (after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime))
        with Broker() as broker:
            broker.create_topic("t")
            begin_s, begin_ms = time.perf_counter(), used_ms(broker.pid)
            url = broker.registry_url
            opened.append(time.perf_counter() - begin_s)
            body = json.dumps({"schema": schema(1)}).encode()
            place = urllib.parse.urlsplit(url)
            with socket.create_connection((place.hostname or "", place.port or 0)) as wire:
                head = f"POST /subjects/s/versions HTTP/1.1\r\nHost: {place.netloc}\r\nContent-Length: {len(body)}"
                wire.sendall(f"{head}\r\n\r\n".encode() + body)
                answer = wire.recv(65_536)
                assert answer.startswith(b"HTTP/1.1 200 "), answer
            registered.append(time.perf_counter() - begin_s)
            used.append(sum(used_ms(each) for each in (broker.pid, *children(broker.pid))) - begin_ms)
    beyond = [1000 * (whole - part) for whole, part in zip(registered, imports, strict=True)]
    for name, figures in (
        ("opened, ms", [1000 * each for each in opened]),
        ("first schema registered, ms", [1000 * each for each in registered]),
        ("a Python that imports the library, ms", [1000 * each for each in imports]),
        ("beyond it, ms", beyond),
        ("processor time of it all, ms", used),
        ("processor time of a Python that imports the library, ms", used_by_imports),
    ):
        print(f"{name}: median {statistics.median(figures):.1f}, least {min(figures):.1f}", flush=True)


def measure_many(options: argparse.Namespace) -> None:
    """Print what ten thousand schemas take; the starts with and without them are made in turn."""
    walls: dict[int, list[float]] = {0: [], SCHEMAS: []}
    works: dict[int, list[float]] = {0: [], SCHEMAS: []}
    with tempfile.TemporaryDirectory() as folder, contextlib.ExitStack() as stack:
        brokers = {count: stack.enter_context(Broker(data_dir=f"{folder}/{count}")) for count in walls}
        for count, broker in brokers.items():
            if count:
                fill(broker, count)
            before_mb = resident_mb(broker.pid)
            _asked(broker, count)
            print(f"{count} schemas: {resident_mb(broker.pid) - before_mb:.1f} MB more when it is used", flush=True)
        for _ in range(options.rounds):
            for count, broker in brokers.items():
                broker.kill()
                begin_s = time.perf_counter()
                broker.start()
                _asked(broker, count)
                walls[count].append(time.perf_counter() - begin_s)
                works[count].append(cpu_s(broker.pid))
        for count, broker in brokers.items():
            print(f"{count} schemas: {resident_mb(broker.pid):.1f} MB in all after a start")
    for count in walls:
        wall, work = walls[count], works[count]
        print(
            f"start with {count}: median {statistics.median(wall):.3f} s, least {min(wall):.3f} s; "
            f"of the processor median {statistics.median(work):.3f} s, least {min(work):.3f} s"
        )
    load = ", ".join(f"{each:.1f}" for each in os.getloadavg())
    print(f"the schemas: {min(walls[SCHEMAS]) - min(walls[0]):.3f} s more, load {load}")


def _asked(broker: Broker, number: int) -> None:
    """Open its registry, and ask for the last of so many schemas."""
    web = Web(broker.registry_url)
    if number:
        web.look_up(number)


LOADS: dict[str, Any] = {
    "commits": lambda words: commits(words[0], float(words[1])),
    "lookups": lambda words: lookups(words[0], float(words[1]), int(words[2])),
}


def main() -> None:
    """Measure, and print."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.registry", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--only", nargs="+", choices=PARTS, default=PARTS)
    parser.add_argument("--seconds", type=float, default=3.0)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--load", nargs="+", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.load:
        print(json.dumps(LOADS[options.load[0]](options.load[1:])))
        return
    for part in options.only:
        {"lookups": measure_lookups, "first": measure_first, "many": measure_many}[part](options)


if __name__ == "__main__":
    main()
