"""Modules of the compiled build: they exist, ask for no slots, and have what their named tuples name."""

from __future__ import annotations

import ast
import re
import sys

from source_tree import REPOSITORY, tree_of

# Modules of broker/requests and broker/turn that few requests pass: an offset that is expected, a Produce that waits
# for replicas or is looked up in the log, rates that are asked for.
SELDOM = {"acks_wait", "expected_offsets", "produce_search", "rate", "written_batch"}


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


def attributes_of(cls: ast.ClassDef, *, annotated: bool) -> set[str]:
    """What the methods and the body of a class set, or only what they annotate."""
    found = {
        each.target.id for each in cls.body if isinstance(each, ast.AnnAssign) and isinstance(each.target, ast.Name)
    }
    for node in ast.walk(cls):
        targets = [node.target] if isinstance(node, ast.AnnAssign) else getattr(node, "targets", [])
        if isinstance(node, ast.AnnAssign) or not annotated:
            for each in targets:
                if isinstance(each, ast.Attribute) and isinstance(each.value, ast.Name) and each.value.id == "self":
                    found.add(each.attr)
    return found


def test_compiled_classes_declare_no_attribute_of_their_base_again() -> None:
    """mypyc shows it to the collector twice, which takes what it holds for used: no cluster that ended was freed."""
    classes = {
        node.name: node
        for name in modules_of_the_compiled_build()
        for node in ast.walk(tree_of(REPOSITORY / name))
        if isinstance(node, ast.ClassDef)
    }
    again = [
        f"{cls.name}.{name}"
        for cls in classes.values()
        for base in cls.bases
        if isinstance(base, ast.Name) and base.id in classes
        for name in attributes_of(cls, annotated=True) & attributes_of(classes[base.id], annotated=False)
    ]
    assert again == []
