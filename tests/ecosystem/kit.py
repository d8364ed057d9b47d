"""What the scripts of this folder share: programs fetched by Maven, pip or Go; records written and read."""

from __future__ import annotations

import hashlib
import json
import os
import re
import signal
import socket
import subprocess
import sys
import time
import traceback
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path
from types import FrameType, TracebackType

from confluent_kafka import Consumer, KafkaError, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

REPOSITORY = Path(__file__).resolve().parents[2]
BUILD = REPOSITORY / "build" / "ecosystem"
LIMIT_S = 300.0  # ends what hangs; nothing is measured by it
FETCH_LIMIT_S = 900
OUTCOME = "OUTCOME "  # the line by which a script tells its result
JVM = ("java", "-Xmx384m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Dlog4j2.level=INFO")


class NotRunError(Exception):
    """The program cannot be had or run here; the reason."""


def edition(folder: Path, *names: str) -> Path:
    """A folder below build/ for what is made from these files: another content, another folder."""
    content = b"".join((folder / name).read_bytes() for name in names)
    made = BUILD / f"{folder.name}-{hashlib.sha256(content).hexdigest()[:12]}"
    made.mkdir(parents=True, exist_ok=True)
    return made


def fetch(command: Sequence[object], cwd: Path | None = None) -> None:
    """Run a command that fetches or builds a program.

    Errors: NotRunError with the first line that names an error, or the first line of all.
    """
    words = [str(word) for word in command]
    try:
        done = subprocess.run(words, cwd=cwd, capture_output=True, text=True, timeout=FETCH_LIMIT_S)
    except FileNotFoundError:
        raise NotRunError(f"{words[0]} is not installed") from None
    except subprocess.TimeoutExpired:
        raise NotRunError(f"{words[0]} did not end within {FETCH_LIMIT_S} s") from None
    if done.returncode:
        lines = [line.strip() for line in (done.stdout + done.stderr).splitlines() if line.strip()]
        errors = [line for line in lines if "error" in line.lower()]
        raise NotRunError((errors or lines or ["no output"])[0][:200])


def jars(folder: Path, goal: str = "copy-dependencies") -> Path:
    """The folder with the jars that pom.xml lists, as Maven resolves them; goal "copy": those alone."""
    made = edition(folder, "pom.xml")
    if not (made / "complete").exists():
        options = (f"-DoutputDirectory={made}", "-DincludeScope=runtime")
        fetch(("mvn", "-B", "-q", "-f", folder / "pom.xml", f"dependency:{goal}", *options))
        (made / "complete").touch()
    return made


def version_in(folder: Path, name: str) -> str:
    """The version that a property of pom.xml pins."""
    found = re.search(rf"<{re.escape(name)}>(.*?)</", (folder / "pom.xml").read_text())
    assert found, f"pom.xml has no {name}"
    return found[1]


def compiled(folder: Path, *sources: str) -> str:
    """Class path of Java sources beside pom.xml, and of the jars that it lists."""
    libraries = jars(folder)
    made = edition(folder, "pom.xml", *sources) / "classes"
    if not (made / "complete").exists():
        files = [folder / source for source in sources]
        fetch(("javac", "-nowarn", "-parameters", "-d", made, "-cp", f"{libraries}/*", *files))
        (made / "complete").touch()
    return f"{made}:{libraries}/*"


def virtual_environment(folder: Path, *, hashed: bool = True) -> Path:
    """The Python of a virtual environment that holds what requirements.txt pins; `hashed`: nothing else, each wheel
    checked by its hash."""
    made = edition(folder, "requirements.txt")
    if not (made / "complete").exists():
        fetch((sys.executable, "-m", "venv", "--clear", made))
        pip = (made / "bin" / "python", "-m", "pip", "install", "--quiet", "--disable-pip-version-check")
        checks = ("--require-hashes", "--no-deps", "--only-binary", ":all:") if hashed else ()
        fetch((*pip, *checks, "-r", folder / "requirements.txt"))
        (made / "complete").touch()
    return made / "bin" / "python"


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def until(found: Callable[[], bool], what: str, limit_s: float = LIMIT_S) -> None:
    """Ask again until it is so, as long as the programs that were started run."""
    ends = time.monotonic() + limit_s
    while not found():
        for program in RUNNING:
            program.check()
        assert time.monotonic() < ends, f"after {limit_s:.0f} s still not: {what}"
        time.sleep(0.1)


RUNNING: list[Program] = []


class Program:
    """A process whose output goes to a file; the `with` block's end is its end, and a failure shows the file's."""

    def __init__(self, command: Sequence[object], log: Path, cwd: Path | None = None) -> None:
        self.command = [str(word) for word in command]
        self.log = log
        self.cwd = cwd
        self.start()

    def start(self) -> None:
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(
                self.command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, cwd=self.cwd
            )
        RUNNING.append(self)

    def check(self) -> None:
        code = self.process.poll()
        assert code is None, f"{Path(self.command[0]).name} ended by itself with {code}"

    def said(self, pattern: str) -> bool:
        """Whether it printed something like that."""
        return re.search(pattern, self.log.read_text(errors="replace")) is not None

    def kill(self) -> None:
        """kill -9."""
        RUNNING.remove(self)
        self.process.kill()
        self.process.wait()

    def stop(self) -> int:
        """SIGTERM, and SIGKILL for what does not end by it. Returns the exit code."""
        if self in RUNNING:
            RUNNING.remove(self)
        if self.process.poll() is None:
            self.process.terminate()
            try:
                self.process.wait(60)
            except subprocess.TimeoutExpired:
                self.process.kill()
        return self.process.wait()

    def __enter__(self) -> Program:
        return self

    def __exit__(self, kind: type[BaseException] | None, _: BaseException | None, __: TracebackType | None) -> None:
        self.stop()
        if kind is not None:
            sys.stderr.write(f"---- {self.log.name}, its end\n{self.log.read_text(errors='replace')[-6000:]}\n")


@cache
def admin(bootstrap: str) -> AdminClient:
    """One for each address: it must outlive its futures, and one that is freed beside a late answer can crash."""
    return AdminClient({"bootstrap.servers": bootstrap, "log_level": 0})


def make_topic(bootstrap: str, name: str, partitions: int = 1) -> None:
    admin(bootstrap).create_topics([NewTopic(name, partitions, 1)])[name].result(60)


def write(bootstrap: str, topic: str, values: Sequence[str], partitions: int = 1) -> None:
    """Write values to a topic's partitions in turn, each acknowledged."""
    producer = Producer({"bootstrap.servers": bootstrap, "enable.idempotence": True, "linger.ms": 5, "log_level": 0})
    for at, value in enumerate(values):
        producer.produce(topic, value.encode(), partition=at % partitions)
        producer.poll(0)
    assert producer.flush(60) == 0


def read(bootstrap: str, topic: str, partitions: int = 1, *, committed: bool = True) -> list[list[str]]:
    """Values of all records now in a topic, by partition, each in the log's order; `committed`: of these alone."""
    settings = {
        "bootstrap.servers": bootstrap,
        "group.id": "reader",
        "enable.auto.commit": False,
        "isolation.level": "read_committed" if committed else "read_uncommitted",
        "enable.partition.eof": True,
        "allow.auto.create.topics": False,
        "log_level": 0,
    }
    consumer = Consumer(settings)
    found: list[list[str]] = [[] for _ in range(partitions)]
    consumer.assign([TopicPartition(topic, partition, 0) for partition in range(partitions)])
    at_the_end = 0
    ends = time.monotonic() + LIMIT_S
    while at_the_end < partitions:
        assert time.monotonic() < ends, f"{topic} cannot be read to its end"
        message = consumer.poll(1)
        if message is None:
            continue
        error = message.error()
        if error is None:
            found[message.partition()].append(message.value().decode())
        elif error.code() == KafkaError._PARTITION_EOF:
            at_the_end += 1
        else:
            raise AssertionError(str(error))
    consumer.close()
    return found


def _end(_signal: int, _frame: FrameType | None) -> None:
    sys.exit("ended from outside")  # the `with` blocks end what they started


def run(program: str, version: str, prove: Callable[[], str]) -> None:
    """Run a script's proof and print its outcome as one line of JSON. `prove` returns what was shown."""
    signal.signal(signal.SIGTERM, _end)
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    began = time.monotonic()
    shown, result = "", "passed"
    try:
        shown = prove()
    except NotRunError as reason:
        result = f"NOT RUN: {reason}"
    except Exception as error:
        traceback.print_exc()
        result = f"FAILED: {str(error).splitlines()[0][:200] if str(error) else type(error).__name__}"
    told = {"program": program, "version": version, "shown": shown, "result": result}
    sys.stdout.write(OUTCOME + json.dumps({**told, "seconds": round(time.monotonic() - began)}) + "\n")
    sys.exit(result.startswith("FAILED"))
