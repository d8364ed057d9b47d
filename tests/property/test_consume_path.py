"""A repeated Fetch is answered alike: the same bytes from a broker that serves it from its bytes and one that does not.

Random consumers with and without sessions, over plain and transactional records, lost writes, deleted topics, moved log
starts, moved leaders, leader epochs and time-outs.
"""

from __future__ import annotations

from typing import Any

import pytest
from budget import budget
from fetch_pair_kit import PLACES, Consumer, Pair, finish, perform
from hypothesis import given
from hypothesis import strategies as st

from protocol.messages.fetch import FetchRequest

VERSIONS = [4, 7, 9, 11, 12, 13, 16, FetchRequest.MAX_VERSION]


CONSUMERS = st.builds(
    Consumer,
    st.sampled_from(VERSIONS),
    st.lists(st.sampled_from(PLACES), min_size=1, max_size=3, unique=True),
    session=st.booleans(),
    max_wait_ms=st.sampled_from([0, 100, 500]),
    min_bytes=st.sampled_from([0, 1, 1, 1, 150]),
    max_bytes=st.sampled_from([1, 250, 1 << 20]),
    isolation_level=st.integers(0, 1),
)
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("fetch"), st.integers(0, 2)),
        st.tuples(st.just("fetch"), st.integers(0, 2)),
        st.tuples(st.just("append"), st.sampled_from(PLACES), st.sampled_from([-1, -1, 1, 2]), st.integers(1, 3)),
        st.tuples(st.just("append"), st.sampled_from(PLACES), st.just(-1), st.just(1)),
        st.tuples(st.just("end"), st.sampled_from(PLACES), st.sampled_from([1, 2]), st.booleans()),
        st.tuples(st.just("check")),
        st.tuples(st.just("check")),
        st.tuples(st.just("time"), st.sampled_from([50, 120, 600])),
        st.tuples(st.just("seek"), st.integers(0, 2), st.integers(0, 6)),
        st.tuples(st.sampled_from(["twice", "forget", "wrong epoch"]), st.integers(0, 2)),
        st.tuples(st.sampled_from(["fail", "delete topic", "make topic", "delete records"])),
    ),
    max_size=60,
)
READERS = st.builds(  # those whose requests the shortcut serves most often
    Consumer,
    st.sampled_from([9, 12, 13, 17]),
    st.sampled_from([[("a", 0)], [("a", 0), ("a", 1)]]),
    session=st.sampled_from([True, True, False]),
    max_wait_ms=st.sampled_from([0, 500]),
    min_bytes=st.sampled_from([0, 1, 300]),
    max_bytes=st.just(1 << 20),
    isolation_level=st.sampled_from([0, 0, 1]),
)
EPOCHS = st.sampled_from([-1, -1, -1, 0, 1])
MOVES = st.lists(
    st.tuples(
        st.sampled_from(["read"] * 6 + ["append", "time"] + ["epochs", "move"] * 2),
        st.integers(0, 2),  # the consumer
        st.sampled_from(PLACES[:2]),
        st.integers(1, 4),  # how often it reads
        st.fixed_dictionaries({"current_leader_epoch": EPOCHS, "last_fetched_epoch": EPOCHS}),
    ),
    min_size=10,
    max_size=40,
)


@pytest.mark.parametrize("flush", ["os", "fsync"])
def test_shortcut_and_general_handler_answer_the_same(flush: str) -> None:
    @budget(40)
    @given(consumers=st.lists(CONSUMERS, min_size=3, max_size=3), steps=STEPS)
    def run(consumers: list[Consumer], steps: list[tuple[Any, ...]]) -> None:
        pair = Pair(flush, consumers)
        for step, *more in steps:
            perform(pair, step, more)
        finish(pair)

    run()


@pytest.mark.heavy
@budget(80)
@given(consumers=st.lists(READERS, min_size=3, max_size=3), moves=MOVES)
def test_shortcut_follows_leaders_and_epochs_as_the_general_handler(
    consumers: list[Consumer], moves: list[tuple[str, int, tuple[str, int], int, dict[str, int]]]
) -> None:
    """The last read before another step may be parked then."""
    pair = Pair("os", consumers, brokers=2)
    for place in PLACES[:2]:
        pair.move(place, 0)
    for step, which, place, times, epochs in moves:
        consumer = consumers[which]
        if step == "move":
            pair.move(place, times % 2)
        elif step == "epochs":
            consumer.epochs, consumer.changed = epochs, [place] if place in consumer.places else []
        if step in ("read", "epochs"):
            for _ in range(times):
                if consumer.asked:
                    perform(pair, "time", [600])
                perform(pair, "fetch", [which])
                pair.check()
        elif step != "move":
            perform(pair, step, [place, -1, 1] if step == "append" else [600])
    finish(pair)


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("session", [False, True])
def test_shortcut_is_taken_by_consumers(version: int, session: bool) -> None:
    """Or the comparison above compares nothing."""
    consumer = Consumer(version, [("a", 0), ("a", 1)], session=session, max_wait_ms=500, min_bytes=1, max_bytes=1 << 20)
    pair = Pair("os", [consumer])
    taken = []
    clients = pair.worlds[0].broker.clients
    original = clients.dispatch

    def counted(*args: Any) -> None:
        taken.append(args)
        original(*args)

    clients.dispatch = counted
    for _ in range(12):
        pair.fetch(0)
        pair.check()
        pair.append(("a", 0), -1, 1)
        pair.check()
    assert consumer.offsets["a", 0] == 12
    assert len(taken) <= 3  # the first of its kind: in full, in a session, in a session with an offset


@pytest.mark.parametrize(("max_bytes", "min_bytes"), [(250, 1), (1 << 20, 150)])
def test_batch_that_a_limit_cuts_counts_the_same_on_the_shortcut(max_bytes: int, min_bytes: int) -> None:
    """A partition's limit of 200 bytes cuts the second batch: too little is left for the other, and enough has come."""
    limits = {"max_wait_ms": 500, "min_bytes": min_bytes, "max_bytes": max_bytes}
    consumer = Consumer(12, [("a", 0), ("a", 1)] if min_bytes == 1 else [("a", 0)], session=False, **limits)
    pair = Pair("os", [consumer])
    for _ in range(2):
        pair.append(("a", 0), -1, 1)
    pair.append(("a", 1), -1, 1)
    pair.check()
    for _ in range(3):
        consumer.offsets = dict.fromkeys(consumer.places, 0)
        pair.fetch(0)
        pair.check()
        assert consumer.asked == 0
        assert list(consumer.offsets.values()) == [1, 0][: len(consumer.places)]


@pytest.mark.parametrize("flush", ["os", "fsync"])
def test_fetch_on_the_shortcut_counts_bytes_that_were_not_readable_when_it_came(flush: str) -> None:
    consumer = Consumer(12, [("a", 0)], session=False, max_wait_ms=500, min_bytes=100, max_bytes=1 << 20)
    pair = Pair(flush, [consumer])
    for _ in range(4):
        pair.append(("a", 0), -1, 1)
        pair.fetch(0)
        pair.check()
        assert consumer.asked == 0
    assert consumer.offsets["a", 0] == 4
