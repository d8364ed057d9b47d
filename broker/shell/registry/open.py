"""Opens the registry of a cluster."""

from __future__ import annotations

import asyncio
import contextlib
from typing import TYPE_CHECKING

from broker.shell.registry.access import Access
from broker.shell.registry.endpoint import RegistryHttp
from broker.shell.registry.examiner import Examiner
from broker.shell.registry.opened import OpenRegistry
from broker.shell.registry.service import Registry
from broker.shell.registry.store import StoreError

if TYPE_CHECKING:
    from broker.shell.cluster_server import ClusterServer


async def _warm(registry: Registry) -> None:
    """Read the topic before the first request has to wait for it."""
    with contextlib.suppress(StoreError):  # the request that needs it says why it has failed
        await registry.warm()


async def open_registry(cluster: ClusterServer, examiner: Examiner, host: str, port: int) -> OpenRegistry:
    """Listen for a cluster's registry. Errors: OSError."""
    registry = Registry(cluster, examiner)
    access = Access(cluster)
    http = RegistryHttp(registry, access, host)
    tls = access.tls()
    address = await http.open(host, port, tls)
    warming = asyncio.ensure_future(_warm(registry))

    async def close() -> None:
        warming.cancel()
        await http.close()
        registry.close()

    return OpenRegistry(f"{'http' if tls is None else 'https'}://{address}", registry.state, examiner.check, close)
