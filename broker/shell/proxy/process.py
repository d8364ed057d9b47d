"""The process of a proxy: one proxy, and for tests more of them before the same cluster, each with its own faults.

What makes a cluster elsewhere makes a proxy here. Words that a real cluster cannot obey are refused with a sentence.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from broker.shell.cluster_server import DEFAULT_CLUSTER, ClusterServer
from broker.shell.control.routes import RefusedError
from broker.shell.process import Process
from broker.shell.proxy.server import ProxyServer

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from broker.shell.cluster_plan import ClusterPlan, Origin
    from broker.shell.cluster_server import Prepare
    from broker.shell.proxy.created import Created
    from broker.shell.proxy.recording import ProxyRecording
    from broker.shell.proxy.upstream import Upstream

NOT_IMPLEMENTED = 501


class ProxyProcess(Process):
    """A process whose clusters are proxies.

    upstream   the cluster that all of them stand before.
    plan       (name, listen, ids of nodes) -> the plan of another one.
    """

    def __init__(
        self, upstream: Upstream, plan: Callable[[str, str, Sequence[int]], ClusterPlan], *words: Any, **named: Any
    ) -> None:
        super().__init__(*words, **{**named, "make_server": partial(ProxyServer, upstream)})
        self._upstream = upstream
        self._plan_of = plan
        self.recording: ProxyRecording | None = None  # of the first proxy
        self.created: Created | None = None  # what the tests of this run have created, if it is a run of tests

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
        """Start another proxy. Errors: RefusedError: what is asked for is the cluster's own; ClusterRefusedError."""
        given = {
            "config": bool(config),
            "seed": seed is not None,
            "at": at_ms is not None,
            "security": security is not None,
            "users": bool(users),
            f"brokers={brokers}": brokers > len(self._upstream.places),
        }
        if wrong := [word for word, is_given in given.items() if is_given]:
            raise RefusedError(NOT_IMPLEMENTED, f"this is a proxy: {', '.join(wrong)} cannot be had of a real cluster")
        plan = self._plan_of(self._check_new(name, 1), listen, sorted(self._upstream.places))
        plan.journal_bytes = self._first.journal_bytes if journal_bytes is None else journal_bytes
        return await self.start(plan)

    def refuses(self, method: str, path: str) -> str | None:
        """Why a call of the control plane is not for a proxy; None: it is."""
        default = self.clusters.get(DEFAULT_CLUSTER)
        return None if default is None else default.refuses(method, path)

    async def start(
        self, plan: ClusterPlan, origin: Origin | None = None, *, prepare: Prepare | None = None
    ) -> ClusterServer:
        """Start a proxy. Errors: as there, TimeoutError."""
        cluster = await super().start(plan, origin, prepare=prepare)
        if self.recording is not None and plan.name == DEFAULT_CLUSTER:
            assert isinstance(cluster, ProxyServer)
            await self.recording.begin(cluster)
        return cluster

    async def stop(self) -> None:
        """Stop listening, and leave the cluster as it is."""
        first = self.clusters[DEFAULT_CLUSTER]
        await super().stop()
        if self.recording is not None:
            assert isinstance(first, ProxyServer)
            self.recording.end(first)
        if self.created is not None:
            self.created.close()
        self._upstream.close()
