"""Serves the registry's requests: finds the route, reads the topic, has schemas examined, appends, answers."""

from __future__ import annotations

import asyncio
from collections.abc import Generator
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import parse_qsl, unquote

from broker.registry.errors import store_failed
from broker.registry.jobs import Ask, Decision
from broker.registry.routes import find, words_of
from broker.shell.registry.kept import Kept
from broker.shell.registry.store import Store, StoreError

if TYPE_CHECKING:
    from collections.abc import Callable

    from broker.registry.jobs import Steps
    from broker.registry.routes import Route
    from broker.registry.state import RegistryState
    from broker.shell.cluster_server import ClusterServer
    from broker.shell.registry.examiner import Examiner

MOST_TRIES: Final = 5


class Call:
    """One request on its way: its route, and what is asked. Errors: RegistryError: nothing is served there."""

    __slots__ = ("body", "query", "route", "words")

    def __init__(self, method: str, target: str) -> None:
        path, _, query = target.partition("?")
        self.route, words = find(method, words_of(path))
        self.words = {name: unquote(word) for name, word in words.items()}
        self.query: dict[str, str] = {}
        self.body: dict[str, Any] = {}
        for name, value in parse_qsl(query, keep_blank_values=True):  # a name given again: key and value of metadata
            self.query[name] = f"{self.query[name]}\0{value}" if name in self.query else value

    @property
    def ask(self) -> Ask:
        """What the registry's functions are given."""
        return Ask(self.words, self.query, self.body)


class Registry:
    """The registry of one cluster."""

    def __init__(self, cluster: ClusterServer, examiner: Examiner) -> None:
        self._examiner = examiner
        self.cluster = cluster
        self._store = Store(cluster)
        self.kept = Kept(cluster, self._store)
        self._writing = asyncio.Lock()

    async def state(self) -> RegistryState:
        """What the topic says now. Errors: StoreError."""
        return await self._store.read()

    def close(self) -> None:
        """Let the broker go."""
        self._store.close()

    async def serve(self, call: Call) -> Any:
        """The answer. Errors: RegistryError."""
        try:
            if not call.route.writes:
                return (await self._decide(await self._store.read(), call)).answer
            async with self._writing:
                return await self._write(call)
        except StoreError as error:
            raise store_failed(_failed(call.route), str(error)) from None

    async def _write(self, call: Call) -> Any:
        """Decide and append; once more if the topic has moved meanwhile. Errors: RegistryError, StoreError."""
        for _ in range(MOST_TRIES):
            state = await self._store.read()
            position = self._store.position
            decision = await self._decide(state, call)
            await self._store.read()
            if self._store.position == position:
                if decision.records:
                    await self._store.append(decision.records)
                return decision.answer
        raise StoreError("another program writes to the topic all the time")

    async def _decide(self, state: RegistryState, call: Call) -> Decision:
        serve: Callable[[RegistryState, Ask], Decision | Steps] = call.route.load()
        made = serve(state, call.ask)
        return await self._driven(made) if isinstance(made, Generator) else made

    async def _driven(self, steps: Steps) -> Decision:
        """Have its jobs done until it has decided."""
        try:
            job = next(steps)
            while True:
                job = steps.send(await self._examiner.check(job))
        except StopIteration as end:
            found: Decision = end.value
            return found


def _failed(route: Route) -> str:
    """What Confluent's registry says when its topic does not answer."""
    if route.api == "RegisterSchema":
        return "Register schema operation failed while writing to the Kafka store"
    return f"{route.api} operation failed while {'writing to' if route.writes else 'reading'} the Kafka store"
