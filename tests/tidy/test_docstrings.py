"""Public functions say what they do: a docstring, of their own or of what they stand in for."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from source_tree import modules, tree_of

PACKAGES = ("broker", "protocol", "storage", "momus")
# Classes that are made to an interface without naming it as a base -> where it is, and what its methods do is said.
STAND_INS = {
    "SystemFiles": "Files",
    "MemoryFiles": "Files",
    "SystemFile": "File",
    "MemoryFile": "File",
    "SystemCells": "Cells",
    "MemoryCells": "Cells",
}
# Without one today. No name is added; a name whose function has one is removed.
WITHOUT = {"broker.shell.control.http_requests.Head.keeps_alive"}

Function = ast.FunctionDef | ast.AsyncFunctionDef


def _decorators(node: Function) -> set[str]:
    return {ast.unparse(each).rpartition(".")[2] for each in node.decorator_list}


def _bases(node: ast.ClassDef) -> list[str]:
    return [ast.unparse(base).partition("[")[0].rpartition(".")[2] for base in node.bases]


def public(body: list[ast.stmt], owner: ast.ClassDef | None = None) -> Iterator[tuple[ast.ClassDef | None, Function]]:
    """The public functions of a module and of its public classes, each with its class."""
    for node in body:
        if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
            yield from public(node.body, node)
        elif isinstance(node, Function) and not node.name.startswith("_"):
            if not _decorators(node) & {"setter", "overload"}:
                yield owner, node
        elif isinstance(node, ast.If):
            yield from public([*node.body, *node.orelse], owner)


def is_part_of_a_view(owner: ast.ClassDef | None, node: Function) -> bool:
    """A part of the broker that a Protocol names: the class says who uses it, the part says itself what it is."""
    is_view = owner is not None and "Protocol" in _bases(owner) and ast.get_docstring(owner) is not None
    return is_view and "property" in _decorators(node)


def missing(trees: dict[str, ast.Module]) -> set[str]:
    """The names of public functions without a docstring. `trees`: by module."""
    classes: dict[str, list[ast.ClassDef]] = {}
    for tree in trees.values():
        for node in ast.walk(tree):
            if isinstance(node, ast.ClassDef):
                classes.setdefault(node.name, []).append(node)

    def is_said(name: str, function: str, seen: frozenset[str] = frozenset()) -> bool:
        """Whether a class of this name, or a base of it, says what the function does."""
        for each in classes.get(name, ()) if name not in seen else ():
            own = [n for n in each.body if isinstance(n, Function) and n.name == function]
            bases = [*_bases(each), *([STAND_INS[name]] if name in STAND_INS else [])]
            if any(ast.get_docstring(n) for n in own) or any(is_said(b, function, seen | {name}) for b in bases):
                return True
        return False

    return {
        ".".join(filter(None, (module, owner.name if owner is not None else "", node.name)))
        for module, tree in trees.items()
        for owner, node in public(tree.body)
        if not ast.get_docstring(node)
        and not is_part_of_a_view(owner, node)
        and not (owner is not None and is_said(owner.name, node.name))
    }


def test_public_functions_say_what_they_do():
    trees = {
        module: tree_of(path)
        for module, path in modules(*PACKAGES).items()
        if not module.startswith("protocol.generated")
    }
    assert missing(trees) == WITHOUT


def test_functions_without_a_docstring_are_found_unless_a_base_has_it():
    text = '''
class Base:
    def said(self):
        """It says."""
class Kind(Base):
    def said(self): ...
    def unsaid(self): ...
    def _inner(self): ...
class View(Protocol):
    """What it uses."""
    @property
    def part(self): ...
    def ask(self): ...
def plain(): ...
'''
    assert missing({"m": ast.parse(text)}) == {"m.Kind.unsaid", "m.View.ask", "m.plain"}
