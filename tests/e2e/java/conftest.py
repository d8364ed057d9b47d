"""Apache Kafka's Java clients and console tools, compiled and run."""

from __future__ import annotations

import struct
import subprocess
from collections.abc import Callable, Iterator

import pytest
from java_checks import CHECKS, JVM, compiled

from momus import Broker


@pytest.fixture(scope="session")
def client_classes(kafka_libs: str) -> str:
    """The checks, with the newest clients."""
    return compiled(kafka_libs, *CHECKS)


@pytest.fixture(scope="session")
def old_client_classes(old_kafka_libs: str) -> str:
    """The same source with the 3.9 clients."""
    return compiled(old_kafka_libs, *CHECKS)


@pytest.fixture(scope="session")
def copying_classes(kafka_libs: str) -> str:
    """Programs of their own that write and copy records until they are killed."""
    return compiled(kafka_libs, "Copy", "Flood", "Sequence")


class Toolbox:
    """Kafka's console tools, unmodified, one after the other in one JVM."""

    def __init__(self, class_path: str) -> None:
        command = [*JVM, "-cp", class_path, "Tools"]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)

    def run(self, *words: str, text: str = "") -> tuple[int, str]:
        """Run a tool: its class and arguments. Returns the exit code and what it printed."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        encoded = [word.encode() for word in (*words, text)]
        frame = b"".join(struct.pack(">i", len(word)) + word for word in encoded)
        self.process.stdin.write(struct.pack(">i", len(words)) + frame)
        self.process.stdin.flush()
        code, size = struct.unpack(">ii", self.process.stdout.read(8))
        return code, self.process.stdout.read(size).decode()

    def close(self) -> None:
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.close()
        self.process.wait(60)
        self.process.stdout.close()


@pytest.fixture(scope="session")
def toolbox(kafka_libs: str) -> Iterator[Toolbox]:
    """The tools of the newest Kafka, in one JVM for all tests."""
    box = Toolbox(compiled(kafka_libs, "Tools"))
    yield box
    box.close()


@pytest.fixture
def tool(toolbox: Toolbox, shared_broker: Broker) -> Callable[..., str]:
    """Runs a tool against the module's broker and returns what it prints."""

    def run(main: str, *arguments: str, text: str = "", code: int = 0) -> str:
        words = (main, *arguments, "--bootstrap-server", shared_broker.bootstrap_servers)
        ended, printed = toolbox.run(*words, text=text)
        assert ended == code, f"{' '.join(words)}\n{printed}"
        return printed

    return run
