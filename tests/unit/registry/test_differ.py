"""The differential of registries finds a difference, makes its sequence short, and passes over what has a reason."""

import random
import sys
from pathlib import Path

import pytest

FOLDER = Path(__file__).resolve().parents[2] / "registry_differ"


@pytest.fixture
def differ(monkeypatch):
    """The modules of tests/registry_differ."""
    monkeypatch.syspath_prepend(str(FOLDER))
    names = ("answers", "associating", "explained", "material", "pair", "schemas", "step", "steps")
    for each in names:
        monkeypatch.delitem(sys.modules, each, raising=False)
    import pair
    import steps

    yield pair, steps
    for each in names:
        sys.modules.pop(each, None)


class Registry:
    """Answers each path by what was asked before; `fault`: from the second DELETE on another status."""

    def __init__(self, answers, fault):
        self.answers, self.fault, self.deleted = answers, fault, 0

    def begin(self, word):
        self.deleted = 0

    def ask(self, method, path, body):
        self.deleted += method == "DELETE"
        status = self.fault if self.fault and self.deleted > 1 and method == "GET" else 200
        return self.answers.Answer(status, {"error_code": status}, (status, "", {}))


def compared(differ, fault):
    pair, _ = differ
    made = pair.Pair(*(Registry(pair, each) for each in (0, fault)))
    rows = [
        pair.Step(*each.split())
        for each in ("GET /a", "DELETE /b", "GET /c", "DELETE /d", "PUT /e", "GET /f", "GET /g")
    ]
    return made, made.difference(rows)


def test_sequence_is_as_short_as_the_difference_allows(differ):
    made, found = compared(differ, 404)
    assert [step.path for step in found.steps] == ["/a", "/b", "/c", "/d", "/e", "/f"]
    assert [step.path for step in made.shortened(found).steps] == ["/b", "/d", "/f"]
    assert compared(differ, 0)[1] is None


def test_sequences_are_drawn_by_their_seed(differ):
    _, steps = differ
    one, other, third = (steps.sequence(random.Random(seed)) for seed in ("1.5", "1.5", "1.6"))
    assert one == other != third
    drawn = [step for number in range(300) for step in steps.sequence(random.Random(number))]
    kinds = {(step.method, step.path.partition("?")[0].split("/")[1]) for step in drawn}
    assert len(kinds) >= 15
