"""Serves the registry's requests: finds the route, reads the topic, has schemas examined, appends, answers."""

from __future__ import annotations

import asyncio
from collections.abc import Generator
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import parse_qsl, unquote

from broker.registry.contexts import normalized, out_of_contexts
from broker.registry.errors import RegistryError, of_http, store_failed, too_large, unreadable
from broker.registry.jobs import UNNAMED, Ask, Checked, Decision, Job, SchemaFaultError, Server
from broker.registry.records import SCHEMA, decode, encode
from broker.registry.routes import find, words_of
from broker.shell.registry.kept import Kept
from broker.shell.registry.store import Store, StoreError
from protocol.errors import ErrorCode

if TYPE_CHECKING:
    from broker.registry.jobs import Part, Steps
    from broker.registry.records import Record
    from broker.registry.routes import Route
    from broker.registry.state import RegistryState
    from broker.shell.cluster_server import ClusterServer
    from broker.shell.registry.examiner import Examiner

MOST_TRIES: Final = 5
LISTED: Final = (
    "key",
    "value",
    "findTags",
    "associationType",
    "lifecycle",
)  # parameters of which each value counts; of others the first does
FREE_TRIES: Final = 3  # examinations while others may write

Found = Checked | SchemaFaultError


class Call:
    """One request on its way: its route, and what is asked. Errors: RegistryError: nothing is served there."""

    __slots__ = ("body", "drawn", "query", "route", "server", "words")

    def __init__(self, method: str, target: str, server: Server = UNNAMED) -> None:
        path, _, query = target.partition("?")
        self.server = server
        self.query: dict[str, str] = {}
        self.body: dict[str, Any] = {}
        for name, value in parse_qsl(query, keep_blank_values=True):
            if name not in self.query:
                self.query[name] = value
            elif name in LISTED:
                self.query[name] += f"\0{value}"
        try:
            self.route, words = find(method, out_of_contexts(words_of(path), self.query))
        except ValueError as error:
            raise RegistryError(400, 400, str(error)) from None
        if self.route.is_of_association and server.is_of_7:
            raise of_http(404, "Not Found")
        self.drawn = b""
        self.words = {name: unquote(word) for name, word in words.items()}

    def ask(self, state: RegistryState) -> Ask:
        """What the registry's functions are given: subjects by the names that aliases stand for."""
        words, query = self.words, self.query
        if "subject" in words and self.route.is_of_subject:
            words = {**words, "subject": state.alias(normalized(words["subject"]))}
        elif query.get("subject") and "id" in words:
            query = {**query, "subject": state.alias(normalized(query["subject"]))}
        return Ask(words, query, self.body, self.server, self.drawn)


class Registry:
    """The registry of one cluster."""

    def __init__(self, cluster: ClusterServer, examiner: Examiner) -> None:
        self._examiner = examiner
        self.cluster = cluster
        self._store = Store(cluster)
        self.kept = Kept(cluster, self._store)
        self._writing = asyncio.Lock()

    def server(self) -> Server:
        """What it says of itself."""
        return Server(self.cluster.broker.cluster_id, self.cluster.config.registry_as)

    async def state(self) -> RegistryState:
        """What the topic says now. Errors: StoreError."""
        return await self._store.read()

    async def state_for(self, call: Call) -> RegistryState:
        """The same for a request. Errors: RegistryError."""
        try:
            return await self._store.read()
        except StoreError as error:
            raise store_failed(_failed(call.route), str(error)) from None

    async def warm(self) -> None:
        """Do what the first requests would wait for. Errors: StoreError."""
        await self._store.read()
        await self._store.name()

    def close(self) -> None:
        """Let the broker go."""
        self._store.close()

    async def serve(self, call: Call) -> Any:
        """The answer. Errors: RegistryError."""
        if call.route.draws:
            call.drawn = self.cluster.broker.turn.env.rng.uuid_bytes()
        try:
            if not call.route.writes:
                return (await self._decide(await self._store.read(), call)).answer
            if call.route.parted:
                return await self._write_parts(call)
            return await self._write(lambda state: call.route.load()(state, call.ask(state)))
        except StoreError as error:
            if error.code == ErrorCode.MESSAGE_TOO_LARGE and call.route.api in ("RegisterSchema", "TagSchema"):
                raise too_large() from None
            raise store_failed(_failed(call.route), str(error)) from None

    async def _write_parts(self, call: Call) -> Any:
        """Decide and append one part after the other. Errors: RegistryError, StoreError."""
        parts = call.route.load_parts()(call.ask(await self._store.read()))
        try:
            part = next(parts)
            while True:
                try:
                    answer = await self._write(part)
                except RegistryError as error:
                    part = parts.throw(error)
                else:
                    part = parts.send(answer)
        except StopIteration as end:
            return end.value

    async def _write(self, decide: Part) -> Any:
        """Decide and append, with nothing between. Errors: RegistryError, StoreError.

        A schema is examined while others may write, so that one that takes long holds none of them up. Where the
        question is another one each time, for the subject has moved meanwhile, the last are asked while others wait.
        """
        known: dict[Job, Found] = {}
        faults: dict[Job, SchemaFaultError] = {}  # what is no schema, is none beside any other
        for tried in range(MOST_TRIES):
            async with self._writing:
                made = _decided(decide(await self._store.read()), known, faults)
                if isinstance(made, Job) and tried >= FREE_TRIES:
                    await self._examine(made, known, faults)
                    made = _decided(decide(await self._store.read()), known, faults)
                if isinstance(made, Decision):
                    if made.records:
                        await self._append(made.records)
                    return made.answer
            await self._examine(made, known, faults)
        raise StoreError("another program writes to the topic all the time")

    async def _append(self, records: tuple[Record, ...]) -> None:
        """Append records that can be read again, and see that they were. Errors: RegistryError, StoreError."""
        for record in records:
            try:
                decode(*encode(record))
            except ValueError as error:
                raise unreadable(error) from None
        await self._store.append(records)
        state = await self._store.read()
        for record in records:
            if record.kind == SCHEMA and isinstance(record.value, dict) and record.subject is not None:
                row = state.get(record.subject, record.version, deleted=True)
                if row is None or row.id != record.value["id"]:
                    raise StoreError(f"version {record.version} of {record.subject} was written, and is not there")

    async def _examine(self, job: Job, known: dict[Job, Found], faults: dict[Job, SchemaFaultError]) -> None:
        found = known[job] = await self._examiner.check(job)
        if isinstance(found, SchemaFaultError):
            faults[_alone(job)] = found

    async def _decide(self, state: RegistryState, call: Call) -> Decision:
        made = call.route.load()(state, call.ask(state))
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


def _decided(made: Decision | Steps, known: dict[Job, Found], faults: dict[Job, SchemaFaultError]) -> Decision | Job:
    """What a request does, by what was found out; else what has to be found out. Errors: RegistryError."""
    if not isinstance(made, Generator):
        return made
    try:
        job = next(made)
        while True:
            found = known.get(job) or faults.get(_alone(job))
            if found is None:
                return job
            job = made.send(found)
    except StopIteration as end:
        decision: Decision = end.value
        return decision


def _alone(job: Job) -> Job:
    """The same question without what the schema is compared with."""
    return job._replace(previous=(), level="NONE")


def _failed(route: Route) -> str:
    """What Confluent's registry says when its topic does not answer."""
    if route.api == "RegisterSchema":
        return "Register schema operation failed while writing to the Kafka store"
    return f"{route.api} operation failed while {'writing to' if route.writes else 'reading'} the Kafka store"
