"""Three nodes of Apache Kafka, brokers and controllers, each of which can be killed and started again."""

from __future__ import annotations

import signal
import subprocess
import threading
from pathlib import Path

from confluent_kafka.admin import AdminClient
from ports import HeldPorts

STARTS_S = 240

PROPERTIES = """\
process.roles=broker,controller
node.id={node}
controller.quorum.voters={voters}
listeners=PLAINTEXT://127.0.0.1:{port},CONTROLLER://127.0.0.1:{controller}
controller.listener.names=CONTROLLER
log.dirs={logs}
offsets.topic.num.partitions=3
offsets.topic.replication.factor={replicas}
transaction.state.log.num.partitions=3
transaction.state.log.replication.factor={replicas}
transaction.state.log.min.isr=1
group.initial.rebalance.delay.ms=0
group.min.session.timeout.ms=1000
log.cleaner.dedupe.buffer.size=4194304
"""


class Trio:
    """A cluster of so many nodes, by the jars in `libs`."""

    def __init__(self, libs: str, directory: Path, nodes: int = 3) -> None:
        self._java = ["java", "-Xmx256m", "-XX:+UseSerialGC", "-cp", libs]
        self._directory = directory
        self._held = HeldPorts(2 * nodes)
        self._ports, controllers = self._held.numbers[:nodes], self._held.numbers[nodes:]
        self._processes: dict[int, subprocess.Popen[bytes]] = {}
        voters = ",".join(f"{number}@127.0.0.1:{port}" for number, port in enumerate(controllers, 1))
        for number in range(1, nodes + 1):
            folder = self._folder(number)
            folder.mkdir(parents=True)
            text = PROPERTIES.format(
                node=number,
                voters=voters,
                port=self._ports[number - 1],
                controller=controllers[number - 1],
                logs=folder / "logs",
                replicas=nodes,
            )
            (folder / "server.properties").write_text(text)
            tool = ["kafka.tools.StorageTool", "format", "-g", "-t", "momusmomusmomusmomusAA"]
            command = [*self._java, *tool, "-c", str(folder / "server.properties")]
            subprocess.run(command, check=True, capture_output=True, timeout=300)

    @property
    def servers(self) -> str:
        """HOST:PORT of all nodes."""
        return ",".join(f"127.0.0.1:{port}" for port in self._ports)

    def start(self, number: int) -> None:
        """Start a node; it may not answer yet."""
        folder = self._folder(number)
        with open(folder / "log", "ab") as log:
            command = [*self._java, "kafka.Kafka", str(folder / "server.properties")]
            self._processes[number] = subprocess.Popen(command, stdout=log, stderr=log)

    def start_all(self) -> None:
        """Start all nodes."""
        for number in range(1, len(self._ports) + 1):
            self.start(number)

    def kill(self, number: int) -> None:
        """kill -9."""
        process = self._processes.pop(number)
        process.kill()
        process.wait()

    def pause(self, number: int) -> None:
        """Let a node fall silent: its connections stay open, and nothing comes from it."""
        self._processes[number].send_signal(signal.SIGSTOP)

    def resume(self, number: int) -> None:
        """Let it go on."""
        self._processes[number].send_signal(signal.SIGCONT)

    def close(self) -> None:
        """End all."""
        for number in list(self._processes):
            self.kill(number)
        self._held.close()

    def _folder(self, number: int) -> Path:
        return self._directory / f"node-{number}"


def wait_for_nodes(admin: AdminClient, wanted: int) -> None:
    """Until the cluster, asked through the proxy, has so many nodes."""
    tick = threading.Event()
    for _ in range(STARTS_S * 4):
        if len(admin.list_topics(timeout=STARTS_S).brokers) == wanted:
            return
        tick.wait(0.25)
    raise AssertionError(f"there are not {wanted} nodes after {STARTS_S} s")
