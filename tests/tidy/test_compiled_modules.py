"""Modules of the compiled build: they exist, ask for no slots, and have what their named tuples name."""

from __future__ import annotations

import ast
import re
import sys

from source_tree import REPOSITORY, tree_of

# Modules of broker/requests and broker/turn that few requests pass: an offset that is expected, a Produce that waits
# for replicas or is looked up in the log, clients of before record batches, rates that are asked for.
SELDOM = {"acks_wait", "expected_offsets", "message_sets", "produce_search", "rate", "written_batch"}


def modules_of_the_compiled_build() -> list[str]:
    constants = [
        node.value for node in ast.walk(tree_of(REPOSITORY / "tools/compiled.py")) if type(node) is ast.Constant
    ]
    return [name for name in constants if isinstance(name, str) and re.fullmatch(r"\w+/[\w/]+\.py", name)]


def test_modules_of_the_compiled_build_exist():
    named = modules_of_the_compiled_build()
    assert named
    assert [name for name in named if not (REPOSITORY / name).exists() or named.count(name) > 1] == []


def test_modules_of_the_compiled_build_do_not_ask_for_slots():
    """A class that mypyc has compiled has no __slots__."""
    asks = [
        f"{name}:{node.lineno}"
        for name in modules_of_the_compiled_build()
        if (REPOSITORY / name).exists()
        for node in ast.walk(tree_of(REPOSITORY / name))
        if isinstance(node, ast.Attribute) and node.attr == "__slots__"
    ]
    assert not asks


def imported_for_types(tree: ast.AST) -> dict[str, str]:
    """Name -> the file that it comes from, of what is imported where TYPE_CHECKING is true."""
    found = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING":
            for each in node.body:
                if isinstance(each, ast.ImportFrom) and each.module:
                    found |= dict.fromkeys((alias.name for alias in each.names), f"{each.module.replace('.', '/')}.py")
    return found


def names_of_fields(tree: ast.AST) -> set[str]:
    """The names in the annotations of NamedTuples."""
    found = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.ClassDef) and "NamedTuple" in {getattr(base, "id", "") for base in node.bases}:
            for each in node.body:
                if isinstance(each, ast.AnnAssign):
                    found |= {name.id for name in ast.walk(each.annotation) if isinstance(name, ast.Name)}
    return found


def test_compiled_modules_have_what_their_named_tuples_name() -> None:
    """mypyc evaluates the annotations of a NamedTuple's fields when the module is loaded, but for compiled classes."""
    sys.path.insert(0, str(REPOSITORY / "tools"))
    from compiled import MODULES

    found = []
    for module in MODULES:
        tree = ast.parse((REPOSITORY / module).read_text())
        absent = imported_for_types(tree)
        found += [f"{module}: {name}" for name in names_of_fields(tree) if absent.get(name, module) not in MODULES]
    assert found == []


def test_what_each_request_passes_is_compiled() -> None:
    """A module that is moved apart, and is not named in tools/compiled.py, made offset fetches a quarter slower."""
    named = set(modules_of_the_compiled_build())
    files = [path for folder in ("requests", "turn") for path in (REPOSITORY / "broker" / folder).glob("*.py")]
    pure = {path.stem for path in files if path.relative_to(REPOSITORY).as_posix() not in named}
    assert pure - {"__init__"} == SELDOM
