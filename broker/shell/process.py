"""The process: its clusters, its control endpoint, and the threads that all clusters share."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from broker.cluster.directory import DataDirectory
from broker.cluster.listeners import make_nodes
from broker.shell.cluster_server import DEFAULT_CLUSTER, ClusterServer
from broker.shell.sync_threads import SyncThreads

if TYPE_CHECKING:
    from broker.config.settings import BrokerConfig
    from broker.shell.control.endpoint import Control
    from storage.env import Env


class Process:
    """One process with its clusters, by name. `momus serve` has one, "default"."""

    def __init__(self, connection_limit: int) -> None:
        self.loop = asyncio.get_running_loop()
        self.clusters: dict[str, ClusterServer] = {}
        self.stopping = asyncio.Event()
        self._connection_limit = connection_limit  # the file descriptors that are left for connections
        self._syncs = SyncThreads(self.loop)
        self._control: Control | None = None
        self._tasks: list[asyncio.Task[None]] = []

    async def start_default(
        self, env: Env, config: BrokerConfig, *, data_dir: str, listen: str | None, brokers: int
    ) -> list[str]:
        """Start the cluster "default". Answers the address of each node's first listener.

        Errors: ConfigError, DirectoryError, StorageError, OSError.
        """
        nodes = make_nodes(config, listen, brokers)
        cluster = ClusterServer(env, config, DataDirectory.open(env, data_dir, config), nodes, self._syncs)
        clients = cluster.broker.clients
        clients.connection_limit = min(clients.connection_limit, self._connection_limit)
        self.clusters[DEFAULT_CLUSTER] = cluster
        return await cluster.start()

    async def open_control(self, host: str, port: int, token: str | None) -> str:
        """Open the control endpoint. Answers its address."""
        from broker.shell.control.endpoint import Control  # 8 ms: most starts have no control endpoint

        self._control = Control(self, token)
        return await self._control.open(host, port)

    def send_metrics(self, address: str) -> None:
        """Send the metrics of the cluster "default" to HOST:PORT."""
        from broker.shell.statsd import run_statsd  # 2 ms: most starts send no metrics

        broker = self.clusters[DEFAULT_CLUSTER].broker
        self._tasks.append(asyncio.ensure_future(run_statsd(broker, address)))

    async def stop(self) -> None:
        """Stop listening, flush and close the logs."""
        if self._control is not None:
            await self._control.close()
        for cluster in self.clusters.values():
            cluster.hang_up()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        self._syncs.close()
        for cluster in self.clusters.values():
            cluster.close()
