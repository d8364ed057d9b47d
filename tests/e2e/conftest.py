"""The brokers that real clients meet: one each module, one of three nodes, and the factory for whoever kills."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from cluster_kit import Wire

from momus import Broker

# Kafka waits three seconds for more members before a new group's first rebalance, and six for a silent one.
PROMPT = {"group.initial.rebalance.delay.ms": 0, "group.min.session.timeout.ms": 1000}


@pytest.fixture(scope="module")
def shared_broker() -> Iterator[Broker]:
    """A broker for a whole module, whose tests name their topics and groups apart."""
    with Broker(config=PROMPT) as broker:
        yield broker
        assert (broker.stop(), broker.log) == (0, "")


@pytest.fixture(scope="module")
def trio() -> Iterator[Broker]:
    """Three virtual brokers for a whole module."""
    with Broker(brokers=3, config=PROMPT) as broker:
        yield broker
        assert (broker.stop(), broker.log) == (0, "")


@pytest.fixture
def serve(tmp_path: Path) -> Iterator[Callable[..., str]]:
    """Starts a broker that tells clients another address than its own; its own."""
    with ExitStack() as ends:

        def start(advertised: str, **config: str) -> str:
            settings = {"listeners": "PLAINTEXT://127.0.0.1:0", "advertised.listeners": f"PLAINTEXT://{advertised}"}
            settings |= {key.replace("_", "."): value for key, value in config.items()}
            words = [word for key, value in settings.items() for word in ("--set", f"{key}={value}")]
            command = [sys.executable, "-m", "momus", "serve", "-d", str(tmp_path / "data"), *words]
            process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
            ends.callback(process.communicate)
            ends.callback(process.terminate)
            assert process.stdout is not None
            return process.stdout.readline().split()[2]

        yield start


@pytest.fixture
def serve_with(tmp_path: Path) -> Iterator[Callable[..., str]]:
    """Starts a broker with options that include --control; the address of its endpoint."""
    with ExitStack() as ends:

        def start(*options: str) -> str:
            command = [sys.executable, "-m", "momus", "serve", "-d", str(tmp_path / "data"), "--listen", "127.0.0.1:0"]
            process = subprocess.Popen([*command, *options], stdout=subprocess.PIPE, text=True)
            ends.callback(process.communicate)
            ends.callback(process.terminate)
            assert process.stdout is not None
            process.stdout.readline()
            return process.stdout.readline().split()[2]

        yield start


@pytest.fixture
def name(request: pytest.FixtureRequest) -> str:
    """A name for the topic and the group of this test alone."""
    return "".join(letter if letter.isalnum() else "-" for letter in request.node.name)


@pytest.fixture
def wires() -> Iterator[Callable[[str], Wire]]:
    """Opens sockets to clusters; they are closed after the test."""
    with ExitStack() as ends:

        def connect(address: str) -> Wire:
            wire = Wire(address)
            ends.callback(wire.close)
            return wire

        yield connect
