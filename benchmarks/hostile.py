"""How long a request waits while others attack the listener or ask for much, beside one alone.

    python -m benchmarks.hostile [--only NEIGHBOURS] [--connections 1000] [--seconds 3] [--peer kafka]

listeners    half-open connections that send nothing, ones that send a byte a second (slowloris), a flood of TLS
             handshakes. Meanwhile one authenticated client asks for metadata, one request after the other.
neighbours   clients that ask for Metadata or configs of 10,000 partitions and read them or do not, that open a fetch
             session with each request, that open 10,000 connections. Meanwhile one client commits an offset each 10 ms.
             `replies/s` are the attacker's, `MB` the broker's memory after each row and a minute after the last.
             `floor` is a uvloop server that sends back what it is sent (benchmarks/floor.py), under the same attack.

http         ten clients of each of ten kinds at the schema registry, or the control endpoint with `--door control`
             (benchmarks/http_attacks.py), and the same commits.

With `--held`, on a machine where others run too, the last column is for how long the broker's loop was kept.
Each attack comes from a process of its own, at a lower priority.
"""

from __future__ import annotations

import argparse
import math
import multiprocessing
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from benchmarks.attacks import ON_LISTENERS, ON_NEIGHBOURS, PARTITIONS, TOPICS, name_of, run
from benchmarks.held import Measured, measured
from benchmarks.http_attacks import HTTP, clients_of
from benchmarks.peers import Running, free_port, running
from momus import Broker
from momus.client.connect_settings import SETTINGS
from momus.client.wire import Connection
from protocol.messages.cluster import FindCoordinatorRequest, MetadataRequest
from protocol.messages.offsets import OffsetCommitRequest, OffsetCommitRequestPartition, OffsetCommitRequestTopic
from protocol.messages.topics import CreatableTopic, CreateTopicsRequest

EVERY_S = 0.01
START_S = 30.0
OPENING = "10,000 connections opening"
QUIET_S = 60
COLUMNS = f"{'p50 ms':>10} {'p99 ms':>10} {'p99.9 ms':>10} {'max ms':>10} {'replies/s':>10}"


@contextmanager
def attacked(attack: Callable[..., None] | None, address: tuple[str, int], connections: int) -> Any:
    """A process that attacks while the block runs; yields what it counts."""
    answers = multiprocessing.Value("q", 0)
    attacker = multiprocessing.Process(target=run, args=(attack, *address, connections, answers), daemon=True)
    if attack is not None:
        attacker.start()
        time.sleep(1)
    try:
        yield answers
    finally:
        if attack is not None:
            attacker.kill()
            attacker.join()


def one_after_the_other(connection: Connection, seconds: float) -> list[float]:
    """Milliseconds of each request."""
    taken, end = [], time.perf_counter() + seconds
    while time.perf_counter() < end:
        begin = time.perf_counter()
        connection.call(MetadataRequest(topics=[]))
        taken.append((time.perf_counter() - begin) * 1000)
    return taken


def commits(connection: Connection, seconds: float) -> list[float]:
    """Milliseconds of each commit, with an offset that moves."""

    def commit(offset: int) -> None:
        partition = OffsetCommitRequestPartition(partition_index=0, committed_offset=offset)
        topics = [OffsetCommitRequestTopic(name=name_of(0), partitions=[partition])]
        request = OffsetCommitRequest(group_id="beside", generation_id_or_member_epoch=-1, topics=topics)
        answer = connection.call(request, version_limit=8)
        assert answer.topics[0].partitions[0].error_code == 0, answer

    return each_10_ms(commit, seconds)


def each_10_ms(ask: Callable[[int], None], seconds: float) -> list[float]:
    """Milliseconds of each call of `ask`, which is given its number.

    Those that were due while one waited would have waited too, each 10 ms less: they are counted so.
    """
    taken: list[float] = []
    end = time.perf_counter() + seconds
    number = 0
    while time.perf_counter() < end:
        begin = time.perf_counter()
        number += 1
        ask(number)
        took = time.perf_counter() - begin
        taken += [(took - late * EVERY_S) * 1000 for late in range(max(1, math.ceil(took / EVERY_S)))]
        time.sleep(max(0.0, EVERY_S - took))
    return taken


def listeners(options: argparse.Namespace) -> None:
    """Attacks on a listener with TLS and SASL."""
    with Broker(security="sasl_ssl", flush="memory", log_level="error") as broker:
        host, _, port = broker.bootstrap_servers.rpartition(":")
        SETTINGS.update(broker.client_config("confluent"))
        connection = Connection(host, int(port), 30)
        print(f"{'':>32} {'p50 ms':>10} {'p99 ms':>10}")
        for name, attack in ({"alone": None} | ON_LISTENERS).items():
            with attacked(attack, (host, int(port)), options.connections):
                taken = one_after_the_other(connection, options.seconds)
            print(f"{name:>32} {statistics.median(taken):>10.2f} {statistics.quantiles(taken, n=100)[98]:>10.2f}")
    SETTINGS.clear()


def _fill(connection: Connection) -> None:
    for each in range(TOPICS):  # Kafka makes no 10,000 partitions at once
        topic = CreatableTopic(name=name_of(each), num_partitions=PARTITIONS, replication_factor=1)
        answer = connection.call(CreateTopicsRequest(topics=[topic], timeout_ms=60_000))
        assert answer.topics[0].error_code == 0, answer.topics[0].error_message


def neighbours(options: argparse.Namespace) -> None:
    """Clients that ask for much."""
    for peer in ("momus", *options.peer):
        with running(peer) as server:
            _neighbours_of(server, peer, options)
    if not options.row or OPENING.startswith(tuple(options.row)):
        _floor(options)


def _neighbours_of(server: Running, peer: str, options: argparse.Namespace) -> None:
    host, _, port = server.address.rpartition(":")
    connection = Connection(host, int(port), 120)
    _fill(connection)
    while connection.call(FindCoordinatorRequest(key="beside"), version_limit=3).error_code:
        time.sleep(0.1)  # Kafka makes its topic of offsets first
    time.sleep(2)
    commits(connection, 1)
    print(f"{peer:>32} {COLUMNS} {'MB':>8}")
    for name, attack in ({"alone": None} | ON_NEIGHBOURS).items():
        if options.row and not name.startswith(tuple(options.row)) and attack is not None:
            continue
        with attacked(attack, (host, int(port)), options.connections) as answers:
            before, begin = answers.value, time.perf_counter()
            taken = commits(connection, options.seconds)
            rate = (answers.value - before) / (time.perf_counter() - begin)
        print(f"{name:>32} {_row(taken, rate)} {server.rss_mb():>8.1f}", flush=True)
    if not options.row:
        time.sleep(QUIET_S)
        print(f"{'a minute later':>32} {'':>54} {server.rss_mb():>8.1f}")


def http(options: argparse.Namespace) -> None:
    """Clients of HTTP who do harm, and a neighbour at the listener."""
    with tempfile.TemporaryDirectory() as folder, _with_doors(options, Path(folder)) as broker:
        host, _, port = broker.bootstrap_servers.rpartition(":")
        place, _, door = (broker.registry if options.door == "registry" else broker.control).rpartition(":")
        connection = Connection(host, int(port), 120)
        connection.call(
            CreateTopicsRequest(topics=[CreatableTopic(name=name_of(0), num_partitions=1, replication_factor=1)])
        )
        connection.call(FindCoordinatorRequest(key="beside"), version_limit=3)
        commits(connection, 1)
        print(f"{options.door:>32} {COLUMNS}")
        for name in ("alone", *HTTP):
            if options.row and not name.startswith(tuple(options.row)):
                continue
            attack = None if name == "alone" else clients_of(name, options.door)
            with attacked(attack, (place, int(door)), options.connections) as answers:
                broker.begin()
                before, begin = answers.value, time.perf_counter()
                taken = commits(connection, options.seconds)
                rate = (answers.value - before) / (time.perf_counter() - begin)
            print(f"{name:>32} {_row(taken, rate)}  {broker.longest()}".rstrip(), flush=True)


@contextmanager
def _with_doors(options: argparse.Namespace, folder: Path) -> Any:
    """A broker with a registry and a control endpoint."""
    if options.held:
        with measured(folder) as broker:
            yield broker
        return
    with Broker(flush="memory", log_level="error") as made:
        registry = made.registry_url.removeprefix("http://")
        (folder / "held").write_text("")
        yield Measured(made.bootstrap_servers, registry, made.control.address, folder / "held")


def _row(taken: list[float], rate: float) -> str:
    cuts = statistics.quantiles(taken, n=1000)
    return f"{cuts[499]:>10.2f} {cuts[989]:>10.2f} {cuts[998]:>10.2f} {max(taken):>10.2f} {rate:>10.0f}"


def _floor(options: argparse.Namespace) -> None:
    port = free_port()
    server = subprocess.Popen([sys.executable, "-m", "benchmarks.floor", str(port)])
    try:
        with _connected(port) as asking:

            def ask(_number: int) -> None:
                asking.sendall(b"as long as a commit of one offset, about " * 2)
                asking.recv(1024)

            for name, attack in {"floor, alone": None, f"floor, {OPENING}": ON_NEIGHBOURS[OPENING]}.items():
                with attacked(attack, ("127.0.0.1", port), options.connections) as answers:
                    before, begin = answers.value, time.perf_counter()
                    taken = each_10_ms(ask, options.seconds)
                    rate = (answers.value - before) / (time.perf_counter() - begin)
                print(f"{name:>32} {_row(taken, rate)}", flush=True)
    finally:
        server.terminate()
        server.wait()


def _connected(port: int) -> socket.socket:
    end = time.monotonic() + START_S
    while True:
        try:
            return socket.create_connection(("127.0.0.1", port))
        except ConnectionRefusedError:
            if time.monotonic() > end:
                raise
            time.sleep(0.05)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    tables = {"listeners": listeners, "neighbours": neighbours, "http": http}
    parser.add_argument("--only", choices=tables)
    parser.add_argument(
        "--row", action="append", default=[], help="neighbours, or clients of HTTP, whose name begins so"
    )
    parser.add_argument("--peer", action="append", default=[], help="as in benchmarks.peers")
    parser.add_argument("--door", choices=("registry", "control"), default="registry", help="of http: whose it is")
    parser.add_argument("--held", action="store_true", help="of http: as benchmarks.held")
    parser.add_argument("--connections", type=int, default=1000)
    parser.add_argument("--seconds", type=float, default=3.0)
    options = parser.parse_args()
    for name, table in tables.items():
        if options.only in (None, name):
            table(options)


if __name__ == "__main__":
    main()
