"""Writes of the registry beside each other: schemas are examined while others write; old news decides nothing."""

from __future__ import annotations

import asyncio
import json
from types import SimpleNamespace

import pytest

from broker.registry.errors import RegistryError
from broker.registry.jobs import Checked, SchemaFaultError
from broker.registry.state import RegistryState
from broker.shell.registry.service import FREE_TRIES, Call, Registry


class Store:
    """A topic in memory."""

    def __init__(self):
        self.state = RegistryState()

    async def read(self):
        return self.state

    async def append(self, records):
        for record in records:
            self.state.replay(record)


class Examiner:
    """Takes each text as it is; `meanwhile` is awaited before each answer."""

    def __init__(self):
        self.jobs = []
        self.meanwhile = None

    async def check(self, job):
        self.jobs.append(job)
        if self.meanwhile is not None:
            await self.meanwhile(job)
        if job.schema.schema == "bad":
            return SchemaFaultError("it is bad")
        return Checked(job.schema.schema, [], [])


@pytest.fixture
def registry():
    registry = Registry(SimpleNamespace(), Examiner())
    registry._store = Store()
    return registry


def call(subject, schema):
    made = Call("POST", f"/subjects/{subject}/versions")
    made.body = {"schema": schema}
    return made


def served(registry, subject, schema):
    async def serve():
        async with asyncio.timeout(60):  # ends what hangs
            return await registry.serve(call(subject, schema))

    return asyncio.run(serve())


def test_others_write_while_a_schema_is_examined(registry):
    async def meanwhile(job):
        if job.schema.schema == "first":
            assert (await registry.serve(call("b", "second")))["id"] == 1

    registry._examiner.meanwhile = meanwhile
    assert served(registry, "a", "first")["id"] == 2
    assert len(registry._examiner.jobs) == 2


def test_schema_is_examined_again_where_the_subject_has_moved(registry):
    async def meanwhile(job):
        if job.schema.schema == "mine" and not job.previous:
            await registry.serve(call("a", "other"))

    registry._examiner.meanwhile = meanwhile
    assert served(registry, "a", "mine")["version"] == 2
    asked = [job for job in registry._examiner.jobs if job.schema.schema == "mine"]
    assert [[each.schema for each in job.previous] for job in asked] == [[], ["other"]]


def test_subject_that_moves_all_the_time_is_held_at_last(registry):
    held = []

    async def meanwhile(job):
        if job.schema.schema == "mine":
            held.append(registry._writing.locked())
            if not registry._writing.locked():
                await registry.serve(call("a", f"other {len(held)}"))

    registry._examiner.meanwhile = meanwhile
    assert served(registry, "a", "mine")["version"] == FREE_TRIES + 1
    assert held == [False] * FREE_TRIES + [True]


def test_what_is_no_schema_is_examined_once_however_the_subject_moves(registry):
    async def meanwhile(job):
        if job.schema.schema == "bad":
            await registry.serve(call("a", f"other {len(registry._examiner.jobs)}"))

    registry._examiner.meanwhile = meanwhile
    with pytest.raises(RegistryError, match="it is bad"):
        served(registry, "a", "bad")
    assert sum(job.schema.schema == "bad" for job in registry._examiner.jobs) == 1
    assert json.dumps(sorted(registry._store.state.subjects)) == '["a"]'


def test_what_could_not_be_read_again_is_refused_and_takes_no_id(registry):
    assert served(registry, "s", "one")["id"] == 1
    with pytest.raises(RegistryError, match="could not be read again") as refusal:
        served(registry, "s", "half a pair: \ud800")
    assert refusal.value.code == 42201
    assert served(registry, "t", "two")["id"] == 2


def test_id_after_the_last_one_is_refused(registry):
    registry._store.state.highest_ids["."] = (1 << 31) - 1
    with pytest.raises(RegistryError, match="could not be read again"):
        served(registry, "s", "one")
    assert registry._store.state.subjects == {}


def test_what_was_written_and_is_not_there_is_no_answer(registry):
    async def lost(records):
        pass

    registry._store.append = lost
    with pytest.raises(RegistryError) as refusal:
        served(registry, "s", "one")
    assert refusal.value.code == 50001
