"""What the registry keeps of its answers: for whom, from what they come, and how much."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from broker.shell.registry import kept
from broker.shell.registry.kept import Kept


def door(host="127.0.0.1"):
    told = {"peername": (host, 1), "ssl_object": None}
    return SimpleNamespace(transport=SimpleNamespace(get_extra_info=told.get), who=None)


@pytest.fixture
def world():
    broker = SimpleNamespace(
        has_faults=False,
        clients=SimpleNamespace(journal=None),
        turn=SimpleNamespace(learned=SimpleNamespace(generation=5)),
    )
    store = SimpleNamespace(is_read=True, position=(1, b"id", 7))
    return SimpleNamespace(broker=broker, store=store, kept=Kept(SimpleNamespace(broker=broker), store))


def keep(world, request=b"GET", response=b"answer", host="127.0.0.1"):
    world.kept.keep(door(host), request, (response,), world.kept.origin())


def test_kept_answer_is_found_for_the_same_request_of_the_same_host(world):
    keep(world)
    assert world.kept.find(door(), b"GET") == (b"answer",)
    assert world.kept.find(door(), b"GOT") is None
    assert world.kept.find(door("127.0.0.2"), b"GET") is None


CHANGES = {
    "a fault": lambda world: setattr(world.broker, "has_faults", True),
    "a journal": lambda world: setattr(world.broker.clients, "journal", "one"),
    "the metadata": lambda world: setattr(world.broker.turn.learned, "generation", 6),
    "another life": lambda world: setattr(world.store, "position", (2, b"id", 7)),
    "another topic": lambda world: setattr(world.store, "position", (1, b"other", 7)),
    "a record that was read": lambda world: setattr(world.store, "position", (1, b"id", 8)),
    "a record that is to be read": lambda world: setattr(world.store, "is_read", False),
}


@pytest.mark.parametrize("what", CHANGES)
def test_kept_answer_is_not_found_after_a_change(world, what):
    keep(world)
    CHANGES[what](world)
    assert world.kept.find(door(), b"GET") is None


@pytest.mark.parametrize("what", CHANGES)
def test_answer_is_not_kept_where_a_change_came_while_it_was_made(world, what):
    origin = world.kept.origin()
    CHANGES[what](world)
    world.kept.keep(door(), b"GET", (b"answer",), origin)
    assert world.kept.find(door(), b"GET") is None


def test_answers_of_before_a_change_do_not_come_back_with_one_of_after_it(world):
    keep(world, b"first")
    CHANGES["the metadata"](world)
    keep(world, b"second")
    assert world.kept.find(door(), b"first") is None
    assert world.kept.find(door(), b"second") == (b"answer",)


def test_what_is_kept_has_an_end(world, monkeypatch):
    monkeypatch.setattr(kept, "KEPT_BYTES", 100)
    monkeypatch.setattr(kept, "LONGEST", 60)
    keep(world, b"a", b"x" * 61)
    assert world.kept.find(door(), b"a") is None
    for name in (b"b", b"c"):
        keep(world, name, b"x" * 50)
    assert [world.kept.find(door(), name) is None for name in (b"b", b"c")] == [True, False]
