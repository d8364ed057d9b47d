"""Kafka Streams applications with group.protocol=streams: compiled from WordCount.java, run as processes."""

from __future__ import annotations

import fcntl
import hashlib
import subprocess
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from clientwork import until

from momus import Broker

HERE = Path(__file__).parent
JVM = ("java", "-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Dlog4j2.level=OFF")
TOOL = "org.apache.kafka.tools.streams.StreamsGroupCommand"


@pytest.fixture(scope="session")
def word_count_classes(kafka_libs: str) -> str:
    """Class path of the word count and of Kafka Streams."""
    source = HERE / "WordCount.java"
    edition = hashlib.sha256(kafka_libs.encode() + source.read_bytes()).hexdigest()[:12]
    target = HERE.parent / "java" / "target"
    folder = target / f"classes-{edition}"
    with open(target / "lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (folder / "complete").exists():
            command = ["javac", "-nowarn", "-d", str(folder), "-cp", kafka_libs, str(source)]
            done = subprocess.run(command, capture_output=True, text=True, timeout=500)
            assert done.returncode == 0, done.stderr
            (folder / "complete").touch()
    return f"{folder}:{kafka_libs}"


class Instance:
    """One running instance, and all that it has said."""

    def __init__(self, command: list[str]) -> None:
        self.said: list[str] = []
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1)
        self._reader = threading.Thread(target=self._read)
        self._reader.start()

    def _read(self) -> None:
        assert self.process.stdout is not None
        self.said.extend(line.strip() for line in self.process.stdout)

    def is_running(self) -> bool:
        states = [line for line in self.said if line.startswith("STATE")]
        assert self.process.poll() is None, self.said
        return states[-1:] == ["STATE RUNNING"]

    def host_of(self, word: str) -> str:
        """The port of the instance that has the count of a word."""
        assert self.process.stdin is not None
        before = len(self.said)
        print(word, file=self.process.stdin, flush=True)
        until(lambda: [line for line in self.said[before:] if line.startswith("HOST")], f"asked for {word}")
        return self.said[-1].split()[-1]

    def stop(self) -> None:
        """The application ends here, in good order."""
        assert self.process.stdin is not None
        self.process.stdin.close()
        assert self.process.wait(120) == 0
        self._end()

    def kill(self) -> None:
        self.process.kill()
        self.process.wait(60)
        self._end()

    def _end(self) -> None:
        self._reader.join(60)
        assert self.process.stdout is not None
        self.process.stdout.close()
        if self.process.stdin is not None and not self.process.stdin.closed:
            self.process.stdin.close()


@pytest.fixture
def start(word_count_classes: str, broker: Broker, tmp_path: Path) -> Iterator[Callable[..., Instance]]:
    """Starts an instance: application id, topics, a number that makes it different from the others.

    instance   the group.instance.id of a static member
    """
    started: list[Instance] = []

    def run(
        application: str,
        lines: str,
        counts: str,
        number: int,
        guarantee: str = "at_least_once",
        instance: str | None = None,
    ) -> Instance:
        folder, endpoint = str(tmp_path / f"state-{number}"), f"localhost:{7000 + number}"
        command = [*JVM, "-cp", word_count_classes, "WordCount", broker.bootstrap_servers]
        told = [] if instance is None else [instance]
        made = Instance([*command, application, lines, counts, folder, endpoint, guarantee, *told])
        started.append(made)
        return made

    yield run
    for each in started:
        if each.process.poll() is None:
            each.kill()


@pytest.fixture
def tool(kafka_libs: str, broker: Broker) -> Callable[..., str]:
    """Runs kafka-streams-groups and returns what it prints."""

    def run(*arguments: str) -> str:
        command = [*JVM, "-cp", kafka_libs, TOOL, *arguments, "--bootstrap-server", broker.bootstrap_servers]
        done = subprocess.run(command, capture_output=True, text=True, timeout=120)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    return run
