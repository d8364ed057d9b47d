"""Apache Kafka's Java clients and console tools, compiled and run."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
from java_checks import CHECKS, compiled
from java_toolbox import Toolbox

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
