"""Clusters of one process when something runs out: descriptors, which they share, and the disk, which may come back."""

from __future__ import annotations

import asyncio
import errno
import os
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, nullcontext
from pathlib import Path

import pytest

from broker.cluster.listeners import Node
from broker.cluster.metadata import BROKER
from broker.cluster.topics import config_record
from broker.shell.cluster_plan import ClusterPlan, ClusterRefusedError
from broker.shell.cluster_server import ClusterServer
from broker.shell.control.of_cluster.brokers import start_broker, stop_broker
from broker.shell.control.routes import Call, RefusedError
from broker.shell.process import Process
from storage.files.env import SystemFiles

ASK_VERSIONS = bytes.fromhex("0000000a 0012 0000 00000007 ffff")


@asynccontextmanager
async def process(folder: Path, connections: int = 100) -> AsyncIterator[Process]:
    """A process in this one, with the cluster "default"."""
    made = Process(SystemFiles(16), connection_limit=connections, movable=True)
    await made.start(ClusterPlan("default", {}, data_dir=str(folder / "data"), listen="127.0.0.1:0", flush="os"))
    try:
        yield made
    finally:
        await made.stop()


async def is_listening(node: Node) -> bool:
    """Whether clients can connect."""
    try:
        _, writer = await asyncio.open_connection(node.main.host, node.main.port)
    except OSError:
        return False
    writer.close()
    return True


async def is_served(cluster: ClusterServer) -> bool:
    """Whether a new client gets an answer."""
    reader, writer = await connect(cluster)
    try:
        return await ask(reader, writer)
    finally:
        writer.close()


async def connect(cluster: ClusterServer) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    host, _, port = cluster.addresses[0].rpartition(":")
    return await asyncio.open_connection(host, int(port))


async def ask(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
    try:
        writer.write(ASK_VERSIONS)
        return bool(await reader.read(4))
    except ConnectionError:
        return False


async def test_connections_of_all_clusters_share_the_descriptors_of_their_process(tmp_path, caplog):
    caplog.set_level("ERROR")
    async with process(tmp_path, connections=3) as made:
        first, second = made.clusters["default"], await made.create("second", {})
        links = [await connect(first), await connect(second), await connect(first)]
        assert [await ask(*link) for link in links] == [True] * 3
        assert not await is_served(second)
        assert not await is_served(first)
        links[1][1].close()
        while first.broker.clients.connections.open > 2:
            await asyncio.sleep(0.01)
        assert await is_served(first)
        await first.reset()
        while first.broker.clients.connections.open:
            await asyncio.sleep(0.01)
        assert await is_served(second)
        for _, writer in links:
            writer.close()


def break_disk(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    """Let a system call fail."""

    def fail(*_: object, **__: object) -> None:
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    monkeypatch.setattr(os, name, fail)


@pytest.mark.parametrize("then", ["reset", "remove"])
@pytest.mark.parametrize("failing", ["reset", "remove", "restore"])
@pytest.mark.parametrize("call", ["replace", "makedirs"])
async def test_what_has_failed_can_be_done_again_once_the_disk_is_back(tmp_path, monkeypatch, call, failing, then):
    async with process(tmp_path) as made:
        cluster = await made.create("c", {}, flush="os")
        assert await is_served(cluster)
        await cluster.take_snapshot("s")
        acts = {
            "reset": cluster.reset,
            "remove": lambda: made.remove("c"),
            "restore": lambda: cluster.restore("s"),
        }
        with monkeypatch.context() as patched:
            break_disk(patched, call)
            if (failing, call) == ("remove", "makedirs"):
                return  # a removal makes no folder
            with pytest.raises(OSError, match="Input/output"):
                await acts[failing]()
        assert "c" in made.clusters
        await acts[then]()
        if then == "remove":
            assert "c" not in made.clusters
            cluster = await made.create("c", {}, flush="os")
        assert await is_served(cluster)


async def test_fork_that_waits_leaves_a_cluster_alone_that_has_taken_its_name(tmp_path):
    async with process(tmp_path) as made:
        source = made.clusters["default"]
        async with source.change():
            waiting = asyncio.ensure_future(made.fork(source, "twin"))
            await asyncio.sleep(0)
            other = await made.create("twin", {}, flush="os")
        with pytest.raises(ClusterRefusedError, match="twin already"):
            await waiting
        await asyncio.sleep(0.1)  # what removes files does so in the background
        assert made.clusters["twin"] is other
        assert (Path(other.plan.data_dir) / "meta.properties").exists()
        assert await is_served(other)


@pytest.mark.parametrize("begin_again", ["reset", "restore"])
async def test_records_of_an_open_turn_are_not_written_into_the_files_of_the_next_life(tmp_path, begin_again):
    """A request is served in the same iteration of the loop, before it; the files of both lives have the same names."""
    async with process(tmp_path) as made:
        cluster = made.clusters["default"]
        await cluster.take_snapshot("s")
        turn, shard = cluster.broker.turn, cluster.broker.metadata_shard
        turn.begin()
        shard.append([(None, config_record(BROKER, "", "log.retention.ms", "5"))], turn.now_ms)
        await (cluster.reset() if begin_again == "reset" else cluster.restore("s"))
        assert await is_served(cluster)
        segment = cluster.broker.metadata_shard.log.segments[-1]
        assert Path(segment.file.path).stat().st_size == segment.size
    async with process(tmp_path) as made:
        assert not made.clusters["default"].broker.metadata.broker_configs


async def test_broker_whose_stop_or_start_could_not_be_written_listens_while_it_is_up(tmp_path, monkeypatch):
    async with process(tmp_path) as made:
        cluster = await made.create("c", {"offsets.topic.replication.factor": "1"}, brokers=2, flush="os")
        nodes, word = cluster.virtual_nodes, str(cluster.nodes[1].node_id)

        async def change(how: Callable[[ClusterServer, Call], Awaitable[object]], *, is_full: bool = False) -> bool:
            """Answers whether the broker is up; then it listens, and only then."""
            with monkeypatch.context() as patched:
                if is_full:
                    break_disk(patched, "write")
                with pytest.raises(RefusedError) if is_full else nullcontext():
                    await how(cluster, Call({"id": word}, {}, {}))
            is_up = nodes.is_up(cluster.nodes[1])
            assert await is_listening(cluster.nodes[1]) == is_up
            return is_up

        assert not await change(stop_broker, is_full=True)
        assert not await change(stop_broker)
        assert await change(start_broker)
        assert not await change(stop_broker)
        assert await change(start_broker, is_full=True)
        assert await change(start_broker)
