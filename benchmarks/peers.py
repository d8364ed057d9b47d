"""Starts momus and the brokers it is measured against, one at a time, each with a fresh directory, on this machine.

kfake, kfake-disk, kfake-sync   franz-go's fake cluster: in memory, on disk, synced; needs Go
kafka                           Apache Kafka, one KRaft node; needs Java and Maven
rdmock                          librdkafka's mock cluster; needs confluent-kafka in this environment
pure                            this checkout of momus, run by this Python
a folder                        another checkout of momus, run by this Python: what a change costs
a file                          the command `momus` of an environment into which a wheel was installed
"""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

HERE = Path(__file__).parent
CACHE = Path(os.environ.get("MOMUS_BENCH_CACHE", Path.home() / ".cache" / "momus-benchmarks"))
JAVA = ["-Xms1G", "-Xmx1G", "-server", "-XX:+UseG1GC", "-XX:MaxGCPauseMillis=20", "-Djava.awt.headless=true"]
OURS = ("momus", "pure")
START_S = 60.0
ASK_AGAIN_S = 0.005
API_VERSIONS = bytes.fromhex("0000000e 0012 0000 00000001 0004") + b"load"  # size, API, version, correlation id, client

SERVER_PROPERTIES = """\
process.roles=broker,controller
node.id=1
controller.quorum.voters=1@127.0.0.1:{controller}
listeners=PLAINTEXT://127.0.0.1:{port},CONTROLLER://127.0.0.1:{controller}
controller.listener.names=CONTROLLER
log.dirs={directory}/logs
offsets.topic.replication.factor=1
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
share.coordinator.state.topic.replication.factor=1
share.coordinator.state.topic.min.isr=1
group.initial.rebalance.delay.ms=0
"""

MOCK = """\
import sys, time
from confluent_kafka import Producer
cluster = Producer({"test.mock.num.brokers": 1, "bootstrap.servers": "none:1"})
broker = next(iter(cluster.list_topics(timeout=10).brokers.values()))
print(f"{broker.host}:{broker.port}", flush=True)
while True:
    cluster.poll(1)
"""


class Running:
    """A broker that runs: where, as which process, and over which directory."""

    def __init__(self, address: str, process: subprocess.Popen[bytes], directory: Path) -> None:
        self.address = address
        self.process = process
        self.directory = directory

    def rss_mb(self) -> float:
        """Resident memory, where /proc tells it."""
        with open(f"/proc/{self.process.pid}/statm") as statm:
            return int(statm.read().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 1e6


def cpu_s(pid: int) -> float:
    """Processor time that a process has used so far, in all its threads, where /proc tells it."""
    with open(f"/proc/{pid}/stat") as stat:
        fields = stat.read().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def free_port() -> int:
    """A port for a peer that cannot choose one itself; below the range the system gives to clients."""
    for port in range(21000, 31000, 7):
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)):
                return port
    raise RuntimeError("no free port between 21000 and 31000")


@contextmanager
def removed_after() -> Iterator[list[Path]]:
    """Takes the directories of all rows of a table, and removes them after the last row.

    For some minutes after many files were removed ext4 takes ten times as long to make one: removed between rows, each
    row measures what the one before has left.
    """
    kept: list[Path] = []
    try:
        yield kept
    finally:
        for directory in kept:
            shutil.rmtree(directory, ignore_errors=True)


@contextmanager
def running(
    name: str, flush: str = "os", settings: Sequence[str] = (), kept: list[Path] | None = None
) -> Iterator[Running]:
    """A broker by name, momus with settings of its own; stopped and its directory removed at the end.

    kept     takes the directory instead of its removal; see removed_after.
    """
    directory = Path(tempfile.mkdtemp(prefix=f"bench-{Path(name).name}-"))
    try:
        started = start(name, directory, flush, settings)
        try:
            yield started
        finally:
            started.process.terminate()
            try:
                started.process.wait(30)
            except subprocess.TimeoutExpired:
                started.process.kill()
                started.process.wait()
    finally:
        if kept is not None:
            kept.append(directory)
        else:
            shutil.rmtree(directory, ignore_errors=True)


def start(name: str, directory: Path, flush: str = "os", settings: Sequence[str] = ()) -> Running:
    """Start a broker and wait until it answers ApiVersions."""
    port = free_port()
    folder = HERE.parent
    if name in OURS or Path(name).exists():
        program = [str(Path(name).resolve())] if Path(name).is_file() else [sys.executable, "-m", "momus"]
        folder = Path(name) if Path(name).is_dir() and name not in OURS else folder
        command = [*program, *serving(port, directory / "data", flush, settings)]
    elif name.startswith("kfake"):
        command = [str(_kfake()), str(port)]
        command += [str(directory / "data")] if name != "kfake" else []
        command += ["sync"] if name == "kfake-sync" else []
    elif name == "kafka":
        command = _kafka(port, directory)
    elif name == "rdmock":
        process = subprocess.Popen([sys.executable, "-c", MOCK], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        assert process.stdout is not None
        address = process.stdout.readline().decode().strip()
        while not answers(address):
            time.sleep(ASK_AGAIN_S)
        return Running(address, process, directory)
    else:
        raise ValueError(f"there is no peer named {name}")
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, cwd=folder)
    deadline = time.monotonic() + START_S
    while True:
        if answers(f"127.0.0.1:{port}"):
            return Running(f"127.0.0.1:{port}", process, directory)
        if process.poll() is not None or time.monotonic() > deadline:
            raise RuntimeError(f"{name} did not start: {' '.join(command)}")
        time.sleep(ASK_AGAIN_S)


def answers(address: str) -> bool:
    """Whether a broker answers ApiVersions without an error."""
    host, _, port = address.rpartition(":")
    try:
        with socket.create_connection((host, int(port)), timeout=5) as probe:
            probe.sendall(API_VERSIONS)
            reply = probe.recv(10)
    except OSError:
        return False
    return reply[4:10] == b"\0\0\0\1\0\0"  # correlation id, error code


def momus_command(port: int, data: Path, flush: str, settings: Sequence[str] = ()) -> list[str]:
    """The command line of this checkout's broker."""
    return [sys.executable, "-m", "momus", *serving(port, data, flush, settings)]


def serving(port: int, data: Path, flush: str, settings: Sequence[str] = ()) -> list[str]:
    """What follows `momus` on the command line of a broker."""
    return [
        *("serve", "--listen", f"127.0.0.1:{port}"),
        *("--data-dir", str(data), "--flush", flush),
        *(word for setting in settings for word in ("--set", setting)),
    ]


def _kfake() -> Path:
    binary = CACHE / "kfakepeer"
    if not binary.exists():
        CACHE.mkdir(parents=True, exist_ok=True)
        environment = {**os.environ, "GOFLAGS": "-mod=mod"}
        subprocess.run(["go", "build", "-o", str(binary), "."], cwd=HERE / "kfake", check=True, env=environment)
    return binary


def _kafka(port: int, directory: Path) -> list[str]:
    libraries = CACHE / "kafka-libs"
    if not libraries.exists():
        pom = HERE.parent / "tests" / "e2e" / "java" / "pom.xml"
        goal = ["dependency:copy-dependencies", f"-DoutputDirectory={libraries}"]
        subprocess.run(["mvn", "-q", "-f", str(pom), *goal], check=True)
    properties = directory / "server.properties"
    properties.write_text(SERVER_PROPERTIES.format(port=port, controller=port + 1, directory=directory))
    classpath = ["-cp", f"{libraries}/*"]
    format_log = [*("kafka.tools.StorageTool", "format"), "-t", "momusmomusmomusmomusAA", "-c", str(properties)]
    if not (directory / "logs").exists():
        subprocess.run(["java", *classpath, *format_log], check=True, capture_output=True)
    return ["java", *JAVA, *classpath, "kafka.Kafka", str(properties)]
