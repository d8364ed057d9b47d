"""Heavy tests are found: the plugin of tests/heavy.py hears of what a test starts, and what it measures is told."""

from __future__ import annotations

import re
from types import SimpleNamespace

import pytest
from heavy import LIGHT, Heavy
from not_run import FOLDERS, TARGETS, NotRun
from source_tree import REPOSITORY

MAKEFILE = (REPOSITORY / "Makefile").read_text()


class Item:
    """A test, as far as the plugin looks at it."""

    def __init__(self, *markers: str) -> None:
        self.markers = markers
        self.nodeid = "tests/x.py::test_y"
        self.user_properties: list[tuple[str, object]] = []

    def get_closest_marker(self, name: str) -> str | None:
        return name if name in self.markers else None


def run(heavy: Heavy, item: Item, *, fixture: str = "", scope: str = "function") -> None:
    """A test that starts a process, in itself or in a fixture."""
    whole = heavy.pytest_runtest_protocol(item)
    next(whole)
    if fixture:
        made = heavy.pytest_fixture_setup(SimpleNamespace(scope=scope, argname=fixture))
        next(made)
        heavy.heard("subprocess.Popen", ())
        made.close()
    else:
        heavy.heard("subprocess.Popen", ())
    after = heavy.pytest_runtest_teardown(item)
    next(after)
    try:
        next(after)
    except StopIteration:
        pass
    finally:
        whole.close()


@pytest.mark.parametrize(("fixture", "told"), [("", "the test"), ("broker_of_mine", "broker_of_mine")])
def test_test_that_starts_a_process_fails_and_the_place_is_named(fixture, told):
    with pytest.raises(pytest.fail.Exception, match=f"starts a process, in {told}: mark it"):
        run(Heavy(), Item(), fixture=fixture)


@pytest.mark.parametrize("marker", TARGETS)
def test_test_of_another_target_may_start_processes(marker):
    run(Heavy(), Item(marker))


def test_file_of_the_table_may_start_processes():
    item = Item()
    item.nodeid = f"{min(LIGHT)}::test_y"
    run(Heavy(), item)
    assert all((REPOSITORY / name).is_file() for name in LIGHT)


def test_fixture_of_a_module_may_start_a_process_for_all_its_tests():
    run(Heavy(), Item(), fixture="shared", scope="module")


def test_test_after_one_that_failed_is_not_blamed():
    heavy = Heavy()
    with pytest.raises(pytest.fail.Exception):
        run(heavy, Item())
    run(heavy, Item("heavy"))


def test_time_of_a_test_that_is_not_heavy_is_told(monkeypatch):
    heavy, item, now_s = Heavy(), Item(), iter((5.0, 6.6))
    monkeypatch.setattr("heavy.time.process_time", lambda: next(now_s))
    whole = heavy.pytest_runtest_protocol(item)
    next(whole)
    list(heavy.pytest_runtest_teardown(item))
    whole.close()
    heavy.pytest_runtest_logreport(
        SimpleNamespace(when="teardown", user_properties=item.user_properties, nodeid=item.nodeid)
    )
    lines: list[str] = []
    heavy.pytest_terminal_summary(SimpleNamespace(write_line=lines.append))
    assert lines == ["HEAVY: 1.6 s of the processor, and is not marked so: tests/x.py::test_y"]


def test_every_target_that_is_named_for_what_was_left_out_exists():
    targets = set(" ".join(re.findall(r"^([\w-]+(?: [\w-]+)*):", MAKEFILE, re.MULTILINE)).split())
    named = re.findall(r"make ([\w-]+)", " ".join(target for _, target in [*TARGETS.values(), *FOLDERS.values()]))
    assert set(named) <= targets
    assert all((REPOSITORY / folder).is_dir() for folder in FOLDERS)


def test_folders_that_are_left_out_are_told_unless_tests_are_named():
    lines = {}
    for keyword in ("", "offsets"):
        option = SimpleNamespace(light=True, keyword=keyword)
        lines[keyword] = NotRun(SimpleNamespace(option=option)).lines()
    assert [line.rpartition(": ")[2] for line in lines[""]] == [target for _, target in FOLDERS.values()]
    assert lines["offsets"] == []


def test_both_parts_together_are_all_that_has_no_other_target():
    """What make test leaves to test-heavy is what that runs, and the gate runs both."""
    recipes = dict(re.findall(r"^([\w-]+): .*\n((?:\t.*\n)+)", MAKEFILE, re.MULTILINE))
    (light,) = re.findall(r"^LIGHT := (.*)", MAKEFILE, re.MULTILINE)
    assert " $(LIGHT) " in recipes["pytest"]
    of_test, of_heavy = (re.findall(r'-m "([^"]*)"', text)[0] for text in (light, recipes["test-heavy"]))
    assert of_test.removesuffix(" and not heavy") == of_heavy.removeprefix("heavy and ") != of_test
    gate = (REPOSITORY / ".ci" / "run").read_text().splitlines()
    assert {"part make test", "part make test-heavy"} <= set(gate)
