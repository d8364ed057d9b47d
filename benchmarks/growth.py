"""What much of everything costs: `python -m benchmarks.growth [WHAT ...] [--most 100] [--seconds 3]`.

Each row is a broker of its own: filled, measured, killed (kill -9), started again and measured again.

topics       1,000 partitions (10 a topic) with a record each, times 1, 10 and 100
groups       1,000 groups (KIP-848) with a member and a committed offset; all sessions end while it is measured
connections  100 clients that have asked for ApiVersions and stay
offsets      100,000 committed offsets, 100 a group
log          0.2 GB in one partition, in batches of 1 MB

start        to the first answer to ApiVersions, and to the first OffsetFetch of a committed offset, after kill -9
memory       resident, when filled, and after the second start
files        descriptors, when filled
commit       p50 and p99 of a lone client's, in microseconds, when filled | after the second start
longest      steps of the loop, in milliseconds of processor time (benchmarks/stepped.py): filling, measuring, and
             after the second start
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks.load_requests import COMMIT_V, FETCHOFF_V, PRODUCE_V, Requests
from benchmarks.lone import Line
from benchmarks.offsets import fill as fill_offsets
from benchmarks.peers import API_VERSIONS, START_S, answers, free_port, momus_command, removed_after
from momus.launch import use_packages

use_packages()

from protocol.messages.consumer_group import ConsumerGroupHeartbeatRequest  # noqa: E402  # after use_packages
from protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData  # noqa: E402  # the same
from protocol.messages.topics import CreatableTopic, CreateTopicsRequest  # noqa: E402  # the same
from protocol.record_batch import build_batch  # noqa: E402  # the same

TIMES = (1, 10, 100)
A_TOPIC = 10  # partitions
TOPICS_AT_ONCE = 5
BATCH_BYTES = 1_000_000
LOG_BATCHES = 200
SESSION_MS = 6_000
ASK_AGAIN_S = 0.002
SETTINGS = (
    "auto.create.topics.enable=true",
    f"group.consumer.session.timeout.ms={SESSION_MS}",
    f"group.consumer.min.session.timeout.ms={SESSION_MS}",
)


class Broker:
    """A momus whose steps are timed, over one directory that outlives it."""

    def __init__(self) -> None:
        self.directory = Path(tempfile.mkdtemp(prefix="bench-growth-"))
        self.steps = self.directory / "steps"
        self.steps.touch()
        self._read = 0
        self.address = ""
        self.process: Any = None

    def start(self) -> float:
        """Milliseconds to the first answer."""
        port = free_port()
        command = momus_command(port, self.directory / "data", "os", SETTINGS)
        command[1:3] = ["-m", "benchmarks.stepped", str(self.steps)]
        self.address = f"127.0.0.1:{port}"
        begin = time.perf_counter()
        self.process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
        while not answers(self.address):
            if self.process.poll() is not None or time.perf_counter() - begin > START_S:
                raise SystemExit("momus did not start")
            time.sleep(ASK_AGAIN_S)
        return (time.perf_counter() - begin) * 1000

    def rss_mb(self) -> float:
        """Resident memory."""
        with open(f"/proc/{self.process.pid}/statm") as statm:
            return int(statm.read().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 1e6

    def files(self) -> int:
        """Open descriptors."""
        return len(os.listdir(f"/proc/{self.process.pid}/fd"))

    def longest(self) -> tuple[float, str]:
        """The longest step since the last call; 0: none was above stepped.SHORTEST_MS.

        A coroutine's steps are left out: the start's, before anybody can connect.
        """
        with open(self.steps) as steps:
            steps.seek(self._read)
            lines = steps.read().splitlines()
            self._read = steps.tell()
        found = [line.partition(" ") for line in lines]
        return max(((float(ms), name) for ms, _, name in found if not name.startswith("Task")), default=(0.0, ""))

    def kill(self) -> None:
        """kill -9."""
        self.process.kill()
        self.process.wait()


class Known(NamedTuple):
    """A committed offset that must be there after a restart, and what must stay open."""

    group: str
    topic: str
    partitions: int
    offset: int
    kept: Any = None


def ask(line: Line, request: Any, version: int) -> Any:
    """One request, and its response."""
    return line.ask(request, version)


def commit_one(address: str, group: str = "known", offset: int = 4711) -> Known:
    """One committed offset."""
    line, requests = Line(address), Requests("known", group, 1)
    create(line, [("known", 1)])
    answer = ask(line, requests.commit(group, offset), COMMIT_V)
    if answer.topics[0].partitions[0].error_code:
        raise SystemExit(f"the commit was refused: {answer}")
    return Known(group, "known", 1, offset)


def create(line: Line, topics: list[tuple[str, int]]) -> None:
    """Topics by name and partitions."""
    wanted = [CreatableTopic(name=name, num_partitions=count, replication_factor=1) for name, count in topics]
    answer = ask(line, CreateTopicsRequest(topics=wanted, timeout_ms=60_000), 5)
    if any(each.error_code for each in answer.topics):
        raise SystemExit(f"the topics were refused: {answer}")


def fill_topics(address: str, times: int) -> Known:
    """Topics of ten partitions, with a record in each partition."""
    line = Line(address)
    records = build_batch([(None, b"x" * 100)], timestamp_ms=int(time.time() * 1000))
    names = [f"topic-{n}" for n in range(100 * times)]
    for first in range(0, len(names), TOPICS_AT_ONCE):
        some = names[first : first + TOPICS_AT_ONCE]
        create(line, [(name, A_TOPIC) for name in some])
        rows = [PartitionProduceData(index=index, records=records) for index in range(A_TOPIC)]
        data = [TopicProduceData(name=name, partition_data=rows) for name in some]
        answer = ask(line, ProduceRequest(acks=-1, timeout_ms=60_000, topic_data=data), PRODUCE_V)
        if any(part.error_code for topic in answer.responses for part in topic.partition_responses):
            raise SystemExit("records were refused")
    return commit_one(address)


def fill_groups(address: str, times: int) -> Known:
    """Groups with a member and an offset."""
    line = Line(address)
    create(line, [("load", 1)])
    for n in range(1_000 * times):
        group, requests = f"group-{n}", Requests("load", f"group-{n}", 1)
        joins = ConsumerGroupHeartbeatRequest(
            group_id=group,
            member_id=f"member-{n}",
            member_epoch=0,
            rebalance_timeout_ms=60_000,
            subscribed_topic_names=["load"],
            topic_partitions=[],
        )
        joined = ask(line, joins, 1)
        request = requests.commit(group, n)
        request.member_id, request.generation_id_or_member_epoch = f"member-{n}", joined.member_epoch
        answer = ask(line, request, 9)
        if joined.error_code or answer.topics[0].partitions[0].error_code:
            raise SystemExit(f"refused: {joined} {answer}")
    return Known(group, "load", 1, n)


def fill_connections(address: str, times: int) -> Known:
    """Clients that stay."""
    host, _, port = address.rpartition(":")
    kept = []
    for _ in range(100 * times):
        client = socket.create_connection((host, int(port)), timeout=60)
        client.sendall(API_VERSIONS)
        client.recv(1 << 16)
        kept.append(client)
    return commit_one(address)._replace(kept=kept)


def fill_with_offsets(address: str, times: int) -> Known:
    """Offsets, a hundred a group."""
    group, offset = asyncio.run(fill_offsets(address, 100_000 * times, 100))
    return Known(group, "load", 100, offset)


def fill_log(address: str, times: int) -> Known:
    """Bytes in one partition."""
    line = Line(address)
    create(line, [("large", 1)])
    value = os.urandom(BATCH_BYTES - 200)
    for _ in range(LOG_BATCHES * times):
        records = build_batch([(None, value)], timestamp_ms=int(time.time() * 1000))
        request = Requests("large", "", 1).produce(0, records)
        answer = ask(line, request, PRODUCE_V)
        if answer.responses[0].partition_responses[0].error_code:
            raise SystemExit(f"refused: {answer}")
    return commit_one(address)


FILLS: dict[str, tuple[Callable[[str, int], Known], str]] = {
    "connections": (fill_connections, "{:,} connections"),
    "offsets": (fill_with_offsets, "{:,} offsets"),
    "groups": (fill_groups, "{:,} groups"),
    "topics": (fill_topics, "{:,} partitions"),
    "log": (fill_log, "{:,} MB"),
}
UNITS = {"connections": 100, "offsets": 100_000, "groups": 1_000, "topics": 1_000, "log": LOG_BATCHES}


def lone(address: str, seconds: float) -> tuple[float, float]:
    """p50 and p99 of a lone client's commits, in microseconds."""
    command = [sys.executable, "-m", "benchmarks.lone", "commit", address, "--seconds", str(seconds)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    figures = json.loads(done.stdout.splitlines()[-1])
    return figures["p50_us"], figures["p99_us"]


def first_answer(address: str, known: Known) -> None:
    """Ask for a committed offset until it is told."""
    line, requests = Line(address), Requests(known.topic, known.group, known.partitions)
    while True:
        found = requests.fetched_offsets(ask(line, requests.fetch_offsets(known.group), FETCHOFF_V))
        if found == [known.offset] * known.partitions:
            return
        time.sleep(ASK_AGAIN_S)


def told(step: tuple[float, str]) -> str:
    """A longest step, as the table shows it."""
    ms, name = step
    return f"{ms:.0f} ({name})" if ms else "-"


def row(what: str, times: int, seconds: float, directories: list[Path]) -> None:
    """One line of the table. Adds the directory that is to be removed."""
    fill, label = FILLS[what]
    broker = Broker()
    directories.append(broker.directory)
    try:
        broker.start()
        begin = time.perf_counter()
        known = fill(broker.address, times)
        filled_s, filling = time.perf_counter() - begin, broker.longest()
        rss, files = broker.rss_mb(), broker.files()
        before, steady = lone(broker.address, seconds), broker.longest()
        known = known._replace(kept=None)
        broker.kill()
        begin = time.perf_counter()
        started_ms = broker.start()
        first_answer(broker.address, known)
        answered_ms = (time.perf_counter() - begin) * 1000
        after = lone(broker.address, seconds)
        cells = (
            label.format(UNITS[what] * times),
            f"{filled_s:.1f} s",
            f"{started_ms:.0f}, {answered_ms:.0f} ms",
            f"{rss:.0f}, {broker.rss_mb():.0f} MB",
            f"{files:,}",
            f"{before[0]:.0f}, {before[1]:.0f} / {after[0]:.0f}, {after[1]:.0f}",
            told(filling),
            told(steady),
            told(broker.longest()),
        )
        print(f"| {' | '.join(cells)} |", flush=True)
    finally:
        broker.kill()


def main() -> None:
    """Print the table in Markdown."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.growth", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("what", nargs="*", help="all if none is named")
    parser.add_argument("--most", type=int, default=TIMES[-1], help="the largest factor")
    parser.add_argument("--seconds", type=float, default=8.0)
    options = parser.parse_args()
    unknown = set(options.what) - FILLS.keys()
    if unknown:
        parser.error(f"{', '.join(sorted(unknown))}: one of {', '.join(FILLS)}")
    print("| | filled in | start, first answer | memory | files | commit | filling | measuring | after the start |")
    print("|---|---|---|---|---|---|---|---|---|", flush=True)
    with removed_after() as directories:
        for what in options.what or FILLS:
            for times in TIMES:
                if times <= options.most:
                    row(what, times, options.seconds, directories)


if __name__ == "__main__":
    main()
