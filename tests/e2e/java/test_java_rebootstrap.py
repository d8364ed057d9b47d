"""A client of Kafka 4.4 that meets another cluster at its broker's address begins again there (KIP-1242)."""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Iterator

import pytest
from java_checks import JVM, compiled

pytestmark = pytest.mark.xdist_group("java")


@pytest.fixture
def producer(kafka_libs: str) -> Iterator[Callable[[str], Callable[[], str]]]:
    """Starts a producer at an address; what then has it send one record: the offset, or what went wrong."""
    classes = compiled(kafka_libs, "Rebootstrap")
    processes = []

    def start(address: str) -> Callable[[], str]:
        command = [*JVM, "-cp", classes, "Rebootstrap", address]
        process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        processes.append(process)

        def send() -> str:
            assert process.stdin is not None
            assert process.stdout is not None
            process.stdin.write("\n")
            process.stdin.flush()
            return process.stdout.readline().strip()

        return send

    yield start
    for process in processes:
        process.communicate("", timeout=60)


def cluster_id(broker):
    return broker.control.ask("GET", "/_admin/clusters/default")["cluster_id"]


@pytest.mark.parametrize("seed", [None, 7])
def test_producer_notices_a_reset_and_a_restore(broker_factory, producer, seed):
    broker = broker_factory(seed=seed)
    send = producer(broker.bootstrap_servers)
    assert send() == "0"
    kept, ids = broker.snapshot(), [cluster_id(broker)]
    broker.journal.keep()
    for _ in range(2):
        broker.reset()
        ids.append(cluster_id(broker))
        assert send() == "0"
        broker.journal.verify(api="ApiVersions", error="REBOOTSTRAP_REQUIRED")
    assert len(set(ids)) == 3
    broker.restore(kept)
    assert cluster_id(broker) == ids[0]
    assert send() == "1"
    broker.journal.verify(api="ApiVersions", error="REBOOTSTRAP_REQUIRED")
    broker.restore(kept)
    assert send() == "1"
    broker.journal.verify(api="ApiVersions", error="REBOOTSTRAP_REQUIRED", times=0)


def test_producer_notices_another_data_directory(broker_factory, producer, tmp_path):
    first = broker_factory(data_dir=tmp_path / "first", flush="os")
    address = first.bootstrap_servers
    send = producer(address)
    assert send() == "0"
    first.stop()
    second = broker_factory(data_dir=tmp_path / "second", flush="os", listen=address, journal_mb=4)
    assert send() == "0"
    second.journal.verify(api="ApiVersions", error="REBOOTSTRAP_REQUIRED")
