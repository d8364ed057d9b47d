"""The text of a schedule says all of it, and what is none is refused with a sentence."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from momus.explore.schedule import NAMES, Step, parse, text_of

WORDS = st.sampled_from(
    [
        ("inject_error", (("error", "NOT_COORDINATOR"),)),
        ("make_event", (("event", "rebalance"), ("when", "after"))),
        ("disconnect_on", (("when", "middle"),)),
        ("delay_on", (("ms", 300), ("when", "after"))),
        ("deliver_twice", ()),
        ("kill_program", (("when", "before"),)),
    ]
)
NAMED = st.dictionaries(st.sampled_from(NAMES), st.text(min_size=1, max_size=12), max_size=3)


@st.composite
def steps(draw):
    kind, words = draw(WORDS)
    names = tuple(sorted(draw(NAMED).items()))
    return Step(
        draw(st.sampled_from(["Fetch", "OffsetCommit"])),
        names,
        draw(st.integers(1, 99)),
        kind,
        words,
        draw(st.integers(1, 3)),
    )


@given(st.lists(steps(), min_size=1, max_size=2))
def test_text_of_a_schedule_is_read_as_the_same_schedule(made):
    assert parse(text_of(tuple(made))) == tuple(made)


def test_text_is_what_documents_show():
    text = "OffsetCommit[group=billing]#2 make_event expel_member before"
    (step,) = parse(text)
    assert step.fault("explore.0", passed=1) == {
        "fault": "make_event",
        "name": "explore.0",
        "api": "OffsetCommit",
        "group": "billing",
        "event": "expel_member",
        "when": "before",
        "trigger": {"on_call": 1},
    }
    assert step.text() == text


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("OffsetCommit", "no step of a schedule: 'OffsetCommit'; write it as"),
        ("OffsetCommit#1 inject_eror X", "a schedule knows no fault 'inject_eror'"),
        ("OffsetCommit#1 inject_error", "inject_error takes error, not nothing"),
        ("OffsetCommit#1 deliver_twice now", "deliver_twice takes no words, not now"),
        ("OffsetCommit[grop=a]#1 deliver_twice", "no name of a request: 'grop=a'"),
        ("OffsetCommit#0 deliver_twice", "requests are counted from 1"),
    ],
)
def test_text_that_is_no_schedule_is_refused(text, why):
    with pytest.raises(ValueError, match=why.replace("?", ".")):
        parse(text)
