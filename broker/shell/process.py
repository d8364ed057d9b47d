"""The process: its clusters, its control endpoint, and what all clusters share."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from broker.cluster.data.copies import CLUSTERS
from broker.shell.cluster_plan import NOT_INHERITED, OF_LISTENERS, ClusterPlan, ClusterRefusedError, Names, Origin
from broker.shell.cluster_server import DEFAULT_CLUSTER, ClusterServer
from broker.shell.kept_memory import KeptMemory
from broker.shell.loop.spare_clusters import SpareClusters, Wanted
from broker.shell.setting_warnings import check_known
from broker.shell.sync_threads import SyncThreads
from broker.wire.clients import ConnectionCount

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from broker.faults.fault import Fault
    from broker.shell.cluster_server import Prepare
    from broker.shell.control.endpoint import Control
    from broker.shell.registry.examiner import Examiner
    from broker.shell.traces.export import Export
    from storage.files.env import SystemFiles

MOST_LISTENERS = 4000  # of all clusters: each takes a file descriptor


class Process:
    """One process with its clusters, by name. `momus serve` has one, "default".

    disk               the disk's files, with one pool of descriptors for all clusters.
    connection_limit   the file descriptors that are left for connections.
    movable            whether clocks can be moved.
    make_server        what a cluster is made with: ClusterServer, or a kind of it.
    """

    def __init__(
        self,
        disk: SystemFiles,
        *,
        connection_limit: int,
        movable: bool,
        make_server: Callable[..., ClusterServer] = ClusterServer,
    ) -> None:
        self.loop = asyncio.get_running_loop()
        self.clusters: dict[str, ClusterServer] = {}
        self.stopping = asyncio.Event()
        self._disk = disk
        self._make_server = make_server
        self._connections = ConnectionCount(connection_limit)
        self._memory = KeptMemory(self.loop)
        self._is_movable = movable
        self._syncs = SyncThreads(self.loop)
        self._control: Control | None = None
        self._statsd: asyncio.Task[None] | None = None
        self._export: Export | None = None
        self._examiner: Examiner | None = None
        self._names = Names("cluster")
        self._spares = SpareClusters(
            self._make_ahead,
            lambda cluster: cluster.remove(self._place),
            lambda: sum(sum(each.broker.metrics.counts) for each in self.clusters.values()),
        )

    async def start(
        self, plan: ClusterPlan, origin: Origin | None = None, *, prepare: Prepare | None = None
    ) -> ClusterServer:
        """Start a cluster. `prepare` is called before it listens.

        Errors: DirectoryError, StorageError, OSError, and those of `prepare`: there is none.
        """
        cluster = self._server(plan, origin)
        self.clusters[plan.name] = cluster
        try:
            await _begin(cluster, prepare)
        except BaseException:
            del self.clusters[plan.name]
            raise
        return cluster

    def _server(self, plan: ClusterPlan, origin: Origin | None) -> ClusterServer:
        made = self._make_server(
            plan,
            self._disk,
            self._syncs,
            movable=self._is_movable,
            connections=self._connections,
            memory=self._memory,
            origin=origin,
        )
        made.event_maker = _make_event
        return made

    def refuses(self, method: str, path: str) -> str | None:
        """Why a call of the control plane is not for this process; None: it is."""

    async def create(
        self,
        name: str | None,
        config: Mapping[str, str],
        *,
        listen: str = "127.0.0.1:0",
        brokers: int = 1,
        flush: str = "memory",
        seed: int | None = None,
        at_ms: int | None = None,
        journal_bytes: int | None = None,
        security: str | None = None,
        users: Mapping[str, str] | None = None,
    ) -> ClusterServer:
        """Start another cluster, with the settings of the default one and `config` on top.

        Its folder is in the data directory of the default one; what an earlier process left there is its data.
        Errors: ClusterRefusedError, ConfigError, DirectoryError, StorageError, OSError.
        """
        journal_bytes = self._first.journal_bytes if journal_bytes is None else journal_bytes
        wanted = Wanted(tuple(config.items()), listen, brokers, at_ms, journal_bytes)
        is_plain = name is None and flush == "memory" and seed is None and security is None and not users
        if is_plain and wanted.may_be_ahead:
            return await self._create_plain(wanted)
        plan = self._plan(
            self._check_new(name, brokers), wanted, flush=flush, seed=seed, security=security, users=users
        )
        return await self.start(plan)

    async def _create_plain(self, wanted: Wanted) -> ClusterServer:
        """One that may have been made ahead."""
        cluster = self._spares.take(wanted)
        if cluster is None:
            cluster = await self.start(self._plan(self._check_new(None, wanted.brokers), wanted))
        else:
            self.clusters[cluster.name] = cluster
        self._spares.in_use(cluster.name, wanted)
        return cluster

    async def _make_ahead(self, wanted: Wanted) -> ClusterServer:
        name = self._check_new(None, wanted.brokers)
        self._spares.names.add(name)
        try:
            cluster = self._server(self._plan(name, wanted), None)
            await _begin(cluster, None)
        except BaseException:
            self._spares.names.discard(name)
            raise
        return cluster

    @property
    def _first(self) -> ClusterPlan:
        return self.clusters[DEFAULT_CLUSTER].plan

    @property
    def _place(self) -> str:
        """Where what is removed may be meanwhile."""
        return self._first.data_dir

    def _plan(
        self,
        name: str,
        wanted: Wanted,
        *,
        flush: str = "memory",
        seed: int | None = None,
        security: str | None = None,
        users: Mapping[str, str] | None = None,
    ) -> ClusterPlan:
        config = dict(wanted.config)
        left_out = NOT_INHERITED if "listeners" in config else (*NOT_INHERITED, *OF_LISTENERS)
        inherited = {key: value for key, value in self._first.properties.items() if key not in left_out}
        plan = ClusterPlan(
            name,
            {**inherited, **config},
            data_dir=self._folder(name),
            listen=wanted.listen,
            brokers=wanted.brokers,
            flush=flush,
            seed=seed,
            at_ms=wanted.at_ms,
            security=security,
            users=users,
        )
        check_known(plan.new_config(), config)
        plan.journal_bytes = wanted.journal_bytes
        return plan

    async def fork(
        self, source: ClusterServer, name: str | None, *, snapshot: str | None = None, listen: str | None = None
    ) -> ClusterServer:
        """Start another cluster with what `source` has now, or had in a snapshot: data, settings, seed and clock.

        Errors: as `create`. Nothing is left then.
        """
        async with source.change():  # nothing is checked before: while this waits, another cluster may take the name
            name = self._check_new(name, source.plan.brokers)
            folder = self._folder(name)
            if self._disk.exists(folder):
                raise ClusterRefusedError(f"{folder} holds the data of an earlier cluster {name}: use another name")
            try:
                plan = source.plan.fork(name, folder, listen)
                origin = Origin.now(source.broker) if snapshot is None else source.snapshots.origin(snapshot)
                if plan.security is not None and snapshot is not None:
                    plan.security.users = source.snapshots.users(snapshot, plan.security.users)
                origin.cluster_id = plan.draw_cluster_id(1)
                return await self.start(plan, origin)
            except BaseException:
                self._syncs.run(lambda: self._disk.remove_tree(folder))
                raise

    def _folder(self, name: str) -> str:
        return f"{self._place}/{CLUSTERS}/{name}"

    def _check_new(self, name: str | None, brokers: int) -> str:
        """The name of a new cluster. Errors: ClusterRefusedError."""
        # A name that is made up is not that of a folder which an earlier process has left: it would open its data.
        spares = self._spares.names
        name = self._names.checked(
            name, lambda made: made in self.clusters or made in spares or self._disk.exists(self._folder(made))
        )
        if name in spares:
            self._spares.give_up(name)
        if name in self.clusters:
            raise ClusterRefusedError(f"there is a cluster {name} already")
        if sum(len(cluster.nodes) for cluster in self.clusters.values()) + brokers > MOST_LISTENERS:
            raise ClusterRefusedError(f"all clusters together have {MOST_LISTENERS} brokers at most: remove some")
        return name

    async def remove(self, name: str) -> None:
        """Remove a cluster and its data, which takes place in the background. Errors: ClusterRefusedError, OSError."""
        if name == DEFAULT_CLUSTER:
            raise ClusterRefusedError(f"the cluster {name} lives as long as the process: reset it")
        cluster = self.clusters[name]
        if cluster.registry is not None:
            await cluster.registry.close()
        await cluster.remove(self._place)
        del self.clusters[name]
        self._spares.removed(name)

    async def open_control(self, host: str, port: int, token: str | None) -> str:
        """Open the control endpoint. Returns its address."""
        from broker.shell.control.endpoint import Control  # 8 ms: most starts have no control endpoint

        self._control = Control(self, token)
        return await self._control.open(host, port)

    async def open_registry(self, cluster: ClusterServer, host: str, port: int) -> str:
        """Serve a cluster's schema registry, if it is not served yet. Returns its URL. Errors: OSError."""
        async with cluster.change():
            if cluster.registry is None:
                from broker.shell.registry.examiner import Examiner  # 5 ms: most clusters have no registry

                if self._examiner is None:
                    self._examiner = Examiner()
                await self._examiner.begin_early()
                from broker.shell.registry.open import open_registry  # 10 ms, while the examiner imports its library

                cluster.registry = await open_registry(cluster, self._examiner, host, port)
                cluster.config.tell_registry(cluster.registry.url)
            return cluster.registry.url

    def send_metrics(self, address: str) -> None:
        """Send the metrics of the cluster "default" to HOST:PORT."""
        from broker.shell.metrics.statsd import run_statsd  # 2 ms: most starts send no metrics

        cluster = self.clusters[DEFAULT_CLUSTER]

        def begin() -> None:
            if self._statsd is not None:
                self._statsd.cancel()
            self._statsd = asyncio.ensure_future(run_statsd(cluster.broker, address))

        begin()
        cluster.when_reset.append(begin)

    def send_traces(self, url: str) -> None:
        """Send a span for each request to the cluster "default". Errors: ConfigError: a bad address, or no extra."""
        # 300 ms: most starts send no traces
        from broker.shell.traces.address import endpoint_of
        from broker.shell.traces.export import Export
        from broker.shell.traces.tracer import trace

        cluster, spans = self.clusters[DEFAULT_CLUSTER], dict[str, int]()
        export = self._export = Export(endpoint_of(url), spans)

        def begin() -> None:
            cluster.broker.turn.metrics.spans = spans
            trace(cluster.broker, export.tracer())

        begin()
        cluster.when_reset.append(begin)

    async def stop(self) -> None:
        """Stop listening, flush and close the logs."""
        if self._control is not None:
            await self._control.close()
        spares = await self._spares.stop()
        for cluster in (*self.clusters.values(), *spares):
            if cluster.registry is not None:
                await cluster.registry.close()
            cluster.stop()
        if self._examiner is not None:
            self._examiner.close()
        if self._statsd is not None:
            self._statsd.cancel()
            await asyncio.gather(self._statsd, return_exceptions=True)
        if self._export is not None:
            await asyncio.to_thread(self._export.stop)
        self._syncs.close()
        for cluster in (*self.clusters.values(), *spares):
            cluster.close()


async def _make_event(cluster: ClusterServer, fault: Fault) -> None:
    from broker.shell.control.calls.events import make  # 5 ms: few clusters have such faults

    await make(cluster, fault)


async def _begin(cluster: ClusterServer, prepare: Prepare | None) -> None:
    """Start it. Errors: those of `start`: it is closed then."""
    try:
        await cluster.start(prepare)
    except BaseException:
        cluster.stop()
        cluster.close()
        raise
