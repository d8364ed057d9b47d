"""Habits that a reader relies on: files that fit a head, a first sentence that says the role, no sleeping
tests."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).parents[2]
PACKAGES = ("protocol", "storage", "broker", "momus", "pipeline")
SOURCES = [p for package in PACKAGES for p in sorted((REPOSITORY / package).rglob("*.py"))]
TESTS = sorted((REPOSITORY / "tests").rglob("*.py"))
OTHERS = [p for folder in ("examples", "benchmarks") for p in sorted((REPOSITORY / folder).rglob("*.py"))]
LINES_LIMIT = 400
# Files over the limit, each with what its seam would cost.
LONGER: dict[str, str] = {"protocol/generated/cluster.py": "written by tools/keep_generated.py"}

# Left-overs of work in progress belong into SUPPORTED.md or nowhere; paths of somebody's machine into no
# file.
UNWANTED = re.compile(r"\b(TO" r"DO|FIX" r"ME|XX" r"X|HA" r"CK)\b|/home/\w+|/Users/\w+|/ro" r"ot/")
TEXTS = [
    p
    for p in [
        *SOURCES,
        *TESTS,
        *OTHERS,
        *REPOSITORY.glob("*.md"),
        *REPOSITORY.glob("*/*.md"),
        REPOSITORY / "Makefile",
    ]
    if "target" not in p.parts and ".venv" not in p.parts
]


def names(paths: list[Path]) -> list[str]:
    return [str(p.relative_to(REPOSITORY)) for p in paths]


@pytest.mark.parametrize("path", SOURCES, ids=names(SOURCES))
def test_source_opens_with_its_role_and_fits_its_limit(path):
    text = path.read_text()
    if text.strip():
        assert ast.get_docstring(ast.parse(text)), f"{path} does not say what it is for"
    lines = text.count("\n")
    assert lines <= LINES_LIMIT or str(path.relative_to(REPOSITORY)) in LONGER, f"{path} has {lines} lines"


def test_list_of_longer_files_names_only_files_over_the_limit():
    for name in LONGER:
        assert (REPOSITORY / name).read_text().count("\n") > LINES_LIMIT, f"{name} fits: take it off the list"


def test_kept_generated_functions_are_those_of_their_declarations():
    command = [sys.executable, str(REPOSITORY / "tools" / "keep_generated.py"), "--check"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("path", TEXTS, ids=names(TEXTS))
def test_text_holds_no_leftovers(path):
    found = [f"{path}:{n} {line}" for n, line in enumerate(path.read_text().splitlines(), 1) if UNWANTED.search(line)]
    assert not found


@pytest.mark.parametrize("path", TESTS, ids=names(TESTS))
def test_tests_outside_e2e_do_not_sleep_nor_read_the_clock(path):
    if "e2e" in path.parts or "crash" in path.parts:
        return  # real clients and real kills take real time
    wrong = []
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Call):
            called = ast.unparse(node.func)
            yields = called.endswith("asyncio.sleep") and ast.unparse(node.args[0]) == "0"
            if called.endswith(("time.sleep", "asyncio.sleep", "time.time", "datetime.now")) and not yields:
                wrong.append(f"{path}:{node.lineno} calls {called}")
    assert not wrong


@pytest.mark.parametrize("path", TESTS, ids=names(TESTS))
def test_test_functions_are_not_shadowed_by_one_another(path):
    defined = [
        n.name for n in ast.parse(path.read_text()).body if isinstance(n, ast.FunctionDef | ast.AsyncFunctionDef)
    ]
    assert len(defined) == len(set(defined))


def test_every_ignored_rule_says_why():
    text = (REPOSITORY / "pyproject.toml").read_text()
    settings = tomllib.loads(text)
    for rule in settings["tool"]["ruff"]["lint"]["ignore"][:1]:
        assert re.search(rf'"{rule}",\s+# \w', text), f"{rule} is ignored without a reason"
