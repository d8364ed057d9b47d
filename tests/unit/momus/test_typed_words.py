"""What the kit's signatures promise to type checkers and editors is what a broker takes and gives."""

from __future__ import annotations

import inspect
import typing

import pytest

from broker.faults.kinds import KINDS, MIDDLE
from broker.journal import reading
from broker.shell.control.of_cluster.groups import STATES
from momus import faults
from momus.faults import NUMBERS, Faults
from momus.journal import Journal
from momus.kit import typed

NAMES = {**vars(typing), **vars(faults), **vars(typed)}


def words_of(method: object) -> set[str]:
    """The words that a call may give by name: those of the signature, and those of its `**filters`."""
    found, hints = set(), typing.get_type_hints(method, NAMES)
    for name, each in inspect.signature(method).parameters.items():
        if each.kind is each.VAR_KEYWORD:
            (filters,) = typing.get_args(hints[name])
            found |= set(typing.get_type_hints(filters))
        elif name != "self":
            found.add(name)
    return found


@pytest.mark.parametrize("kind", KINDS.values(), ids=list(KINDS))
def test_signature_of_a_fault_has_the_words_that_its_kind_takes(kind):
    taken = {each.name for each in (*kind.fields, *kind.filters)}
    assert words_of(getattr(Faults, kind.name)) == taken | {"trigger", "name", *NUMBERS}


@pytest.mark.parametrize("kind", KINDS.values(), ids=list(KINDS))
def test_choices_of_a_signature_are_those_of_the_kind(kind):
    choices = {each.name: set(each.choices) for each in kind.fields if each.choices}
    hints = typing.get_type_hints(getattr(Faults, kind.name), NAMES)
    assert {name: set(typing.get_args(hints[name])) for name in choices} == choices


def test_only_a_cut_may_come_in_the_middle():
    assert {kind.name for kind in KINDS.values() if any(MIDDLE in each.choices for each in kind.fields)} == {
        "disconnect_on"
    }
    assert set(typing.get_args(typed.WhenOrMiddle)) - set(typing.get_args(typed.When)) == {MIDDLE}


@pytest.mark.parametrize("call", [Journal.entries, Journal.verify, Journal.expect])
def test_filters_of_the_journal_are_those_that_a_broker_knows(call):
    assert words_of(call) - {"limit", "times", "at_least", "at_most", "within"} == set(reading.FILTERS)


def test_states_of_a_group_are_those_that_can_be_waited_for():
    assert set(typing.get_args(typed.GroupState)) == set(STATES)
