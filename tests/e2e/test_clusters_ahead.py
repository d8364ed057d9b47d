"""Clusters that are made ahead: each is what was asked for, and has nothing of any test before."""

from __future__ import annotations

import asyncio
import itertools
import random
import socket
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from test_cluster_failures import process as process_in_this_loop

from broker.journal.reading import entries
from broker.shell.cluster_server import ClusterServer
from broker.shell.control.endpoint import Control
from broker.shell.loop import spare_clusters
from broker.shell.process import Process

CLUSTERS = "/_admin/clusters"
AT_MS = 2_000_000_000_000


class Plane:
    """The control plane of a process in this loop, without its sockets."""

    def __init__(self, process: Process) -> None:
        self.process = process
        self._routes = Control(process).routes

    async def ask(self, method: str, path: str, body: dict[str, Any] | None = None) -> Any:
        return await self._routes.serve(self.process, method, f"{CLUSTERS}{path}", body or {})

    async def make(self, **body: Any) -> str:
        return str((await self.ask("POST", "", body))["name"])

    @property
    def ready(self) -> list[ClusterServer]:
        return [cluster for each in self.process._spares._ready.values() for cluster in each]

    async def until_ready(self, count: int = 1) -> None:
        while len(self.ready) != count or self.process._spares._tasks:
            await asyncio.sleep(0.001)


@asynccontextmanager
async def plane_of(path: Path) -> AsyncIterator[Plane]:
    async with process_in_this_loop(path) as made:
        yield Plane(made)


async def soil(plane: Plane, name: str, draw: random.Random) -> socket.socket:
    """Leave of everything something that another test could see."""
    await plane.ask("POST", f"/{name}/topics/t/records", {"records": [{"value": "x"}] * draw.randint(1, 3)})
    await plane.ask("POST", f"/{name}/faults", {"fault": "inject_error", "api": "Fetch", "error": "NOT_COORDINATOR"})
    await plane.ask("POST", f"/{name}/clock", draw.choice([{"advance_ms": 60_000}, {"freeze": True}]))
    await plane.ask("POST", f"/{name}/snapshots", {})
    host, port = plane.process.clusters[name].addresses[0].rsplit(":", 1)
    client = socket.create_connection((host, int(port)), timeout=60)
    while not plane.process.clusters[name].broker.clients.open:
        await asyncio.sleep(0.001)
    if draw.random() < 0.5:
        client.close()
    if draw.random() < 0.3:
        await plane.ask("POST", f"/{name}/brokers/1/pause")
    return client


async def seen(plane: Plane, name: str) -> dict[str, Any]:
    """All that a test can see of a cluster that has just been handed to it, but for what each has of its own."""
    cluster, ask = plane.process.clusters[name], plane.ask
    journal = cluster.broker.clients.journal
    described = await ask("GET", f"/{name}")
    for own in ("name", "bootstrap_servers", "cluster_id", "now_ms"):
        del described[own]
    brokers = await ask("GET", f"/{name}/brokers")
    return {
        **described,
        "brokers_up": [(each["id"], each["up"], each["lags"], each["paused"]) for each in brokers],
        "topics": [each["topic"] for each in (await ask("GET", f"/{name}/topics"))["topics"]],
        "groups": (await ask("GET", f"/{name}/groups"))["groups"],
        "faults": await ask("GET", f"/{name}/faults"),
        "snapshots": await ask("GET", f"/{name}/snapshots"),
        "stands": cluster.clock.stands_at_ms,
        "ahead": cluster.clock.ahead_ms,
        "properties": {key: value for key, value in cluster.plan.properties.items() if key != "log.dirs"},
        "journal_bytes": cluster.plan.journal_bytes,
        "entries": [] if journal is None else list(entries(journal)),
        "counts": sum(cluster.broker.metrics.counts),
        "turns": cluster.turns,
        "data_dir": cluster.plan.data_dir == plane.process._folder(name),
    }


@pytest.mark.parametrize("seed", range(4))
async def test_cluster_is_as_one_made_to_order_and_has_nothing_of_those_before(tmp_path: Path, seed: int) -> None:
    draw = random.Random(seed)
    kinds: list[dict[str, Any]] = [
        {},
        {"config": {"num.partitions": "3"}},
        {"config": {"num.partitions": "3", "fetch.waits": "frozen"}, "brokers": 2},
        {"clock_ms": AT_MS},
        {"journal_bytes": 1 << 20},
        {"seed": 7},
        {"flush": "os"},
    ]
    asked = [*draw.sample(kinds[:5], 2), draw.choice(kinds[5:])]
    ahead, open_ = 0, list[str]()
    async with AsyncExitStack() as left:
        left.push_async_callback(asyncio.sleep, 0.01)  # connections that were hung up are lost in the next turn
        plane = await left.enter_async_context(plane_of(tmp_path / "one"))
        fresh = await left.enter_async_context(plane_of(tmp_path / "other"))
        expected = []
        for kind in kinds:  # the first of its kind is made to order
            expected.append(await seen(fresh, await fresh.make(**kind)))
        for _ in range(10):
            kind = draw.choice(asked)
            before = {each.name for each in plane.ready}
            name = await plane.make(**kind)
            ahead += name in before
            wanted = plane.process._spares._kinds.get(name)
            if wanted in plane.process._spares._ready and draw.random() < 0.7:
                while not plane.process._spares._ready[wanted]:
                    await asyncio.sleep(0.001)
            assert await seen(plane, name) == expected[kinds.index(kind)]
            left.callback((await soil(plane, name, draw)).close)
            open_.append(name)
            if draw.random() < 0.8:
                await plane.ask("DELETE", f"/{open_.pop(draw.randrange(len(open_)))}")
        assert ahead, "none of them was made ahead"


async def test_only_the_second_of_a_kind_has_another_made_and_none_is_listed(tmp_path: Path) -> None:
    async with plane_of(tmp_path) as plane:
        await plane.make()
        await plane.make(brokers=2)
        await asyncio.sleep(4 * spare_clusters.LOOK_S)
        assert plane.ready == []
        name = await plane.make()
        await plane.until_ready(2)  # as many as are in use
        names = [each["name"] for each in await plane.ask("GET", "")]
        assert not {each.name for each in plane.ready} & {*names}
        assert name in names
        for kind in ({"seed": 1}, {"flush": "os"}, {"security": "sasl_plaintext"}, {"brokers": 9}):
            for _ in range(2):
                await plane.make(**kind)
        await asyncio.sleep(4 * spare_clusters.LOOK_S)
        assert len(plane.ready) == 2


async def test_cluster_that_a_client_has_found_is_given_up(tmp_path: Path) -> None:
    async with plane_of(tmp_path) as plane:
        for _ in range(2):
            await plane.ask("DELETE", f"/{await plane.make()}")
        await plane.until_ready()
        (spare,) = plane.ready
        host, port = spare.addresses[0].rsplit(":", 1)
        reader, writer = await asyncio.open_connection(host, int(port))
        while not spare.broker.metrics.connections_accepted:
            await asyncio.sleep(0.001)
        assert await plane.make() != spare.name
        assert await reader.read(1) == b""
        writer.close()
        with pytest.raises(ConnectionRefusedError):
            await asyncio.open_connection(host, int(port))


async def test_name_of_one_is_free_for_who_asks_for_it(tmp_path: Path) -> None:
    async with plane_of(tmp_path) as plane:
        for _ in range(2):
            await plane.make()
        await plane.until_ready(2)
        taken, left = plane.ready
        assert await plane.make(name=taken.name, brokers=2) == taken.name
        assert plane.process.clusters[taken.name] is not taken
        assert await plane.make() == left.name


async def test_unused_ones_are_given_up_after_a_while(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spare_clusters, "KEPT_S", 0.01)
    async with plane_of(tmp_path) as plane:
        for _ in range(2):
            await plane.ask("DELETE", f"/{await plane.make()}")
        await plane.until_ready()
        (spare,) = plane.ready
        await plane.until_ready(0)
        assert spare.is_removed
        assert plane.process._spares.names == set()
        await plane.make()


async def test_none_is_made_while_clients_send_requests(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spare_clusters, "MOST_LOOKS", 10**9)
    async with plane_of(tmp_path) as plane:
        plane.process._spares._requests = itertools.count().__next__  # one more at each look
        for _ in range(2):
            await plane.make()
        await asyncio.sleep(10 * spare_clusters.LOOK_S)
        assert plane.ready == [], "it made a client wait"
        plane.process._spares._requests = lambda: 0
        await plane.until_ready(2)
