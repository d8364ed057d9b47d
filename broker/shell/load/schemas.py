"""Schemas of files: tried first in a copy of the registry, then registered as any client would."""

from __future__ import annotations

from collections.abc import Generator
from copy import deepcopy
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from broker.registry.errors import RegistryError
from broker.shell.control.routes import RefusedError
from broker.shell.registry.examiner import Examiner
from broker.shell.registry.service import Call, Registry
from broker.shell.registry.store import StoreError

if TYPE_CHECKING:
    from broker.load.items import SchemaItem
    from broker.load.problems import Problem
    from broker.shell.cluster_server import ClusterServer


class Schemas:
    """The registry of a cluster, for one load."""

    def __init__(self, cluster: ClusterServer) -> None:
        self._examiner = Examiner()
        self._registry = Registry(cluster, self._examiner)

    def close(self) -> None:
        """End the process that examines schemas."""
        self._registry.close()
        self._examiner.close()

    async def subjects(self) -> set[str]:
        """The subjects that are there. Errors: RefusedError: the registry's topic cannot be read."""
        try:
            return set((await self._registry.state()).subjects)
        except StoreError as error:
            raise RefusedError(409, str(error)) from None

    async def check(self, items: list[SchemaItem]) -> list[Problem]:
        """What would be refused, each schema after those before it."""
        try:
            state = deepcopy(await self._registry.state())
        except StoreError as error:
            return [items[0].where.problem(str(error))]
        problems = []
        for item in items:
            call = _call(item)
            try:
                made: Any = call.route.load()(state, call.ask(state))
                decision = await self._driven(made) if isinstance(made, Generator) else made
                for record in decision.records:
                    state.replay(record)
            except RegistryError as error:
                problems.append(item.where.problem(str(error)))
        return problems

    async def _driven(self, steps: Any) -> Any:
        try:
            job = next(steps)
            while True:
                job = steps.send(await self._examiner.check(job))
        except StopIteration as end:
            return end.value

    async def register(self, item: SchemaItem) -> None:
        """Register a schema; one that is there stays. Errors: RegistryError."""
        await self._registry.serve(_call(item))


def _call(item: SchemaItem) -> Call:
    call = Call("POST", f"/subjects/{quote(item.subject, safe='')}/versions")
    call.body = {"schema": item.schema, "schemaType": item.schema_type, "references": item.references}
    return call
