"""What clusters were made of is given up with them: a suite makes thousands, one for each test, and resets others."""

from __future__ import annotations

import asyncio
import gc

import pytest

from broker.broker import Broker
from broker.shell import kept_memory
from broker.shell.cluster_plan import ClusterPlan
from broker.shell.process import Process
from storage.files.env import SystemFiles

A_COLLECTION = 5  # lives
MANY = 3 * A_COLLECTION


@pytest.fixture(autouse=True)
def _collects_as_a_process_does(monkeypatch):
    """Old objects are collected when something asks for it, and here that is only what is tested."""
    monkeypatch.setattr(kept_memory, "LIVES_A_COLLECTION", A_COLLECTION)
    monkeypatch.setattr(kept_memory, "MOST_S_A_LIFE", 1e9)
    monkeypatch.setattr(kept_memory, "COLLECT_S", 0)
    gc.collect()
    gc.disable()
    yield
    gc.enable()


def brokers() -> int:
    return sum(isinstance(each, Broker) for each in gc.get_objects())


async def a_process(folder) -> Process:
    process = Process(SystemFiles(), connection_limit=1000, movable=True)
    plan = ClusterPlan("default", {}, data_dir=f"{folder}/data", listen="127.0.0.1:0", flush="memory")
    await process.start(plan)
    return process


@pytest.mark.parametrize("is_ahead", [False, True], ids=["made to order", "made ahead"])
def test_removed_clusters_are_freed(tmp_path, is_ahead):
    async def run() -> int:
        process, before = await a_process(tmp_path), brokers()
        for number in range(MANY):
            name = (await process.create(None, {})).name
            while is_ahead and number and not any(process._spares._ready.values()):
                await asyncio.sleep(0.002)
            await process.remove(name)
        await asyncio.sleep(0.02)
        found = brokers() - before
        await process.stop()
        return found

    assert asyncio.run(run()) <= A_COLLECTION + 2  # those of the next collection, and spares


def test_lives_that_a_reset_has_ended_are_freed(tmp_path):
    async def run() -> int:
        process = await a_process(tmp_path)
        before = brokers()
        for _ in range(MANY):
            await process.clusters["default"].reset()
        await asyncio.sleep(0.02)
        found = brokers() - before
        await process.stop()
        return found

    assert asyncio.run(run()) <= A_COLLECTION


class Loop:
    @staticmethod
    def call_later(_seconds, call):
        call()


@pytest.mark.parametrize(
    ("took_s", "then_s", "collections"),
    [
        ([0.001], 0.001, 4),  # at 50, 100, 150, 200 lives
        ([1.0, 0.001], 0.001, 5),  # it was the lives' own objects that took long: once more, and then as above
        ([1.0, 1.0], 1.0, 2),  # all other objects take long: not again before MOST_LIVES
    ],
)
def test_collections_become_rare_where_others_objects_take_long(monkeypatch, took_s, then_s, collections):
    monkeypatch.setattr(kept_memory, "LIVES_A_COLLECTION", 50)
    monkeypatch.setattr(kept_memory, "MOST_S_A_LIFE", 0.0002)
    collected = []

    def collection_s():
        collected.append(1)
        return took_s.pop(0) if took_s else then_s

    monkeypatch.setattr(kept_memory, "_collection_s", collection_s)
    memory = kept_memory.KeptMemory(Loop())
    for _ in range(200):
        memory.life_ended()
    assert len(collected) == collections
    for _ in range(kept_memory.MOST_LIVES):
        memory.life_ended()
    assert len(collected) > collections  # never rarer than that
