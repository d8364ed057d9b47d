"""Kinds of faults: each is declared once, does what it is for, and is known to users and documents."""

from __future__ import annotations

import inspect
import re
from pathlib import Path
from typing import Any

import pytest
from core_broker import Client, World, make_topic
from core_requests import commit_request

import broker.faults.kinds as kinds
from broker.faults.errors import FaultError
from broker.faults.fields import REQUIRED, Field
from broker.faults.kinds import KINDS, DiskKind, RequestKind
from momus.faults import Faults

REPOSITORY = Path(__file__).parents[3]


def value_of(field: Field) -> Any:
    """One that is in the field's bounds."""
    return {"error": "NOT_COORDINATOR", "number": field.least}.get(field.type, *field.choices[:1])


ON_COMMITS = [
    name for name, kind in KINDS.items() if not isinstance(kind, kinds.LetterKind | kinds.OfRegistry)
]  # the others: dead letters, the registry


@pytest.mark.parametrize("name", ON_COMMITS)
def test_fault_of_each_kind_acts_on_a_commit(name):
    world = World("fsync")
    world.broker.make_event = lambda fault: None
    client = Client(world)
    make_topic(client, "t", 1)
    required = {field.name: value_of(field) for field in KINDS[name].fields if field.default is REQUIRED}
    fault = world.broker.faults.add({"fault": name, **required})
    client.send(commit_request("g", {0: 1}), 8)
    world.run()
    assert (fault.calls > 0, fault.hits > 0) == (True, True)


def test_each_class_of_a_kind_that_has_a_name_is_listed():
    made = {each for each in vars(kinds).values() if inspect.isclass(each) and "name" in vars(each)}
    assert {each for each in made if issubclass(each, kinds.Kind)} == {type(each) for each in KINDS.values()}


@pytest.mark.parametrize(
    "base", [RequestKind, kinds.ChangesReply, kinds.KeepsReply, kinds.CutsReply, DiskKind, kinds.LetterKind]
)
def test_kind_that_does_not_say_what_it_does_cannot_be_made(base):
    with pytest.raises(TypeError, match="abstract method"):
        type("Idle", (base,), {"name": "idle"})()


@pytest.mark.parametrize("name", KINDS)
def test_each_kind_has_a_method_for_users_that_takes_its_fields(name):
    method = getattr(Faults, name, None)
    assert method is not None, f"momus/faults.py has no method {name}"
    parameters = inspect.signature(method).parameters
    for field in KINDS[name].fields:
        default = inspect.Parameter.empty if field.default is REQUIRED else field.default
        assert parameters[field.name].default == default


def test_users_have_methods_for_kinds_that_exist_only():
    sets = {name for name, each in vars(Faults).items() if callable(each) and "add(fault=" in inspect.getsource(each)}
    assert sets == set(KINDS)


def test_table_of_the_documents_has_each_kind_with_its_fields():
    text = (REPOSITORY / "docs/faults.md").read_text()
    table, _, _ = text.partition("## What a client meets")
    rows = re.findall(r"^\| `(\w+)` \| ((?:`\w+`(?:, )?)*) ?\| ", table, re.MULTILINE)
    assert {name: re.findall(r"\w+", fields) for name, fields in rows} == {
        name: [field.name for field in kind.fields] for name, kind in KINDS.items()
    }


def test_fault_may_not_take_the_name_of_the_list_of_kinds():
    world = World("os")
    with pytest.raises(FaultError, match="'kinds', which the control plane uses itself"):
        world.broker.faults.add({"fault": "fail_write", "name": "kinds"})
