"""What a test wants to go wrong with a request of the registry: an error, a delay, a hold, or no answer at all."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, Final

from broker.faults.kinds import AFTER, BEFORE
from broker.registry.errors import RegistryError

if TYPE_CHECKING:
    from broker.faults.fault import Fault
    from broker.shell.control.http_requests import Head
    from broker.shell.registry.service import Call, Registry

LOOK_AGAIN_S: Final = 0.005  # for the cluster's clock, which a test may move


async def served(registry: Registry, call: Call, head: Head, principal: str) -> Any:
    """The answer, unless a fault acts on the request. Errors: RegistryError; CancelledError: it was cut off."""
    broker = registry.cluster.broker
    fault = None
    if broker.has_faults:
        fault = broker.faults.of_registry(call.route.api, call.words.get("subject"), principal)
    if fault is None:
        return await registry.serve(call)
    if fault.values["when"] == BEFORE:
        await _act(registry, fault, head)
    answer = await registry.serve(call)
    if fault.values["when"] == AFTER:
        await _act(registry, fault, head)
    return answer


async def _act(registry: Registry, fault: Fault, head: Head) -> None:
    what, cluster = fault.values["do"], registry.cluster
    if what == "error":
        raise RegistryError(
            fault.values["status"], fault.values["code"], f"the fault {fault.name} acts", fault=fault.name
        )
    if what == "disconnect":
        head.abort()
        raise asyncio.CancelledError
    clock, life = cluster.broker.turn.env.clock, cluster.life
    due_ms = clock.steady_ms() + fault.values["ms"]
    freed: list[bool] = []
    if what == "hold":
        fault.kept.append(lambda: freed.append(True))
    fault.held += 1
    try:
        while cluster.life == life and (not freed if what == "hold" else clock.steady_ms() < due_ms):
            await asyncio.sleep(LOOK_AGAIN_S)
    finally:
        fault.held -= 1
