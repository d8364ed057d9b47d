"""Subscriptions by regular expression."""

from __future__ import annotations

from typing import Any

import pytest
from consumer_kit import Groups

from broker.coordinator.groups.consumer import regex
from protocol.errors import ErrorCode as E


@pytest.fixture
def g():
    with Groups({"orders-1": 2, "orders-2": 2, "payments": 2}) as groups:
        yield groups


def test_expression_is_resolved_behind_the_heartbeat(g):
    member = g.member(topics=None, regex="orders-.*")
    assert (member.join().error_code, member.epoch, member.assigned) == (0, 1, {})
    g.settle([member])
    assert member.assigned == {"orders-1": [0, 1], "orders-2": [0, 1]}
    g.restart()
    assert g.client is not None
    assert member.beat().error_code == 0


def test_expression_matches_whole_names(g):
    member = g.member(topics=None, regex="orders")
    member.join()
    member.beat()
    assert member.assigned == {}


@pytest.mark.parametrize("bad", ["(", "[a", "a**", r"(a)\1", "(?=a)"])
def test_bad_expression_is_refused(g, bad):
    answer = g.member(topics=None, regex=bad).join()
    assert answer.error_code == E.INVALID_REGULAR_EXPRESSION
    assert bad in answer.error_message
    assert g.group() is None


def test_expression_that_others_have_is_resolved_already(g):
    a, b = (g.member(m, topics=None, regex="orders-.*") for m in "ab")
    a.join()
    a.beat()
    assert b.join().member_epoch == 3
    g.settle([a, b])
    assert (a.count(), b.count()) == (2, 2)


def test_other_expression_right_behind_the_first_raises_no_epoch_until_it_is_resolved(g):
    a = g.member("a", topics=None, regex="orders-.*")
    a.join()
    again = g.member("a", topics=None, regex="pay.*")
    assert again.join().member_epoch == 2  # that of the first expression's topics


def test_names_and_expression_add_up(g):
    member = g.member(topics=["payments"], regex="orders-1")
    member.join()
    assert member.assigned == {"payments": [0, 1]}
    g.settle([member])
    assert member.assigned == {"orders-1": [0, 1], "payments": [0, 1]}


def test_topics_made_later_are_found_after_ten_seconds(g):
    member = g.member(topics=None, regex="orders-.*")
    member.join()
    g.settle([member])
    g.make_topic("orders-3", 1)
    member.beat()
    member.beat()
    assert "orders-3" not in member.assigned
    g.advance(regex.LEAST_INTERVAL_MS + 1)
    member.beat()
    g.settle([member])
    assert member.assigned["orders-3"] == [0]


def test_expression_given_up_is_forgotten_with_its_last_member(g):
    a, b = (g.member(m, topics=None, regex="orders-.*") for m in "ab")
    a.join()
    b.join()
    g.settle([a, b])
    b.leave()
    assert set(g.group().regexes) == {"orders-.*"}
    a.beat(subscribed_topic_regex="", subscribed_topic_names=["payments"])
    assert g.group().regexes == {}
    g.settle([a])
    assert a.assigned == {"payments": [0, 1]}


def test_expression_goes_with_the_last_member_that_leaves(g):
    member = g.member(topics=None, regex="orders-.*")
    member.join()
    member.beat()
    member.leave()
    assert g.group().regexes == {}


def resolved(steps) -> tuple[int, dict[str, frozenset[str]]]:
    """How many slices it took, and what came out."""
    slices = 0
    while True:
        try:
            next(steps)
            slices += 1
        except StopIteration as stop:
            return slices, stop.value


def test_many_topics_are_matched_in_slices():
    slices, found = resolved(regex.resolve(["t1.*", "t2.*"], [f"t{i}" for i in range(5_000)]))
    assert slices >= 4
    assert {r: len(names) for r, names in found.items()} == {"t1.*": 1111, "t2.*": 1111}


def test_expression_that_would_take_forever_elsewhere_takes_no_time():
    assert resolved(regex.resolve(["(a*)*b"], ["a" * 200])) == (0, {"(a*)*b": frozenset()})


def test_logged_expression_that_cannot_be_compiled_is_reported_and_stops_no_other(g, monkeypatch, caplog):
    a, b = g.member("a", topics=None, regex="orders-.*"), g.member("b", topics=None, regex="pay.*")
    a.join()
    b.join()
    g.settle([a, b])
    g.restart()
    compiled = regex.compiled

    def without_orders(expression: str) -> Any:
        return compiled("(" if expression == "orders-.*" else expression)

    monkeypatch.setattr(regex, "compiled", without_orders)
    g.make_topic("payables", 2)
    g.advance(20_000)
    b.beat()
    g.settle([a, b])
    assert (a.assigned, b.assigned) == ({}, {"payables": [0, 1], "payments": [0, 1]})
    assert [r.levelname for r in caplog.records if "`orders-.*` is ignored" in r.getMessage()] == ["ERROR"]
