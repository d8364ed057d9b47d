"""What several parked fetches of a partition read together is what each would have read alone.

The same random consumers on two brokers; on one of them each looks for itself.
"""

from __future__ import annotations

from itertools import product, starmap
from typing import Any

import pytest
from budget import budget
from core_broker import Client, World, make_topic
from core_requests import fetch_bytes, fetch_request, produce_request
from hypothesis import given
from hypothesis import strategies as st
from property.fetch_pair_kit import PLACES, Consumer, Pair, perform

from broker.partitions import partition, waiters
from protocol.messages.topics import DeleteTopicsRequest, DeleteTopicState
from storage.files.sim_env import MemoryFile
from storage.segments.file_slice import FileSlice

READERS = 50


def build(version: int, session: bool, committed: int, min_bytes: int, max_bytes: int) -> Consumer:
    limits = {"isolation_level": committed, "min_bytes": min_bytes, "max_bytes": max_bytes, "max_wait_ms": 500}
    return Consumer(version, [("a", 0)], session=session, **limits)


ALIKE = st.builds(
    build,
    st.sampled_from([4, 11, 12, 16]),
    st.booleans(),
    st.integers(0, 1),
    st.sampled_from([1, 1, 150]),
    st.sampled_from([250, 1 << 20]),
)


STEP = st.one_of(
    st.just(("all fetch",)),
    st.just(("all fetch",)),
    st.tuples(st.just("append"), st.just(PLACES[0]), st.sampled_from([-1, -1, 1, 2]), st.integers(1, 3)),
    st.tuples(st.just("append"), st.just(PLACES[0]), st.sampled_from([-1, -1, 1, 2]), st.integers(1, 3)),
    st.tuples(st.just("end"), st.just(PLACES[0]), st.sampled_from([1, 2]), st.booleans()),
    st.tuples(st.just("time"), st.sampled_from([50, 600])),
    st.tuples(st.just("seek"), st.integers(0, 2), st.integers(0, 6)),
    st.tuples(st.sampled_from(["check", "fail", "delete records"])),
)


@pytest.mark.parametrize("shortcuts", [True, False])
@pytest.mark.parametrize("flush", ["os", "fsync"])
def test_fetches_that_wait_together_read_what_each_would_read(flush, shortcuts, monkeypatch) -> None:
    shared = 0

    @budget(25)
    @given(consumers=st.lists(ALIKE, min_size=3, max_size=3), steps=st.lists(STEP, min_size=5, max_size=40))
    def run(consumers: list[Consumer], steps: list[tuple[Any, ...]]) -> None:
        nonlocal shared
        pair = Pair(flush, consumers)
        for world in pair.worlds:
            world.broker.clients.disable_shortcuts("this test", not shortcuts)
        alone = pair.worlds[1].env

        def poll_all(waiting: Any, log: Any) -> None:
            nonlocal shared
            shared += len(waiting) > 1
            if log.env is alone:
                for wait in list(waiting):
                    wait.poll()
            else:
                waiters.poll_all(waiting, log)

        monkeypatch.setattr(partition, "poll_all", poll_all)
        for step, *more in steps:
            if step == "all fetch":
                pair.check()
                for which in range(len(consumers)):
                    pair.fetch(which)
            else:
                perform(pair, step, more)
            assert all(each.log.shared_slices is None for each in pair.worlds[0].broker.partitions.opened())
        pair.check()

    run()
    assert shared > 0, "or nothing was compared"


@pytest.mark.parametrize("shortcuts", [True, False])
@pytest.mark.parametrize("size", [10, 9_000])
def test_many_parked_fetches_read_the_file_once(size, shortcuts, monkeypatch) -> None:
    world = World("os", shortcuts=shortcuts)
    producer = Client(world)
    make_topic(producer, "t", 2)
    readers = [Client(world) for _ in range(READERS)]
    reads: list[int] = []
    original = MemoryFile.pread  # not a method of FileSlice: mypyc calls its own directly
    monkeypatch.setattr(MemoryFile, "pread", lambda self, n, at: reads.append(n) or original(self, n, at))
    for offset in range(3):
        for reader in readers:
            reader.send(fetch_request("t", 0, offset, max_wait_ms=10_000), 11)
        world.run()
        producer.call(produce_request("t", 1, b"elsewhere"), 9)
        assert not reads
        value = bytes([offset]) * size
        producer.call(produce_request("t", 0, value), 9)
        assert len(reads) == 1
        reads.clear()
        for reader in readers:
            (answer,) = reader.replies()
            assert value in fetch_bytes(answer)
    log = world.broker.partitions.get(world.broker.metadata.topics["t"], 0).log
    assert log.shared_slices is None


def test_reads_that_differ_are_not_shared() -> None:
    world = World("os")
    producer = Client(world)
    make_topic(producer, "t", 1)
    for n in range(4):
        producer.call(produce_request("t", 0, bytes([n]) * 30_000), 9)
    log = world.broker.partitions.get(world.broker.metadata.topics["t"], 0).log
    asked = list(product((0, 1, 2), (1, 40_000, 1 << 20), (1, 2, 4), (True, False)))

    def read(offset: int, most: int, limit: int, min_one: bool) -> FileSlice | None:
        return log.read(offset, most, limit_offset=limit, min_one=min_one)

    alone = [None if found is None else (found.read(), found.end_offset) for found in starmap(read, asked)]
    log.shared_slices = {}
    for _ in range(2):
        for wanted, expected in zip(asked, alone, strict=True):
            found = read(*wanted)
            assert (None if found is None else (found.read(), found.end_offset)) == expected
            assert found is None or found is read(*wanted)
            assert found is None or (found._data is not None) == (len(found) <= 1 << 16)
    assert len(set(alone)) > 6


def test_what_was_read_together_is_forgotten_after_an_error(monkeypatch) -> None:
    world = World("os")
    producer, readers = Client(world), [Client(world) for _ in range(3)]
    make_topic(producer, "t", 1)
    for reader in readers:
        reader.send(fetch_request("t", 0, 0, max_wait_ms=10_000), 11)
    world.run()
    log = world.broker.partitions.get(world.broker.metadata.topics["t"], 0).log

    class Broken:
        def poll(self) -> None:
            raise KeyError("a bug")

    with pytest.raises(KeyError):
        waiters.poll_all({Broken(): None, Broken(): None}, log)
    assert log.shared_slices is None
    wanted = DeleteTopicState(name="t", topic_id=bytes(16))
    producer.call(DeleteTopicsRequest(topics=[wanted], timeout_ms=1), 6)
    for reader in readers:
        assert reader.replies()[0].responses[0].partitions[0].error_code
