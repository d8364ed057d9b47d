"""All shortcuts at once, held against the general handlers over histories in which other features interfere.

Two brokers see the same bytes. One has the table of shortcuts, the other has none. Replies, logs and states must be the
same, whatever happens between two requests: transactions that commit, abort and time out, producers that are fenced,
topics and groups that are deleted and made again, ids that groups of another kind take, leaders that move, writes that
fail, unsynced writes, restarts.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
from core_requests import commit_request, fetch_request, produce_request
from history_kit import History
from hypothesis import given, note, settings
from hypothesis import strategies as st
from share_pair import Sides
from shortcuts_kit import REPEATED, SPOILT, Habit, adding, adding_offsets, ask, event, spoil

from broker.handlers import make_routes
from broker.wire.route import HOT
from protocol.api import ApiKey, api_name
from protocol.messages.offsets import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
)
from protocol.messages.share_fetch import ShareFetchRequest
from protocol.messages.transactions import (
    EndTxnRequest,
)

ALL = {ApiKey.PRODUCE, ApiKey.FETCH, ApiKey.OFFSET_COMMIT, ApiKey.OFFSET_FETCH, ApiKey.ADD_PARTITIONS_TO_TXN}
ALL |= {ApiKey.ADD_OFFSETS_TO_TXN, ApiKey.END_TXN, ApiKey.TXN_OFFSET_COMMIT}


@pytest.mark.heavy
@pytest.mark.parametrize(("flush", "brokers"), [("os", 1), ("fsync", 1), ("os", 2)])
def test_shortcuts_and_general_handlers_agree_over_any_history(flush, brokers):
    @settings(max_examples=60)
    @given(st.data())
    def check(data: Any) -> None:
        habits = [Habit(data) for _ in range(data.draw(st.integers(2, 5)))]
        note(repr(habits))
        history = History(flush, brokers, share_coordinator_state_topic_num_partitions="1")
        ask(history, habits)
        for _ in range(data.draw(st.integers(1, 8))):
            event(history, data, habits)
            ask(history, habits)
        history.check_logs()

    check()


@pytest.mark.parametrize(("kind", "version"), [(kind, each) for kind, (_, all_) in REPEATED.items() for each in all_])
def test_request_is_served_from_its_bytes_from_the_second_one_on(kind: str, version: int):
    history, habit = History("os", 1), Habit.of(kind, version)
    history.call(commit_request("g", {0: 1}, "a"), 8)  # loads the group's shard
    if kind == "txn produce":
        history.call(adding(history.producers["tx"], ["a"], 0), 3)
    history.taken.clear()
    for _ in range(5):
        history.call(habit.request(history), version)
    history.check_logs()
    assert history.taken[REPEATED[kind][0].API_KEY] == 4


def test_every_shortcut_is_taken():
    """Or the comparison above compares nothing."""
    history = History("os", 1)
    producer = history.producers["tx"]
    for _ in range(4):
        history.call(commit_request("g", {0: 1, 1: 2}, "a"), 8)
        for _ in range(2):
            history.call(OffsetFetchRequest(groups=[OffsetFetchRequestGroup(group_id="g", topics=None)]), 8)
        history.call(produce_request("a", 0, b"value"), 9)
        history.call(fetch_request("a", 0, 0), 11)
        history.call(adding(producer, ["a"], 0), 3)
        history.call(adding_offsets(producer, "g"), 3)
        history.call(producer.produce_request(b"x", topic="a"), 11)
        history.call(producer.offsets_request({0: 1}, "g", "a"), 3)
        history.end("tx", 3, True)
    history.check_logs()
    assert {api_key for api_key, n in history.taken.items() if n >= 2} == ALL


HOT_APIS = [route.api_key for route in make_routes() if route.target == HOT]


@pytest.fixture(scope="module")
def newest() -> Counter[int]:
    """API -> how many of its usual requests, in its newest version, were served from their bytes."""
    limits = {"max_records": 16, "batch_size": 16, "max_wait_ms": 0, "min_bytes": 1, "max_bytes": 9999}
    sides = Sides("os")
    sides.readers["m"].version = ShareFetchRequest.MAX_VERSION
    for _ in range(4):
        sides.produce(16, 0, 10)
        sides.fetch(sides.readers["m"], [0], 1, **limits)
    history = History("os", 1)
    habits = [Habit.of(kind, request.MAX_VERSION) for kind, (request, _) in REPEATED.items() if kind != "txn produce"]
    for _ in range(4):
        for habit in [each for each in habits for _ in range(2)]:
            history.call(habit.request(history), habit.version)
        history.end("tx", EndTxnRequest.MAX_VERSION, True)
    history.check_logs()
    return Counter({**history.taken, ApiKey.SHARE_FETCH: sides.taken})


@pytest.mark.parametrize("api_key", HOT_APIS, ids=api_name)
def test_newest_version_of_an_api_with_repeats_is_served_from_bytes(newest: Counter[int], api_key: int):
    assert newest[api_key] >= 1, "the declaration has a version that protocol/shape.py cannot cut"


@pytest.mark.parametrize("how", SPOILT)
def test_what_is_not_one_batch_joins_no_transaction(how: str):
    history = History("os", 1)
    producer = history.producers["tx"]
    history.call(producer.produce_request(b"x", topic="a"), 12)
    history.end("tx", 5, True)
    history.call(spoil(producer.produce_request(b"x", topic="a"), how), 12)
    history.check_logs()


def test_reply_for_all_topics_changes_when_a_pending_offset_is_committed():
    """A topic with nothing but a pending offset is not in the reply, and its commit must change the kept one."""
    history = History("os", 1)
    producer = history.producers["tx"]
    question = OffsetFetchRequest(groups=[OffsetFetchRequestGroup(group_id="g", topics=None)])
    assert history.call(producer.offsets_request({0: 5}, "g", "a"), 5) is not None
    for _ in range(2):
        assert history.call(question, 8).groups[0].topics == []
    history.end("tx", 5, True)
    assert [topic.name for topic in history.call(question, 8).groups[0].topics] == ["a"]
