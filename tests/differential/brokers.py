"""The two brokers of a run: Apache Kafka in a Java process, momus in a process or inside this one.

A Peer says where to connect, lets time pass and starts the broker again on its data. `SETTINGS` are the same for
both; what only one of them has is beside it.
"""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Protocol

from core_broker import World
from kafka_jars import fetch_jars
from ports import HeldPorts

from differential.links import Link, LinkError, SocketLink, WorldLink, call
from momus import Broker
from storage.clock.manual_clock import ManualClock
from storage.files.sim_env import sim_env

SETTINGS: dict[str, object] = {
    "num.partitions": 4,
    "offsets.topic.num.partitions": 4,
    "transaction.state.log.num.partitions": 4,
    "group.initial.rebalance.delay.ms": 0,
    "group.consumer.assignment.interval.ms": 0,
    "group.streams.assignment.interval.ms": 0,
    "group.streams.initial.rebalance.delay.ms": 0,
    "log.retention.ms": -1,
    "transaction.abort.timed.out.transaction.cleanup.interval.ms": 100,
}
KAFKA_ALONE: dict[str, object] = {
    "offsets.topic.replication.factor": 1,
    "transaction.state.log.replication.factor": 1,
    "transaction.state.log.min.isr": 1,
    "share.coordinator.state.topic.replication.factor": 1,
    "share.coordinator.state.topic.min.isr": 1,
    "broker.session.timeout.ms": 120_000,  # on a busy machine a shorter one fences the broker
    "log.cleaner.dedupe.buffer.size": 8_388_608,
}
MOMUS_ALONE: dict[str, object] = {"node.id": 1, "producer.state": "batches"}
START_LIMIT_S = 90.0
WORLD_START_MS = 1_800_000_000_000  # far from the times that cases write into records
CLUSTER_ID = "momusmomusmomusmomusAA"


class Peer(Protocol):
    """One of the two brokers."""

    name: str
    nodes: int
    is_live: bool  # its clock is that of the machine

    def link(self, node: int) -> Link: ...
    def now_ms(self) -> int: ...
    def pass_time(self, ms: int) -> None:
        """Let its clock run on, where it does not by itself."""

    def keep_up(self) -> None:
        """Let its clock catch up with the time that has really passed."""

    def restart(self) -> None:
        """End it as kill -9 does, and start it on its data."""

    def stop(self) -> None: ...


class KafkaPeer:
    """Apache Kafka, one KRaft node or several, of which the first is the controller as well."""

    name = "kafka"
    is_live = True

    def __init__(self, nodes: int = 1, settings: Mapping[str, object] | None = None, version: str = "") -> None:
        self.nodes = nodes
        self._directory = Path(tempfile.mkdtemp(prefix="differential-kafka-"))
        self._libraries = f"{fetch_jars('current', version)}/*"
        self._held = HeldPorts(nodes + 1)
        *self._ports, self._controller = self._held.numbers
        self._processes: list[subprocess.Popen[bytes]] = []
        self._settings = {**SETTINGS, **KAFKA_ALONE, **(settings or {})}
        for node in range(nodes):
            self._format(node)
        self._start()

    def _format(self, node: int) -> None:
        address, controller = f"127.0.0.1:{self._ports[node]}", f"127.0.0.1:{self._controller}"
        listeners = f"PLAINTEXT://{address}"
        both = node == 0
        lines = {
            "process.roles": "broker,controller" if both else "broker",
            "node.id": node + 1,
            "controller.quorum.voters": f"1@{controller}",
            "listeners": listeners + (f",CONTROLLER://{controller}" if both else ""),
            "advertised.listeners": listeners,
            "controller.listener.names": "CONTROLLER",
            "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT",
            "log.dirs": self._directory / f"logs{node}",
            **self._settings,
        }
        path = self._properties(node)
        path.write_text("".join(f"{key}={value}\n" for key, value in lines.items()))
        command = ["java", "-Xmx256m", "-cp", self._libraries, "kafka.tools.StorageTool", "format", "-t", CLUSTER_ID]
        subprocess.run([*command, "-c", str(path)], check=True, capture_output=True, timeout=START_LIMIT_S)

    def _properties(self, node: int) -> Path:
        return self._directory / f"server{node}.properties"

    def _start(self) -> None:
        heap = ["-Xmx768m", "-Xms256m"] if self.nodes == 1 else ["-Xmx400m", "-Xms200m"]
        command = ["java", *heap, "-XX:+UseG1GC", "-Djava.awt.headless=true", "-cp", self._libraries, "kafka.Kafka"]
        self._processes = []
        for node in range(self.nodes):
            with open(self._directory / f"broker{node}.log", "ab") as log:
                self._processes.append(
                    subprocess.Popen(
                        [*command, str(self._properties(node))], stdin=subprocess.DEVNULL, stdout=log, stderr=log
                    )
                )
        end = time.monotonic() + START_LIMIT_S
        for node in range(self.nodes):
            while not self._serves(node):
                if time.monotonic() > end or self._processes[node].poll() is not None:
                    log_text = (self._directory / f"broker{node}.log").read_text(errors="replace")
                    raise LinkError(f"Apache Kafka did not start\n{log_text[-3000:]}")
                time.sleep(0.1)

    def _serves(self, node: int) -> bool:
        try:
            link = self.link(node)
            try:
                brokers = call(link, "Metadata", 12, {"Topics": []}, 5.0)["Brokers"]
                return len(brokers) == self.nodes
            finally:
                link.close()
        except (OSError, LinkError):
            return False

    def link(self, node: int) -> Link:
        return SocketLink("127.0.0.1", self._ports[node % self.nodes])

    def now_ms(self) -> int:
        return int(time.time() * 1000)

    def pass_time(self, ms: int) -> None:
        """Its clock runs by itself; the caller sleeps."""

    def keep_up(self) -> None:
        """Its clock runs by itself."""

    def restart(self) -> None:
        self._end()
        self._start()

    def _end(self) -> None:
        for process in self._processes:
            process.send_signal(signal.SIGKILL)
            process.wait()

    def stop(self) -> None:
        self._end()
        self._held.close()
        shutil.rmtree(self._directory, ignore_errors=True)


class MomusPeer:
    """momus in a process of its own."""

    name = "momus"
    is_live = True

    def __init__(self, nodes: int = 1, settings: Mapping[str, object] | None = None) -> None:
        self.nodes = nodes
        self._broker = Broker(brokers=nodes, config={**SETTINGS, **MOMUS_ALONE, **(settings or {})})
        self._broker.start()

    def link(self, node: int) -> Link:
        address = self._broker.bootstrap_servers.split(",")[node % self.nodes]
        host, _, port = address.rpartition(":")
        return SocketLink(host, int(port))

    def now_ms(self) -> int:
        return int(time.time() * 1000)

    def pass_time(self, ms: int) -> None:
        """Its clock runs by itself; the caller sleeps."""

    def keep_up(self) -> None:
        """Its clock runs by itself."""

    def restart(self) -> None:
        self._broker.kill()
        self._broker.start()

    def stop(self) -> None:
        self._broker.close()


class WorldPeer:
    """momus inside this process: files in memory, a clock that is moved.

    `follows`: by the time that has really passed, beside a live Kafka. Else by `pass_time` alone.
    """

    name = "momus"
    is_live = False

    def __init__(self, nodes: int = 1, settings: Mapping[str, object] | None = None, *, follows: bool = False) -> None:
        self.nodes = nodes
        given: dict[str, Any] = {
            re.sub(r"\W", "_", key): str(value)
            for key, value in {**SETTINGS, **MOMUS_ALONE, **(settings or {})}.items()
        }
        self._followed_s = time.monotonic() if follows else None
        self.world = World(env=sim_env(0, WORLD_START_MS), brokers=nodes, **given)

    def link(self, node: int) -> Link:
        return WorldLink(self.world, node % self.nodes)

    def now_ms(self) -> int:
        clock = self.world.clock
        assert isinstance(clock, ManualClock)
        return clock.now_ms()

    def pass_time(self, ms: int) -> None:
        if self._followed_s is None:
            self.world.advance(ms)
        else:
            self.keep_up()

    def keep_up(self) -> None:
        if self._followed_s is not None:
            ms = int((time.monotonic() - self._followed_s) * 1000)
            self._followed_s += ms / 1000
            self.world.advance(ms)

    def restart(self) -> None:
        self.world = self.world.crash()

    def stop(self) -> None:
        """Nothing outlives the object."""


def processors() -> int:
    """How many cases to play side by side."""
    return max(1, min(4, os.cpu_count() or 1))
