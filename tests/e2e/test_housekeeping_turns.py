"""A step of housekeeping begins after the turn before it has written its records and sent its replies."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator

import pytest
from core_requests import produce_request
from test_cluster_failures import process
from wire_peer import Peer, make_topic

from broker.shell.cluster_server import ClusterServer

pytestmark = pytest.mark.e2e

CLIENTS = 4
SLICES = 100


class Flood:
    """Clients that produce one record after the other, each in a thread."""

    def __init__(self, address: str) -> None:
        self._address = address
        self._ended = threading.Event()
        self._threads = [threading.Thread(target=self._produce) for _ in range(CLIENTS)]
        for each in self._threads:
            each.start()

    def _produce(self) -> None:
        with Peer(self._address) as peer:
            while not self._ended.is_set():
                answer = peer.call(produce_request("t", 0, b"v"), 9)
                assert answer.responses[0].partition_responses[0].error_code == 0

    def end(self) -> None:
        self._ended.set()
        for each in self._threads:
            each.join()


def looks(cluster: ClusterServer, found: dict[int, bool]) -> Iterator[None]:
    """A job that notes, for each number of records at which it had a step, whether some of them were not written."""
    broker = cluster.broker
    partition = broker.partitions.get(broker.metadata.topics["t"], 0)
    while len(found) < SLICES:
        found.setdefault(partition.log.end_offset, partition.log.dirty)
        yield


async def test_no_step_comes_between_an_append_and_its_write(tmp_path):
    async with process(tmp_path) as made:
        cluster = made.clusters["default"]

        def begin() -> Flood:
            with Peer(cluster.addresses[0]) as peer:
                make_topic(peer, "t", 1)
                peer.call(produce_request("t", 0, b"v"), 9)
            return Flood(cluster.addresses[0])

        flood = await asyncio.to_thread(begin)
        found: dict[int, bool] = {}
        job = looks(cluster, found)
        cluster.broker.turn.jobs.add(job)
        while cluster.broker.turn.jobs.has_any((job,)):
            await asyncio.sleep(0.01)
        await asyncio.to_thread(flood.end)
        assert not any(found.values())
