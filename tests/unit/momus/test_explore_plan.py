"""Schedules: what may happen at a request, the likeliest first, the same for the same seed, cut by a budget."""

from __future__ import annotations

import pytest
from unit.momus.test_explore_classes import commit, row

from broker.faults.fault import parse as parse_fault
from broker.faults.kinds import EVENTS
from momus.explore.classes import find
from momus.explore.happenings import CATEGORIES, DEFAULT, HAPPENINGS, chosen
from momus.explore.plan import Budget, pairs, singles
from momus.explore.schedule import WORDS, text_of
from protocol.api import ApiKey, api_name


def texts(rows, what="", brokers=1, seed=0):
    return [text_of(each) for each in singles(find(rows).requests, chosen(what), brokers, seed)]


def test_each_row_of_the_table_is_a_fault_that_a_broker_takes():
    apis = {api_name(key) for key in ApiKey}
    for each in HAPPENINGS:
        if each.kind != "kill_program":
            parse_fault({"fault": each.kind, **each.words}, "x", lambda seed: None, lambda: 0)
        assert set(each.apis) <= apis
        assert tuple(each.words) == WORDS[each.kind][: len(each.words)]
        assert each.category in CATEGORIES
        assert each.source
    made = {each.words["event"] for each in HAPPENINGS if each.kind == "make_event"}
    assert made == set(EVENTS)


def test_state_is_changed_by_events_alone():
    """An error that says that a member or a coordinator is gone is never given where it is not."""
    said = {each.words["error"] for each in HAPPENINGS if each.kind == "inject_error" and each.category in DEFAULT}
    assert not said & {
        "UNKNOWN_MEMBER_ID",
        "ILLEGAL_GENERATION",
        "FENCED_MEMBER_EPOCH",
        "NOT_COORDINATOR",
        "NOT_LEADER_OR_FOLLOWER",
        "PRODUCER_FENCED",
        "INVALID_PRODUCER_EPOCH",
        "OFFSET_OUT_OF_RANGE",
    }


def test_member_is_expelled_at_its_commit_before_all_else():
    found = texts([row("Metadata"), commit(), commit()])
    assert found[0] == "OffsetCommit[group=g]#1 make_event expel_member before"
    assert all("move_" not in each for each in found)
    assert any("move_coordinator" in each for each in texts([commit()], brokers=2))


def test_what_needs_something_happens_only_where_it_is():
    plain, idempotent = row("Produce", topics=["t"]), row("Produce", topics=["t"], producer_id=7)
    assert [each for each in texts([plain]) if "deliver_twice" in each] == ["Produce[topic=t]#1 deliver_twice"]
    assert not [each for each in texts([idempotent]) if "deliver_twice" in each]
    assert not [each for each in texts([{**commit(), "member": ""}]) if "expel_member" in each]
    assert not texts([row("ApiVersions")])


def test_categories_are_chosen_by_name():
    assert {each.split()[1] for each in texts([commit()], "errors")} == {"inject_error"}
    assert any("AUTHORIZATION" in each for each in texts([commit()], "fatal"))
    assert not any("AUTHORIZATION" in each for each in texts([commit()]))
    with pytest.raises(ValueError, match="'eror' is nothing that may happen: give some of errors, "):
        chosen("eror")


def test_same_seed_gives_the_same_list_and_another_one_another_order():
    rows = [commit()] * 9 + [row("Fetch", topics=["t"])]
    assert texts(rows, seed=1) == texts(rows, seed=1)
    assert texts(rows, seed=1) != texts(rows, seed=2)
    assert sorted(texts(rows, seed=1)) == sorted(texts(rows, seed=2))


def test_pairs_are_two_different_ones_and_each_comes_once():
    schedules = singles(find([commit()] * 5).requests, chosen(""), 1)
    found = list(pairs(schedules[:8], 3))
    assert len(found) == len({frozenset(each) for each in found}) > 8
    assert all(len(set(each)) == 2 for each in found)
    assert found == list(pairs(schedules[:8], 3))


@pytest.mark.parametrize(
    ("text", "budget"), [("60s", (60.0, None, True)), ("200", (None, 200, True)), ("all", (None, None, False))]
)
def test_budget_is_a_time_a_number_or_all(text, budget):
    assert Budget.of(text) == budget


@pytest.mark.parametrize("text", ["", "0", "-1", "60m", "s", "every"])
def test_what_is_no_budget_is_refused(text):
    with pytest.raises(ValueError, match="takes a time"):
        Budget.of(text)
