"""Habits that a reader relies on: files that fit a head, a first sentence that says the role, functions of a screen, no
sleeping tests. One test a habit, over all files: a failure lists every file and line that breaks it."""

from __future__ import annotations

import ast
import re
import subprocess
import sys

import pytest
from source_tree import PACKAGES, REPOSITORY, every_file, files_of_tests, modules, text_of, tree_of

LINES_LIMIT = 600
FUNCTION_LINES_LIMIT = 60  # ruff's C901 limits their branches
GENERATED = "protocol/generated/"  # written by tools/keep_generated.py, read by nobody

# Left-overs of work in progress belong into SUPPORTED.md or nowhere; paths of somebody's machine into no file.
UNWANTED = re.compile(r"\b(TO" r"DO|FIX" r"ME|XX" r"X|HA" r"CK)\b|/home/\w+|/Users/\w+|/ro" r"ot/")

Function = ast.FunctionDef | ast.AsyncFunctionDef


def _name(path) -> str:
    return str(path.relative_to(REPOSITORY))


def _sources():
    """Files of the product that people write, by name."""
    return [(name, path) for path in modules(*PACKAGES).values() if not (name := _name(path)).startswith(GENERATED)]


def test_sources_open_with_their_role():
    wrong = [
        f"{path} does not say what it is for"
        for path in modules(*PACKAGES).values()
        if text_of(path).strip() and not ast.get_docstring(tree_of(path))
    ]
    assert not wrong


def test_files_fit_their_limit():
    """Those of tests, tools, benchmarks and examples as well."""
    wrong = [
        f"{_name(path)} has {lines} lines"
        for path in every_file()
        if (lines := text_of(path).count("\n")) > LINES_LIMIT
    ]
    assert not wrong


def test_folders_of_unit_tests_have_the_names_of_rooms_or_packages():
    """A test of broker/wire/ is in tests/unit/wire/, one of storage/ in tests/unit/storage/, and so on."""
    unit = REPOSITORY / "tests" / "unit"
    wrong = [str(path.relative_to(REPOSITORY)) for path in unit.glob("*.py")]
    for path in unit.rglob("*.py"):
        folder = path.parent.relative_to(unit)
        if not any((root / folder / "__init__.py").exists() for root in (REPOSITORY, REPOSITORY / "broker")):
            wrong.append(f"{path.relative_to(REPOSITORY)}: there is no {folder}/, nor broker/{folder}/")
    assert not wrong


def test_functions_fit_a_screen():
    wrong = [
        f"{name}:{node.lineno} {node.name} has {lines} lines"
        for name, path in _sources()
        for node in ast.walk(tree_of(path))
        if isinstance(node, Function) and (lines := node.end_lineno - node.lineno + 1) > FUNCTION_LINES_LIMIT
    ]
    assert not wrong


def test_sources_name_no_tests():
    """Tests know the product. What the product says of them is wrong as soon as they move."""
    wrong = [name for name, path in _sources() if re.search(r"\btests/\w|\btest_\w+\.py\b", text_of(path))]
    assert not wrong


@pytest.mark.heavy
def test_kept_generated_functions_are_those_of_their_declarations():
    command = [sys.executable, str(REPOSITORY / "tools" / "keep_generated.py"), "--check"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr


def test_texts_hold_no_leftovers():
    texts = [*every_file(), *REPOSITORY.glob("*.md"), *REPOSITORY.glob("*/*.md"), REPOSITORY / "Makefile"]
    wrong = [
        f"{_name(path)}:{number} {line}"
        for path in texts
        if ".venv" not in path.parts and UNWANTED.search(text_of(path))
        for number, line in enumerate(text_of(path).splitlines(), 1)
        if UNWANTED.search(line)
    ]
    assert not wrong


def test_tests_outside_e2e_do_not_sleep_nor_read_the_clock():
    wrong = []
    for path in files_of_tests():
        if {"e2e", "crash", "differential", "ecosystem", "client_table", "installed"} & set(path.parts):
            continue  # real clients, real kills and a real Kafka take real time
        if not re.search(r"\.(sleep|time|now)\b", text_of(path)):
            continue
        for node in ast.walk(tree_of(path)):
            if isinstance(node, ast.Call):
                called = ast.unparse(node.func)
                yields = called.endswith("asyncio.sleep") and ast.unparse(node.args[0]) == "0"
                if called.endswith(("time.sleep", "asyncio.sleep", "time.time", "datetime.now")) and not yields:
                    wrong.append(f"{_name(path)}:{node.lineno} calls {called}")
    assert not wrong


def test_functions_of_a_test_file_are_not_shadowed_by_one_another():
    wrong = []
    for path in files_of_tests():
        defined = re.findall(r"^(?:async )?def (\w+)", text_of(path), re.MULTILINE)  # parsing takes two seconds
        wrong += [f"{_name(path)} defines {name} twice" for name in sorted(set(defined)) if defined.count(name) > 1]
    assert not wrong
