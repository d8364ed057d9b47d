"""Three processes copy records in transactions while they and their broker are killed inside them, again and again.

`python tests/e2e/exactly_once/copy_run.py --records 100000 --kills 3 --broker-kills 5 --zombies 3` is the long
form. A death counts only if it came inside an open transaction: the victim said so and did not say otherwise
before it died; when the broker dies, at least one of the processes is inside one. Zombies are stopped in a transaction
until their group has expelled them, and then go on. The order of deaths, and the moments, come from the seed, as far as
several processes can be repeated at all.
"""

from __future__ import annotations

import argparse
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import IO

from confluent_kafka import KafkaException
from copy_kit import BEGUN, FENCED, IDLE, OFFSETS, REFUSED
from copy_records import GROUP, LIMIT_S, PARTITIONS, SOURCE, TARGET, Records

from momus import Broker

HERE = Path(__file__).parent
WORKERS = 3
TRICKLE = 2 * PARTITIONS  # records at a time, until the next victim has come back and is at work
STALLED_S = 240  # without a record more
SPARED_S = 300  # without a death more
PROMPT = {
    "group.initial.rebalance.delay.ms": 0,
    "group.min.session.timeout.ms": 1000,
    "group.consumer.min.session.timeout.ms": 1000,
    "group.consumer.session.timeout.ms": 2000,
    "group.consumer.min.heartbeat.interval.ms": 100,
    "group.consumer.heartbeat.interval.ms": 300,
}
CLIENTS = ("confluent", "kafka_python", "aiokafka")
BROKER, ZOMBIE = -1, 100  # ZOMBIE and above: workers that are stopped for a while


def python_client(name: str) -> list[str]:
    return [sys.executable, str(HERE / f"copy_{name}.py")]


class Worker:
    """One copying process, started anew as often as it ends."""

    def __init__(self, command: list[str], log: IO[bytes]) -> None:
        self.command = command
        self.log = log
        self.steps: Counter[bytes] = Counter()
        self.deaths: Counter[bytes] = Counter()  # by the last step it told
        self.gave_up = 0
        self.start()

    def start(self) -> None:
        self.step = IDLE
        self.process = subprocess.Popen(self.command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self.log)
        assert self.process.stdout is not None
        os.set_blocking(self.process.stdout.fileno(), False)

    def look(self) -> bool:
        """Whether it is inside a transaction, as far as it has told; one that gave its producer up begins anew."""
        self._read()
        code = self.process.poll()
        if code is not None:
            assert code == FENCED, f"{self.command} ended with {code}"
            self.gave_up += 1
            self._close()
            self.start()
        return self.step != IDLE

    def kill(self) -> bool:
        """Whether that was inside a transaction."""
        self.process.kill()
        self.process.wait()
        self._read()
        self._close()
        if self.process.returncode != FENCED and self.step != IDLE:
            self.deaths[self.step] += 1
            return True
        return False

    def pause(self) -> bool:
        """Whether it stopped in a transaction that has no offsets yet."""
        self.process.send_signal(signal.SIGSTOP)
        time.sleep(0.05)
        self._read()
        if self.step != BEGUN:
            self.process.send_signal(signal.SIGCONT)
        return self.step == BEGUN

    def _read(self) -> None:
        assert self.process.stdout is not None
        while told := self.process.stdout.read(65536):
            self.steps.update(bytes([step]) for step in told)
            self.step = told[-1:]

    def _close(self) -> None:
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.close()
        self.process.stdout.close()


@dataclass
class Figures:
    """What happened."""

    seed: int
    records: int  # at least; more if it takes longer until all have died
    seconds: float = 0.0
    killed: list[int] = field(default_factory=list)  # inside transactions, by worker
    steps: Counter[bytes] = field(default_factory=Counter)  # where they were killed
    broker_killed: int = 0
    missed: int = 0  # deaths outside transactions, which do not count
    zombies: int = 0
    refused: int = 0  # transactions
    gave_up: int = 0
    transactions: int = 0

    def __str__(self) -> str:
        where = ", ".join(f"{n} x {step.decode()!r}" for step, n in sorted(self.steps.items()))
        return (
            f"seed {self.seed}: {self.records} records once and in order in {self.seconds:.0f} s; {self.transactions} "
            f"transactions; killed inside one: processes {self.killed} ({where}), broker {self.broker_killed}; "
            f"{self.missed} more deaths outside; {self.zombies} zombies refused; {self.refused} transactions aborted, "
            f"{self.gave_up} times a producer was fenced or gave up"
        )


class Run:
    """The processes, their broker, and whoever kills them."""

    def __init__(self, broker: Broker, client: Sequence[str], protocol: str, records: int, seed: int, log: IO[bytes]):
        self.broker = broker
        self.rng = Random(seed)
        self.figures = Figures(seed, records)
        self.records = Records(broker.bootstrap_servers, self.rng)
        told = [broker.bootstrap_servers, SOURCE, TARGET, GROUP]
        self.workers = [
            Worker([*client, *told, *map(str, (number, WORKERS, PARTITIONS)), protocol], log)
            for number in range(WORKERS)
        ]

    def run(self, kills: int, broker_kills: int, zombies: int) -> Figures:
        victims = [number for number in range(WORKERS) for _ in range(kills)] + [BROKER] * broker_kills
        victims += [ZOMBIE + number % WORKERS for number in range(zombies)]
        self.rng.shuffle(victims)
        total, seen = self.figures.records, 0
        burst = total // (2 * len(victims) + 2)
        start_s = moved_s = died_s = time.monotonic()
        try:
            self.records.feed(burst)
            due = self.rng.randrange(burst)
            while victims or seen < max(total, self.records.fed):
                now = self.records.look(0.02)
                if now > seen:
                    seen, moved_s = now, time.monotonic()
                assert time.monotonic() - moved_s < STALLED_S, f"{seen} of {self.records.fed} records, no more come"
                assert not victims or time.monotonic() - died_s < SPARED_S, f"{victims} should have died"
                inside = [worker.look() for worker in self.workers]
                killed = bool(victims) and seen >= due and self._kill(victims[-1], inside)
                if killed:
                    moved_s = died_s = time.monotonic()
                    victims.pop()
                    due = self.records.fed + self.rng.randrange(burst)
                if killed or seen >= self.records.fed:
                    rest = max(total - self.records.fed, 0)
                    self.records.feed(min(burst, rest) if killed else TRICKLE if victims else rest)
            self.figures.records = self.records.fed
            self.figures.seconds = time.monotonic() - start_s
            self.records.check()
        finally:
            for worker in self.workers:
                worker.process.kill()
                worker.process.wait()
                worker._close()
        self.figures.killed = [worker.deaths.total() for worker in self.workers]
        self.figures.gave_up = sum(worker.gave_up for worker in self.workers)
        for worker in self.workers:
            self.figures.steps += worker.deaths
            self.figures.refused += worker.steps[REFUSED]
            self.figures.transactions += worker.steps[IDLE] - worker.steps[REFUSED]
        return self.figures

    def _be_a_zombie(self, number: int) -> bool:
        """Whether a worker that was stopped in a transaction, and whose partitions others have now, was refused."""
        worker = self.workers[number]
        if worker.step != BEGUN or not worker.pause():
            return False
        self.records.feed(10 * TRICKLE)
        end_s = time.monotonic() + LIMIT_S
        while f"copier-{number}" in self.records.members():
            assert time.monotonic() < end_s, "a member that is silent is not expelled"
            time.sleep(0.1)
        time.sleep(self.rng.uniform(0.5, 1.0))
        end_s = time.monotonic() + LIMIT_S
        accepted = worker.steps[OFFSETS]
        worker.process.send_signal(signal.SIGCONT)
        while worker.look() and worker.step == BEGUN:
            assert time.monotonic() < end_s, "a zombie is told nothing"
            time.sleep(0.02)
        # what it had asked for before it was stopped may be accepted: then the others wait for its transaction
        refused = worker.steps[OFFSETS] == accepted
        self.figures.zombies += refused
        return refused

    def _kill(self, victim: int, inside: list[bool]) -> bool:
        """Whether it died inside a transaction."""
        if victim >= ZOMBIE:
            return self._be_a_zombie(victim - ZOMBIE)
        if victim == BROKER:
            if not any(inside):
                return False
            time.sleep(self.rng.uniform(0, 0.02))
            self.broker.kill()
            counts = any(worker.look() for worker in self.workers)
            time.sleep(self.rng.choice((0, 0.5)))
            self.broker.start()
            self.figures.broker_killed += counts
        else:
            worker = self.workers[victim]
            if not inside[victim]:
                return False
            time.sleep(self.rng.uniform(0, 0.02))
            counts = worker.kill()
            time.sleep(self.rng.choice((0, 0.5)))
            worker.start()
        self.figures.missed += not counts
        return counts


def copy(
    client: Sequence[str],
    *,
    protocol: str,
    records: int,
    kills: int,
    broker_kills: int,
    seed: int,
    zombies: int = 0,
    flush: str = "os",
    upstream: str | None = None,
) -> Figures:
    """One whole run; AssertionError with what the processes said if it is not as it should be.

    upstream   a cluster, with PROMPT's settings: what is killed in the broker's place is a proxy before it.
    """
    broker_of = Broker(config=PROMPT, flush=flush) if upstream is None else Broker(upstream=upstream)
    with tempfile.TemporaryFile() as log, broker_of as broker:
        try:
            return Run(broker, client, protocol, records, seed, log).run(kills, broker_kills, zombies)
        except (AssertionError, KafkaException) as failure:
            log.seek(0)
            raise AssertionError(f"seed {seed}: {failure}\n{log.read().decode()[-4000:]}{broker.log}") from failure


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--client", choices=CLIENTS, default="confluent")
    parser.add_argument(
        "--class-path", help="of tests/e2e/java/src/Copy.java and Kafka's clients: Java's, instead of --client"
    )
    parser.add_argument("--protocol", choices=("classic", "consumer"), help="of the group; both where the client can")
    parser.add_argument("--records", type=int, default=100_000)
    parser.add_argument("--kills", type=int, default=3, help="of each process")
    parser.add_argument("--broker-kills", type=int, default=5)
    parser.add_argument("--zombies", type=int, default=3, help="not with aiokafka, whose group has no members")
    parser.add_argument("--flush", choices=("os", "fsync"), default="os")
    parser.add_argument("--upstream", help="HOST:PORT of a cluster: a proxy before it is killed in the broker's place")
    parser.add_argument("--seed", type=int, default=None)
    told = vars(parser.parse_args())
    seed = told.pop("seed")
    seed = Random().randrange(1 << 32) if seed is None else seed
    print(f"seed {seed}", flush=True)  # noqa: T201 - a program of its own here
    client, class_path, protocol = told.pop("client"), told.pop("class_path"), told.pop("protocol")
    command = python_client(client)
    if class_path:
        client, command = "java", ["java", "-Xmx192m", "-XX:+UseSerialGC", "-cp", class_path, "Copy"]
    if client == "aiokafka":
        told["zombies"] = 0
    both = client in ("confluent", "java")
    for each in (protocol,) if protocol else ("classic", "consumer") if both else ("classic",):
        print(client, each, copy(command, protocol=each, seed=seed, **told), flush=True)  # noqa: T201 - a program of its own here


if __name__ == "__main__":
    main()
